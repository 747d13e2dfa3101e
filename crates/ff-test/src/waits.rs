//! Short words for suspensions, waitpoints and signals.

use ff_core::backend::{Backend, BackendExt};
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Kid, SignalName, WaitpointId, WaitpointKey};
use ff_core::operation::{
    Binding, CreatePendingWaitpoint, DeliverSignal, IssuedWaitpoint, Message, Resume, ResumeSignal,
    SeedSecret, Signalled, Suspend, SuspendTimeout, Task,
};
use ff_core::read::{
    ListPendingWaitpoints, ListSuspended, ListWaitpoints, ListedSuspension, ListedWaitpoint,
    ObserveSignals, Page, Question, WaitingFilter,
};
use ff_core::state::{
    Condition, Count, CountKind, Matcher, SetMode, SignalEffect, TimeoutBehavior,
};
use ff_core::token::{self, Keyring};

use crate::world::World;

pub fn key(name: &str) -> WaitpointKey {
    WaitpointKey::new(name).expect("a waitpoint key")
}

pub fn signal_name(name: &str) -> SignalName {
    SignalName::new(name).expect("a signal name")
}

/// The first signal of this name.
pub fn named(waitpoint: &str, name: &str) -> Condition {
    Condition::Single { waitpoint: key(waitpoint), name: Matcher::ByName(signal_name(name)) }
}

/// The first signal, whatever its name.
pub fn wildcard(waitpoint: &str) -> Condition {
    Condition::Single { waitpoint: key(waitpoint), name: Matcher::Wildcard }
}

pub fn set(waitpoint: &str, names: &[&str], mode: SetMode) -> Condition {
    let names = names.iter().map(|name| signal_name(name)).collect();
    Condition::SignalSet { waitpoint: key(waitpoint), names, mode }
}

/// So many different things, whatever the names of the signals.
pub fn count(n: u32, kind: CountKind, waitpoints: &[&str]) -> Condition {
    let waitpoints = waitpoints.iter().map(|name| key(name)).collect();
    Condition::Count(Count { n, kind, name: Matcher::Wildcard, waitpoints })
}

pub fn fresh(name: &str) -> Binding {
    Binding::fresh(key(name))
}

pub fn use_pending(waitpoint: &IssuedWaitpoint) -> Binding {
    Binding::UsePending { waitpoint_id: waitpoint.waitpoint_id }
}

/// A suspend with a fresh waitpoint for every name of its condition, and defaults for the rest.
pub fn suspend(task: &Task, condition: Condition) -> Suspend {
    let mut names = condition.waitpoints();
    let mut seen = Vec::new();
    names.retain(|name| {
        let is_new = !seen.contains(name);
        seen.push(*name);
        is_new
    });
    let bindings = names.into_iter().map(|name| fresh(name)).collect();
    suspend_on(task, bindings, condition)
}

/// A suspend with these waitpoints, and defaults for the rest.
pub fn suspend_on(task: &Task, bindings: Vec<Binding>, condition: Condition) -> Suspend {
    Suspend::new(task.execution_id, task.fence(), bindings, condition)
}

/// The same suspend with a timeout.
pub fn within(ms: u64, behavior: TimeoutBehavior, suspend: Suspend) -> Suspend {
    let timeout = Some(SuspendTimeout::For(ms));
    Suspend { timeout, timeout_behavior: Some(behavior), ..suspend }
}

/// A waitpoint made before a suspend.
pub fn pending(task: &Task, name: &str) -> CreatePendingWaitpoint {
    CreatePendingWaitpoint {
        execution_id: task.execution_id,
        fence: task.fence(),
        waitpoint_id: WaitpointId::mint(),
        key: key(name),
        expires_at: None,
        token_ttl_ms: None,
    }
}

/// A signal with an id of its own and the waitpoint's token.
pub fn signal(id: ExecutionId, waitpoint: &IssuedWaitpoint, name: &str) -> DeliverSignal {
    let signal = DeliverSignal::new(id, waitpoint, signal_name(name));
    let message = Message {
        category: "event".to_owned(),
        source_type: "service".to_owned(),
        source_identity: "tester".to_owned(),
        content: Content::new(name.to_owned()),
        ..signal.signal
    };
    DeliverSignal { signal: message, ..signal }
}

/// The same signal from another source.
pub fn from_source(source_type: &str, identity: &str, signal: DeliverSignal) -> DeliverSignal {
    let (source_type, source_identity) = (source_type.to_owned(), identity.to_owned());
    let message = Message { source_type, source_identity, ..signal.signal };
    DeliverSignal { signal: message, ..signal }
}

