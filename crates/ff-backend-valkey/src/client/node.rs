//! One primary: its connection, and with `durability=replica` the groups beside it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::{Arg, Cmd, Pipeline, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::address::Address;
use super::connection::{Connection, Failure};
use super::ground::Ground;
use super::group::Groups;
use super::link::Link;
use super::load;
use super::obstacle::Obstacle;
use super::verdict::is_demoted;
use crate::options::Durability;

/// Pause between questions to a node that does not answer.
const PROBE_PAUSE: Duration = Duration::from_millis(200);

pub(super) struct Node {
    pub(super) address: Address,
    pub(super) link: Link,
    groups: Option<Groups>,
    ground: Arc<Ground>,
    /// Held while the library is looked after, so that a crowd of calls does it once.
    repair: Mutex<()>,
    /// It kept somebody waiting who only looked, and has said nothing since.
    silent: AtomicBool,
}

impl Node {
    pub(super) fn start(
        ground: &Arc<Ground>,
        address: &Address,
        first: Option<Connection>,
    ) -> Arc<Self> {
        let is_grouped = ground.durability == Durability::Replica;
        Arc::new(Self {
            address: address.clone(),
            link: Link::start(Arc::clone(ground), address.clone(), first),
            groups: is_grouped.then(|| Groups::start(ground, address)),
            ground: Arc::clone(ground),
            repair: Mutex::new(()),
            silent: AtomicBool::new(false),
        })
    }

    /// Whether it is known not to answer: a stopped process, or a machine that has gone.
    pub(super) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// From now on nobody who only looks waits for it, until it answers again.
    pub(super) fn fall_silent(self: &Arc<Self>) {
        if !self.silent.swap(true, Ordering::Relaxed) {
            tracing::warn!(address = %self.address, "valkey does not answer; looks go on without it");
            tokio::spawn(until_it_answers(Arc::downgrade(self)));
        }
    }

    /// A call whose success is as durable as the options say, by the deadline.
    pub(super) async fn call(&self, command: &Cmd, deadline: Instant) -> Result<Value, Failure> {
        match &self.groups {
            Some(groups) if !only_reads(command) => {
                let replies = groups.call(vec![command.clone()], deadline).await?;
                Ok(replies.into_iter().next().unwrap_or_default())
            }
            _ => self.call_directly(command).await,
        }
    }

    /// Without waiting for replicas.
    pub(super) async fn call_directly(&self, command: &Cmd) -> Result<Value, Failure> {
        let mut connection = self.link.connection()?;
        let outcome = connection.call(command).await;
        if is_demoted(&outcome) {
            connection.distrust();
        }
        outcome
    }

    /// Several calls in one flight; each has its own answer.
    async fn call_all(&self, commands: &[Cmd], deadline: Instant) -> Result<Vec<Value>, Failure> {
        if let Some(groups) = &self.groups {
            return groups.call(commands.to_vec(), deadline).await;
        }
        let mut pipeline = Pipeline::with_capacity(commands.len());
        for command in commands {
            pipeline.add_command(command.clone());
        }
        self.link.connection()?.call_all(&pipeline).await
    }

    /// A call for a slot that this node is about to own. The permission is for the next command
    /// only, so both must travel together.
    pub(super) async fn call_asking(
        &self,
        command: &Cmd,
        deadline: Instant,
    ) -> Result<Value, Failure> {
        let commands = [redis::cmd("ASKING"), command.clone()];
        let replies = self.call_all(&commands, deadline).await?;
        let refused = |reply: &&Value| matches!(reply, Value::ServerError(_));
        let reply = replies.iter().find(refused).or(replies.last());
        Ok(reply.cloned().unwrap_or_default())
    }

    /// Makes the server's library one that serves us.
    pub(super) async fn repair_library(&self) -> Result<(), Obstacle> {
        let _alone = self.repair.lock().await;
        let mut connection = self.link.connection()?;
        load::ensure(&mut connection, &self.address, &self.ground.library).await
    }
}

/// Asks a silent node until it says something. A node that is no longer of interest ends this.
async fn until_it_answers(node: Weak<Node>) {
    while let Some(node) = node.upgrade() {
        match node.call_directly(&redis::cmd("PING")).await {
            Ok(_) => {
                node.silent.store(false, Ordering::Relaxed);
                tracing::info!(address = %node.address, "valkey answers again");
                return;
            }
            Err(Failure::Closed) => return,
            Err(Failure::NotSent(_) | Failure::Unknown(_)) => {}
        }
        drop(node);
        tokio::time::sleep(PROBE_PAUSE).await;
    }
}

/// Commands that change nothing, so that no replica has to be waited for.
const READS: [&[u8]; 20] = [
    b"EXISTS",
    b"FCALL_RO",
    b"GET",
    b"HEXISTS",
    b"HGET",
    b"HGETALL",
    b"HSCAN",
    b"LLEN",
    b"LRANGE",
    b"MGET",
    b"SCAN",
    b"SCARD",
    b"SISMEMBER",
    b"SMEMBERS",
    b"XLEN",
    b"XRANGE",
    b"XREVRANGE",
    b"ZRANDMEMBER",
    b"ZRANGE",
    b"ZSCORE",
];

fn only_reads(command: &Cmd) -> bool {
    matches!(command.args_iter().next(), Some(Arg::Simple(name)) if READS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_told_from_writes() {
        for (name, reads) in
            [("FCALL_RO", true), ("ZRANGE", true), ("FCALL", false), ("SET", false)]
        {
            assert_eq!(only_reads(&redis::cmd(name)), reads, "{name}");
        }
    }
}
