//! Commits of many callers at once, in few calls.
//!
//! A call of a function costs the server more than an item in it. So only a few commits are under
//! way at a time; what other callers bring meanwhile waits and goes with the next call. A caller
//! alone sends at once. In a cluster every group goes its own way, since a call is of one partition.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_core::error::EngineError;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::commit::{self, Committed, Group, Load};
use crate::store::Shared;

/// Calls under way at a time: while the server works on one, the next is on its way.
const CALLS_MOST: usize = 2;

/// One crowd for each of the two functions.
#[derive(Debug, Default)]
pub(crate) struct Crowds([Mutex<Crowd>; 2]);

#[derive(Debug, Default)]
struct Crowd {
    under_way: usize,
    /// Bounded by the callers: each waits for its own entry.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    groups: Vec<Arc<Group>>,
    since: Instant,
    answer: oneshot::Sender<Result<Vec<Committed>, EngineError>>,
}

impl Crowds {
    fn lock(&self, freeing: bool) -> MutexGuard<'_, Crowd> {
        self.0[usize::from(freeing)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Commits groups that fit into one call.
pub(crate) async fn send(
    shared: &Arc<Shared>,
    groups: Vec<Arc<Group>>,
    freeing: bool,
) -> Result<Vec<Committed>, EngineError> {
    if shared.client.is_cluster() {
        return commit::send(shared, &groups, freeing).await;
    }
    let answered = {
        let mut crowd = shared.crowds.lock(freeing);
        if crowd.under_way < CALLS_MOST {
            crowd.under_way += 1;
            None
        } else {
            let (answer, answered) = oneshot::channel();
            crowd.waiting.push_back(Waiting {
                groups: groups.clone(),
                since: Instant::now(),
                answer,
            });
            Some(answered)
        }
    };
    match answered {
        None => {
            let _turn = Turn { shared: Arc::clone(shared), freeing, idle: false };
            commit::send(shared, &groups, freeing).await
        }
        Some(answered) => {
            let gone = |_| EngineError::unavailable("the store was closed before it sent this");
            answered.await.map_err(gone)?
        }
    }
}

/// The right to have a call under way. Whoever is done with it, or gives up, passes it on.
struct Turn {
    shared: Arc<Shared>,
    freeing: bool,
    /// It was passed on, and nobody has taken it up yet.
    idle: bool,
}

impl Drop for Turn {
    /// A runtime that shuts down drops at once what is spawned on it: then, and where there is no
    /// runtime, nobody will serve those who wait, and they learn of it.
    fn drop(&mut self) {
        let mut crowd = self.shared.crowds.lock(self.freeing);
        let runtime = tokio::runtime::Handle::try_current().ok();
        let runtime = runtime.filter(|_| !self.idle && !crowd.waiting.is_empty());
        let left = match runtime {
            Some(_) => VecDeque::new(),
            None => {
                crowd.under_way -= 1;
                std::mem::take(&mut crowd.waiting)
            }
        };
        // What is dropped or spawned here may take the lock.
        drop(crowd);
        drop(left);
        if let Some(runtime) = runtime {
            let (shared, freeing) = (Arc::clone(&self.shared), self.freeing);
            runtime.spawn(Self { shared, freeing, idle: true }.serve());
        }
    }
}

impl Turn {
    /// One call for as many as wait and fit into it.
    async fn serve(mut self) {
        self.idle = false;
        let served = self.shared.crowds.lock(self.freeing).take(self.shared.options.call_timeout);
        let groups: Vec<_> = served.iter().flat_map(|waiting| waiting.groups.clone()).collect();
        let mut outcome = commit::send(&self.shared, &groups, self.freeing).await;
        for waiting in served {
            let own = match &mut outcome {
                Ok(committed) => Ok(committed.drain(..waiting.groups.len()).collect()),
                Err(error) => Err(error.clone()),
            };
            let _ = waiting.answer.send(own);
        }
    }
}

impl Crowd {
    /// As much of what waits as goes into one call. What nobody waits for any more is not sent.
    fn take(&mut self, patience: Duration) -> Vec<Waiting> {
        let (mut served, mut load) = (Vec::new(), Load::default());
        while let Some(waiting) = self.waiting.pop_front() {
            if waiting.answer.is_closed() {
                continue;
            }
            if waiting.since.elapsed() > patience {
                let late = EngineError::unavailable("too many calls wait for the store");
                let _ = waiting.answer.send(Err(late));
                continue;
            }
            if !load.takes(&waiting.groups) {
                self.waiting.push_front(waiting);
                break;
            }
            served.push(waiting);
        }
        served
    }
}
