//! Read-only calls that look at many homes: one for each primary, or few where those are many.
//!
//! While a slot moves to another node, a read over all slots of a node fails as a whole. Then the
//! node is asked home by home, and what cannot be read at that moment is left out, or waited for, as
//! the caller needs.

use std::time::Duration;

use ff_core::error::EngineError;
use ff_core::id::{Home, PartitionFamily};
use redis::{Cmd, Value};

use crate::client::Primary;
use crate::homes;
use crate::store::{Shared, join_all};

/// Pause before a home that is on its way is asked for again.
const REST: Duration = Duration::from_millis(20);

/// Times that it is asked for again.
const TRIES: usize = 250;

/// Homes of one call. Everything else waits while a function runs.
const HOMES_MOST: usize = 512;

/// Entries of one call, of all homes together.
const ENTRIES_MOST: usize = 512;

/// To look for entries of a home costs as much as so many of them.
const HOME_COST: usize = 16;

/// A function that looks at homes, and how many of them it is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tour {
    function: &'static str,
    missing: Missing,
    homes: usize,
}

impl Tour {
    /// Little is read of each home.
    pub(crate) fn by(function: &'static str, missing: Missing) -> Self {
        Self { function, missing, homes: HOMES_MOST }
    }

    /// So many entries of each home may be read.
    pub(crate) fn entries(self, of_each: usize) -> Self {
        let homes = (ENTRIES_MOST / (of_each + HOME_COST)).max(1);
        Self { homes, ..self }
    }
}

/// What to do about homes that cannot be read at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Answer without them: the next look will see them.
    LeaveOut,
    /// Wait for them.
    Wait,
}

/// What a node answered for some homes.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) homes: Vec<Home>,
    pub(crate) reply: Value,
}

impl Shared {
    /// All partitions of executions and flows.
    pub(crate) fn partitions(&self) -> Vec<Home> {
        self.settings.partitions.homes(PartitionFamily::Flow).collect()
    }

    /// Calls a function for all homes there are, also those that others have made since.
    pub(crate) async fn in_all_homes(
        &self,
        tour: Tour,
        arguments: impl Fn(&mut Cmd, &[Home]),
    ) -> Result<Vec<Answered>, EngineError> {
        let known = self.homes.known();
        let looking = self.everywhere(tour, known, &arguments);
        let (answered, new) = tokio::join!(looking, homes::learn(self));
        let (mut answered, new) = (answered?, new?);
        if !new.is_empty() {
            answered.extend(self.everywhere(tour, new, &arguments).await?);
        }
        Ok(answered)
    }

    /// Calls a function on every primary, each for those of the homes that it has. `arguments`
    /// follow those with which every function begins.
    pub(crate) async fn everywhere(
        &self,
        tour: Tour,
        homes: Vec<Home>,
        arguments: impl Fn(&mut Cmd, &[Home]),
    ) -> Result<Vec<Answered>, EngineError> {
        let mut left = homes;
        let mut answered = Vec::new();
        for _ in 0..TRIES {
            let whole = self.round(tour, left, &arguments).await?;
            answered.extend(whole.answered);
            if whole.failed.is_empty() {
                return Ok(answered);
            }
            let alone = Tour { homes: 1, ..tour };
            let singly = self.round(alone, whole.failed, &arguments).await?;
            answered.extend(singly.answered);
            left = singly.failed;
            if left.is_empty() || tour.missing == Missing::LeaveOut {
                return Ok(answered);
            }
            tokio::time::sleep(REST).await;
        }
        let detail = format!("{left:?} cannot be read: their slots are moving");
        Err(EngineError::Transport { outcome_unknown: false, detail })
    }

    /// One round of calls for these homes.
    async fn round(
        &self,
        tour: Tour,
        homes: Vec<Home>,
        arguments: &impl Fn(&mut Cmd, &[Home]),
    ) -> Result<Round, EngineError> {
        let (shares, unowned) = self.shares(homes);
        let mut calls: Vec<(Primary, Vec<Home>, Cmd)> = Vec::new();
        for (primary, owned) in shares {
            for part in owned.chunks(tour.homes) {
                let Some(first) = part.first() else { continue };
                let mut call = self.read_function(tour.function);
                call.arg(1).arg(self.keys.log(first));
                self.begin(&mut call);
                arguments(&mut call, part);
                calls.push((primary.clone(), part.to_vec(), call));
            }
        }
        let sending = calls.iter().map(|(node, _, call)| self.client.send_to(node, call));
        let replies = join_all(sending).await;
        let mut round = Round { answered: Vec::new(), failed: unowned };
        for ((_, homes, _), reply) in calls.into_iter().zip(replies) {
            match reply {
                Ok(reply) => round.answered.push(Answered { homes, reply }),
                Err(EngineError::Transport { outcome_unknown: false, .. })
                    if self.client.is_cluster() && !self.is_closing() =>
                {
                    round.failed.extend(homes);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(round)
    }

    /// Which primary has which of these homes, and those that none has at the moment.
    fn shares(&self, homes: Vec<Home>) -> (Vec<(Primary, Vec<Home>)>, Vec<Home>) {
        let primaries = self.client.primaries();
        let mut shares: Vec<_> = primaries.into_iter().map(|node| (node, Vec::new())).collect();
        let mut unowned = Vec::new();
        for home in homes {
            let slot = self.keys.slot_of(&home);
            match shares.iter_mut().find(|(node, _)| node.owns(slot)) {
                Some((_, owned)) => owned.push(home),
                None => unowned.push(home),
            }
        }
        (shares, unowned)
    }
}

struct Round {
    answered: Vec<Answered>,
    /// Homes that could not be read.
    failed: Vec<Home>,
}