/// A resume by an operator.
pub fn resume(id: ExecutionId) -> Resume {
    Resume { execution_id: id, trigger: "operator".to_owned(), delay_ms: None }
}

/// A waitpoint with the first token that any stage makes for it.
pub fn issued(execution_id: ExecutionId, waitpoint_id: WaitpointId, name: &str) -> IssuedWaitpoint {
    let keyring = Keyring::seeded(Kid::first(), crate::stages::secret());
    let binding = token::Binding { execution_id, waitpoint_id, issue: 1, expires_at: None };
    let token = token::sign(&keyring, &binding).token;
    IssuedWaitpoint { waitpoint_id, key: key(name), token, replayed: false }
}

/// The key that every stage begins with.
pub fn seed() -> SeedSecret {
    SeedSecret { kid: Kid::first(), secret: crate::stages::secret() }
}

pub fn names(signals: &[ResumeSignal]) -> Vec<&str> {
    signals.iter().map(|signal| signal.name.as_str()).collect()
}

/// Walks over all waitpoints that a filter names, in pages of this size.
pub async fn all_waitpoints(
    backend: &dyn Backend,
    filter: &WaitingFilter,
    limit: u32,
) -> Result<Vec<ListedWaitpoint>, EngineError> {
    let page = |cursor| ListPendingWaitpoints { filter: filter.clone(), cursor, limit };
    all_pages(backend, limit, page).await
}

/// Walks over all suspended executions that a filter names, in pages of this size.
pub async fn all_suspended(
    backend: &dyn Backend,
    filter: &WaitingFilter,
    limit: u32,
) -> Result<Vec<ListedSuspension>, EngineError> {
    let page = |cursor| ListSuspended { filter: filter.clone(), cursor, limit };
    all_pages(backend, limit, page).await
}

async fn all_pages<T: Send, Q: Question<Answer = Page<T>>>(
    backend: &dyn Backend,
    limit: u32,
    page: impl Fn(Option<String>) -> Q,
) -> Result<Vec<T>, EngineError> {
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let answer = backend.ask(page(cursor)).await?;
        assert!(answer.items.len() <= limit as usize, "a page of more than {limit}");
        seen.extend(answer.items);
        cursor = answer.next_cursor;
        if cursor.is_none() {
            return Ok(seen);
        }
    }
}

impl World {
    /// Suspends, which must release the lease; gives the waitpoints in the order of the bindings.
    pub async fn suspend(&self, suspend: Suspend) -> Vec<IssuedWaitpoint> {
        let reply = self.act(suspend).await;
        assert!(!reply.already_satisfied && !reply.replayed, "{reply:?}");
        reply.waitpoints
    }

    /// A new execution that is suspended on a condition.
    pub async fn suspended(&self, condition: Condition) -> (Task, Vec<IssuedWaitpoint>) {
        let task = self.start(self.work()).await;
        let waitpoints = self.suspend(suspend(&task, condition)).await;
        (task, waitpoints)
    }

    pub async fn pending(&self, task: &Task, name: &str) -> IssuedWaitpoint {
        self.act(pending(task, name)).await
    }

    /// Delivers a new signal and tells what it did.
    pub async fn deliver(&self, signal: DeliverSignal) -> SignalEffect {
        let sent = signal.signal.signal_id;
        match self.act(signal).await {
            Signalled::Accepted { signal_id, effect } if signal_id == sent => effect,
            other => panic!("{other:?}"),
        }
    }

    /// Sends a signal of this name.
    pub async fn signal(&self, task: &Task, at: &IssuedWaitpoint, name: &str) -> SignalEffect {
        self.deliver(signal(task.execution_id, at, name)).await
    }

    /// The signals that resumed the attempt of a task.
    pub async fn observe(&self, task: &Task) -> Vec<ResumeSignal> {
        let query = ObserveSignals { execution_id: task.execution_id, fence: task.fence() };
        self.backend.ask(query).await.expect("signals")
    }

    /// All waitpoints that a filter names, over pages of this size.
    pub async fn inbox(&self, filter: &WaitingFilter, limit: u32) -> Vec<ListedWaitpoint> {
        all_waitpoints(&*self.backend, filter, limit).await.expect("waitpoints")
    }

    /// All suspended executions that a filter names, over pages of this size.
    pub async fn all_suspended(&self, filter: &WaitingFilter, limit: u32) -> Vec<ListedSuspension> {
        all_suspended(&*self.backend, filter, limit).await.expect("suspensions")
    }

    /// Waitpoints that are not closed.
    pub async fn waitpoints(&self, id: ExecutionId) -> Vec<ListedWaitpoint> {
        self.backend.ask(ListWaitpoints { execution_id: id }).await.expect("waitpoints")
    }
}
