//! A backend whose workers need not register: whoever claims is registered first, for so long that
//! no test outlives it.
//!
//! Most tests are about executions and claim under some name. Those about workers register by
//! themselves, and are left alone. What is done here on its own stays out of the
//! log.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ff_core::act::{Act, Acted, Acts};
use ff_core::backend::{Backend, BackendExt, Pending};
use ff_core::error::{Code, EngineError};
use ff_core::id::{DocumentId, Subject};
use ff_core::limits;
use ff_core::operation::{Claim, Claimed, Command, RegisterWorker, Reply};
use ff_core::read::{Answer, Follow, Followed, From, Query, Topic};

use ff_core::layer::{Layer, Layered};

/// Registers whoever claims.
pub struct Registered {
    inner: Arc<dyn Backend>,
    /// Names that a test registered, or that were registered for it.
    known: Mutex<HashSet<DocumentId>>,
    /// Those that were registered for it.
    hidden: Mutex<HashSet<Subject>>,
    turn: tokio::sync::Mutex<()>,
}

/// The registration that a claim of a test needs.
pub fn registration_of(claim: &Claim) -> RegisterWorker {
    RegisterWorker::for_claim(claim, "test", limits::DURATION_MAX_MS)
}

impl Registered {
    pub fn before(inner: Arc<dyn Backend>) -> Layered<Self> {
        Layered(Self {
            inner,
            known: Mutex::default(),
            hidden: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// Whether nobody has registered this name before.
    fn is_new(&self, id: &DocumentId) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone())
    }

    /// A claim that is malformed is refused for that, not for its worker.
    async fn register(&self, claim: &Claim) {
        let id = DocumentId::worker(&claim.namespace, &claim.worker_instance_id);
        // Who comes second waits until the first is registered.
        let _turn = self.turn.lock().await;
        if claim.check().is_ok() && self.is_new(&id) {
            self.hide(&id);
            self.inner.call(registration_of(claim)).await.expect("a registration");
        }
    }

    fn is_hidden(&self, subject: &Subject) -> bool {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner).contains(subject)
    }

    fn hide(&self, id: &DocumentId) {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner).insert(id.into());
    }

    async fn events(&self, follow: Follow, wait: Duration) -> Result<Followed, EngineError> {
        let deadline = Instant::now().checked_add(wait);
        let (mut follow, mut gapped) = (follow, false);
        loop {
            let left = deadline.map_or(wait, |at| at.saturating_duration_since(Instant::now()));
            let followed = self.inner.follow(Topic::Events(follow.clone()), left).await?;
            let Followed::Events { mut items, mut cursors, cursor, gap } = followed else {
                return Ok(followed);
            };
            gapped |= gap;
            let found = items.len();
            let hidden = self.hidden.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let shown =
                |envelope: &ff_core::event::Envelope| !hidden.contains(&envelope.event.subject);
            let mut kept = items.iter().map(shown).collect::<Vec<_>>().into_iter();
            cursors.retain(|_| kept.next().unwrap_or(true));
            items.retain(shown);
            if !items.is_empty() || found == 0 {
                return Ok(Followed::Events { items, cursors, cursor, gap: gapped });
            }
            follow.from = From::Cursor(cursor);
        }
    }
}

impl Layer for Registered {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        for command in &commands {
            if let Command::RegisterWorker(op) = command {
                self.is_new(&DocumentId::worker(&op.namespace, &op.worker_instance_id));
            }
        }
        self.inner.apply(commands)
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        Box::pin(async move {
            self.register(&claim).await;
            let found = self.inner.take(claim.clone(), wait).await;
            let id = DocumentId::worker(&claim.namespace, &claim.worker_instance_id);
            let refused = found.as_ref().is_err_and(|e| e.code() == Code::WorkerNotRegistered);
            if !refused || !self.is_hidden(&id.into()) {
                return found;
            }
            // The test has outlived even that.
            self.inner.call(registration_of(&claim)).await?;
            self.inner.take(claim, wait).await
        })
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        Box::pin(async move {
            let mut answer = self.inner.query(query).await?;
            if let Answer::Due(dues) = &mut answer {
                // Nothing else of a test lies years ahead.
                let far = dues.now.after(limits::DURATION_MAX_MS / 2);
                dues.items.retain(|(_, at)| *at < far);
            }
            Ok(answer)
        })
    }

    fn act<'a>(
        &'a self,
        behind: &'a dyn Acts,
        act: Act,
    ) -> Pending<'a, Result<Acted, EngineError>> {
        Box::pin(async move {
            if let Act::ClaimForWorker(op) = &act {
                let (worker, instance) = (op.worker_id.clone(), op.worker_instance_id.clone());
                let claim = Claim {
                    namespace: op.namespace.clone(),
                    capabilities: op.capabilities.clone(),
                    ..Claim::new(worker, instance, [op.lane.clone()])
                };
                self.register(&claim).await;
            }
            behind.act(act).await
        })
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        match topic {
            Topic::Events(follow) => Box::pin(self.events(follow, wait)),
            topic => self.inner.follow(topic, wait),
        }
    }
}
