//! What stands between the code under test and its store: faults, and knowledge of who claims.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, WorkerInstanceId};
use ff_core::layer::Layer;
use ff_core::limits;
use ff_core::operation::{Claim, Claimed, Command, Reply, WorkerBeat, WorkerRegistered};
use ff_core::time::TimestampMs;

use crate::leases::lock;

/// The name of a claim among operations.
pub(super) const CLAIM: &str = "claim";

/// What goes wrong with the next calls of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The store is not reached.
    NoAnswer,
    /// It does what it is told, and its answer is lost.
    LostReply,
}

/// Faults that are still to come.
struct Planned {
    fault: Fault,
    /// None: whatever comes next.
    name: Option<String>,
    left: u32,
}

/// The layer before the store.
pub(super) struct Bench {
    inner: Arc<dyn Backend>,
    planned: Mutex<Vec<Planned>>,
    /// Workers that have waited for work: they come again by themselves.
    loops: Mutex<HashSet<WorkerInstanceId>>,
    /// How long workers asked to be known. They are for as long as the store allows, whatever the
    /// clock does; what they hear of it is as they asked.
    ttls: Mutex<HashMap<WorkerInstanceId, u64>>,
    /// Leases that nobody renews.
    silent: Mutex<HashSet<ExecutionId>>,
}

impl Bench {
    pub(super) fn before(inner: Arc<dyn Backend>) -> Self {
        Self {
            inner,
            planned: Mutex::default(),
            loops: Mutex::default(),
            ttls: Mutex::default(),
            silent: Mutex::default(),
        }
    }

    pub(super) fn plan(&self, fault: Fault, name: Option<String>, left: u32) {
        lock(&self.planned).push(Planned { fault, name, left });
    }

    /// This worker is about to come for work by itself.
    pub(super) fn expect(&self, worker: WorkerInstanceId) {
        lock(&self.loops).insert(worker);
    }

    /// Whether this worker comes for work by itself.
    pub(super) fn comes_again(&self, worker: &WorkerInstanceId) -> bool {
        lock(&self.loops).contains(worker)
    }

    /// Nobody renews this lease any more, or somebody does again.
    pub(super) fn set_silent(&self, execution_id: ExecutionId, is_silent: bool) {
        let mut silent = lock(&self.silent);
        if is_silent {
            silent.insert(execution_id);
        } else {
            silent.remove(&execution_id);
        }
    }

    pub(super) fn is_silent(&self, execution_id: ExecutionId) -> bool {
        lock(&self.silent).contains(&execution_id)
    }

    /// The fault that strikes a call of these names, if one does.
    fn strikes(&self, names: &[&str]) -> Option<Fault> {
        // What workers send by themselves uses up no fault that a test has planned.
        if names.iter().all(|name| is_of_its_own(name)) {
            return None;
        }
        let mut planned = lock(&self.planned);
        let is_meant = |plan: &Planned| match &plan.name {
            Some(name) => names.contains(&name.as_str()),
            None => true,
        };
        let hit = planned.iter_mut().find(|plan| is_meant(plan))?;
        let fault = hit.fault;
        hit.left -= 1;
        planned.retain(|plan| plan.left > 0);
        Some(fault)
    }

    /// What the store is told instead.
    fn altered(&self, command: Command) -> Command {
        match command {
            Command::RegisterWorker(mut register) => {
                let asked = register.ttl_ms;
                lock(&self.ttls).insert(register.worker_instance_id.clone(), asked);
                register.ttl_ms = limits::DURATION_MAX_MS;
                Command::RegisterWorker(register)
            }
            other => other,
        }
    }

    /// How long the worker asked to be known that a command is from, where the store knows better.
    fn asked_ms(&self, command: &Command) -> Option<u64> {
        match command {
            Command::RegisterWorker(register) => Some(register.ttl_ms),
            Command::HeartbeatWorker(beat) => {
                lock(&self.ttls).get(&beat.worker_instance_id).copied()
            }
            _ => None,
        }
    }

    fn lost(name: &str) -> EngineError {
        EngineError::unavailable(format!("the test wants no answer to {name}"))
    }
}

/// Sent by workers in the background.
fn is_of_its_own(name: &str) -> bool {
    matches!(name, "heartbeat_worker" | "renew_lease" | "register_worker")
}

/// The reply as the worker expects it that asked for another time.
fn retold(reply: Reply, asked_ms: u64) -> Reply {
    let sooner = |at: TimestampMs| at.before(limits::DURATION_MAX_MS).after(asked_ms);
    match reply {
        Reply::RegisterWorker(WorkerRegistered::Registered { next_expiry }) => {
            let next_expiry = sooner(next_expiry);
            Reply::RegisterWorker(WorkerRegistered::Registered { next_expiry })
        }
        Reply::RegisterWorker(WorkerRegistered::Refreshed { next_expiry }) => {
            let next_expiry = sooner(next_expiry);
            Reply::RegisterWorker(WorkerRegistered::Refreshed { next_expiry })
        }
        Reply::HeartbeatWorker(WorkerBeat::Refreshed {
            next_expiry,
            drain,
            paused_lanes,
            news,
            cancelled,
            ..
        }) => Reply::HeartbeatWorker(WorkerBeat::Refreshed {
            next_expiry: sooner(next_expiry),
            ttl_ms: asked_ms,
            drain,
            paused_lanes,
            news,
            cancelled,
        }),
        other => other,
    }
}

impl Layer for Bench {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        Box::pin(async move {
            let names: Vec<&str> = commands.iter().map(Command::name).collect();
            let renews_silent = |command: &Command| {
                let id = command.execution_id();
                matches!(command, Command::Renew(_)) && id.is_some_and(|id| self.is_silent(id))
            };
            let fault = self.strikes(&names);
            if fault == Some(Fault::NoAnswer) || commands.iter().any(renews_silent) {
                return names.into_iter().map(|name| Err(Self::lost(name))).collect();
            }
            let ttls: Vec<Option<u64>> = commands.iter().map(|c| self.asked_ms(c)).collect();
            let altered = commands.into_iter().map(|command| self.altered(command)).collect();
            let replies = self.inner.apply(altered).await;
            if fault == Some(Fault::LostReply) {
                return names.into_iter().map(|name| Err(Self::lost(name))).collect();
            }
            let retell = |(reply, ttl): (Result<Reply, EngineError>, Option<u64>)| {
                let reply = reply?;
                Ok(match ttl {
                    Some(asked_ms) => retold(reply, asked_ms),
                    None => reply,
                })
            };
            replies.into_iter().zip(ttls).map(retell).collect()
        })
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        Box::pin(async move {
            if !wait.is_zero() {
                self.expect(claim.worker_instance_id.clone());
            }
            match self.strikes(&[CLAIM]) {
                Some(Fault::NoAnswer) => return Err(Self::lost(CLAIM)),
                Some(Fault::LostReply) => {
                    self.inner.take(claim, Duration::ZERO).await?;
                    return Err(Self::lost(CLAIM));
                }
                None => {}
            }
            self.inner.take(claim, wait).await
        })
    }
}
