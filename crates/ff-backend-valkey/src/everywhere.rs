//! Read-only calls that look at many homes: one for each primary, or few where those are many.
//!
//! While a slot moves to another node, a read over all slots of a node fails as a whole. Then the
//! node is asked home by home, and what cannot be read at that moment is left out, or waited for, as
//! the caller needs. So it is with a node that does not answer at all: whoever can do without its homes
//! goes on, so that one that hangs stops neither claims nor timers of the others.

use std::time::{Duration, Instant};

use ff_core::error::EngineError;
use ff_core::id::{Home, Namespace, PartitionFamily};
use ff_core::read::EventFilter;
use redis::{Cmd, Value};

use crate::client::{Looked, Primary};
use crate::homes;
use crate::store::{Shared, join_all};

/// Pause before a home that is on its way is asked for again.
const REST: Duration = Duration::from_millis(20);

/// Homes that an error names.
const TOLD: usize = 3;

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

/// What a look over homes brought.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) answered: Vec<Answered>,
    /// Homes that it went on without.
    pub(crate) left_out: Vec<Home>,
    /// Why some could not be read the last time that it was tried.
    hindered: Option<String>,
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
        self.in_homes_and_new(tour, self.homes.known(), arguments).await
    }

    /// Calls a function for the homes in which a filter may find events.
    pub(crate) async fn in_homes_of(
        &self,
        filter: &EventFilter,
        tour: Tour,
        arguments: impl Fn(&mut Cmd, &[Home]),
    ) -> Result<Vec<Answered>, EngineError> {
        let partitions = &self.settings.partitions;
        let homes = self.homes.of_events(filter, partitions);
        let unnamed = Home::Namespace(Namespace::default());
        if filter.namespace.is_none() && filter.may_match_in(&unnamed, partitions) {
            return self.in_homes_and_new(tour, homes, arguments).await;
        }
        Ok(self.everywhere(tour, homes, arguments).await?.answered)
    }

    /// Calls a function for these homes, and for those of namespaces that others have made since.
    async fn in_homes_and_new(
        &self,
        tour: Tour,
        homes: Vec<Home>,
        arguments: impl Fn(&mut Cmd, &[Home]),
    ) -> Result<Vec<Answered>, EngineError> {
        let looking = self.everywhere(tour, homes, &arguments);
        let (found, new) = tokio::join!(looking, homes::learn(self, tour.missing));
        let (mut answered, new) = (found?.answered, new?);
        if !new.is_empty() {
            answered.extend(self.everywhere(tour, new, &arguments).await?.answered);
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
    ) -> Result<Found, EngineError> {
        let mut left = homes;
        let mut found = Found::default();
        let until = Instant::now() + self.options.call_timeout;
        loop {
            left = self.round(tour, left, &arguments, &mut found).await?;
            let is_over = Instant::now() >= until;
            if !left.is_empty() && !is_over {
                let alone = Tour { homes: 1, ..tour };
                left = self.round(alone, left, &arguments, &mut found).await?;
            }
            if tour.missing == Missing::LeaveOut {
                found.left_out.append(&mut left);
            }
            if left.is_empty() {
                return found.unless_blind();
            }
            if is_over {
                return Err(found.lacking(&left));
            }
            tokio::time::sleep(REST).await;
        }
    }

    /// One round of calls for these homes: those that are moving at the moment.
    async fn round(
        &self,
        tour: Tour,
        homes: Vec<Home>,
        arguments: &impl Fn(&mut Cmd, &[Home]),
        found: &mut Found,
    ) -> Result<Vec<Home>, EngineError> {
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
        let goes_on = tour.missing == Missing::LeaveOut && self.client.is_cluster();
        let sending = calls.iter().map(|(node, _, call)| async move {
            match goes_on {
                true => self.client.look_at(node, call).await,
                false => Looked::Answer(self.client.send_to(node, call).await),
            }
        });
        let replies = join_all(sending).await;
        let mut moving = unowned;
        for ((_, homes, _), reply) in calls.into_iter().zip(replies) {
            match reply {
                Looked::Answer(Ok(reply)) => found.answered.push(Answered { homes, reply }),
                Looked::Answer(Err(EngineError::Transport { outcome_unknown: false, detail }))
                    if self.client.is_cluster() && !self.is_closing() =>
                {
                    found.hindered = Some(detail);
                    moving.extend(homes);
                }
                Looked::Answer(Err(error)) => return Err(error),
                Looked::Silence => found.left_out.extend(homes),
            }
        }
        Ok(moving)
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

impl Found {
    fn lacking(self, left: &[Home]) -> EngineError {
        let why = self.hindered.unwrap_or_else(|| "no node has their slots".to_owned());
        let of: Vec<_> = left.iter().take(TOLD).map(Home::to_string).collect();
        let more = if left.len() > TOLD { " and others" } else { "" };
        EngineError::unavailable(format!("{}{more} cannot be read: {why}", of.join(", ")))
    }

    /// Who has seen nothing cannot tell what there is.
    fn unless_blind(self) -> Result<Self, EngineError> {
        match self.answered.is_empty() && !self.left_out.is_empty() {
            true => Err(EngineError::unavailable("no node of the cluster answers")),
            false => Ok(self),
        }
    }
}
