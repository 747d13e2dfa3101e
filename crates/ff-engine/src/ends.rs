//! Waiting for executions and flows to end.
//!
//! One task follows the ends of all of them while somebody waits, and wakes whom it concerns: a
//! thousand who wait cost one subscription, and nobody asks again and again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::EngineError;
use ff_core::event::EventKind;
use ff_core::id::{ExecutionId, FlowId, Namespace, Subject};
use ff_core::limits;
use ff_core::partition::PartitionConfig;
use ff_core::read::{EventFilter, Follow, From, Subscription};
use ff_core::shared_look::SharedLook;
use ff_core::tails::Tails;
use tokio::time::Instant;

use crate::service::Shutdown;

/// How long the follower looks before it asks whether anybody still waits.
const LOOK: Duration = Duration::from_secs(5);
/// How long it rests when the store fails.
const REST: Duration = Duration::from_secs(1);

/// Those who wait for an end, and what wakes them.
pub struct Ends {
    shared: Arc<Shared>,
}

struct Shared {
    backend: Arc<dyn Backend>,
    /// None: of all namespaces.
    namespace: Option<Namespace>,
    shutdown: Shutdown,
    tails: Tails,
    is_followed: Mutex<bool>,
    beginning: SharedLook,
}

/// What somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    Execution(ExecutionId),
    Flow(FlowId),
}

impl Ends {
    /// Nobody waits yet. All waits are over with `shutdown`.
    pub fn new(
        backend: Arc<dyn Backend>,
        namespace: Option<Namespace>,
        shutdown: Shutdown,
    ) -> Self {
        let (tails, is_followed) = (Tails::default(), Mutex::default());
        let beginning = SharedLook::default();
        let shared = Shared { backend, namespace, shutdown, tails, is_followed, beginning };
        Self { shared: Arc::new(shared) }
    }

    /// What `look` finds once it `has_ended`, or as it is when the wait is over.
    pub async fn until<T, F>(
        &self,
        awaited: Awaited,
        wait: Duration,
        look: impl Fn() -> F,
        has_ended: impl Fn(&T) -> bool,
    ) -> Result<T, EngineError>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        let shared = &self.shared;
        let found = look().await?;
        if wait.is_zero() || has_ended(&found) {
            return Ok(found);
        }
        let deadline = Instant::now() + wait;
        // Whoever is registered before the follower's place in the log is taken misses nothing.
        let mut watching = shared.tails.watch(shared.watched(awaited));
        shared.begin().await?;
        let mut shutdown = shared.shutdown.clone();
        loop {
            let found = look().await?;
            if has_ended(&found) {
                return Ok(found);
            }
            tokio::select! {
                () = watching.news() => {}
                () = tokio::time::sleep_until(deadline) => return Ok(found),
                () = shutdown.requested() => return Ok(found),
            }
        }
    }
}

impl Shared {
    fn partitions(&self) -> &PartitionConfig {
        &self.backend.settings().partitions
    }

    /// Flows are watched under the id that a member of the same uuid would have. Should there be one,
    /// somebody looks once too often.
    fn watched(&self, awaited: Awaited) -> ExecutionId {
        match awaited {
            Awaited::Execution(id) => id,
            Awaited::Flow(id) => ExecutionId::for_flow(id.uuid(), id, self.partitions()),
        }
    }

    /// Sees to it that somebody follows.
    async fn begin(self: &Arc<Self>) -> Result<(), EngineError> {
        let begin = async {
            let cursor = self.backend.events(self.ends(From::Now), Duration::ZERO).await?.cursor;
            *self.is_followed() = true;
            tokio::spawn(Arc::clone(self).follow(cursor));
            Ok(())
        };
        self.beginning.ask(|| self.is_followed().then_some(()), begin).await
    }

    fn is_followed(&self) -> MutexGuard<'_, bool> {
        self.is_followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ends(&self, from: From) -> Follow {
        let mut kinds_of_event = Subscription::Completions.kinds_of_event();
        let flows = [EventKind::FlowCompleted, EventKind::FlowFailed, EventKind::FlowCancelled];
        kinds_of_event.extend(flows);
        let namespace = self.namespace.clone();
        let filter = EventFilter { kinds_of_event, namespace, ..EventFilter::default() };
        Follow { filter, from, limit: limits::PAGE_MAX, each: false }
    }

    /// Follows until nobody waits.
    async fn follow(self: Arc<Self>, mut cursor: String) {
        let mut shutdown = self.shutdown.clone();
        loop {
            let after = self.backend.events(self.ends(From::Cursor(cursor.clone())), LOOK);
            match shutdown.or(after).await {
                None => return,
                Some(Ok(after)) => {
                    cursor = after.cursor;
                    if after.gap {
                        self.tails.tell_all();
                    }
                    after.items.iter().for_each(|envelope| self.tell(&envelope.event.subject));
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "ends cannot be followed; trying again");
                    self.tails.tell_all();
                    let _ = shutdown.or(tokio::time::sleep(REST)).await;
                }
            }
            let mut is_followed = self.is_followed();
            if self.tails.is_empty() {
                *is_followed = false;
                return;
            }
        }
    }

    fn tell(&self, subject: &Subject) {
        match subject {
            Subject::Execution(id) => self.tails.tell(*id),
            // A document's name is the flow's id.
            Subject::Document(id) => {
                if let Ok(id) = id.name.parse() {
                    self.tails.tell(self.watched(Awaited::Flow(id)));
                }
            }
        }
    }
}
