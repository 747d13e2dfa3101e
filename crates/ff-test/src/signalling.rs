//! Waitpoints, signals and suspends with defaults, and what an execution shows of them.

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::event::{Detail, Event, EventKind};
use ff_core::id::{ExecutionId, IdempotencyKey, Kid, SignalId};
use ff_core::limits;
use ff_core::operation::{
    CloseWaitpoint, Command, Decision, DeliverApproval, DeliverSignal, IssueToken, IssuedWaitpoint,
    Message, Operation, Remint, RotateSecret, Suffix, Suspend, Task, WaitpointRef,
};
use ff_core::read::{ListSignals, ListedSignal, ListedWaitpoint, Record};
use ff_core::token::Secret;

use crate::waits;
pub use crate::waits::{fresh, key as waitpoint_key, pending, signal_name, suspend_on};
use crate::world::World;

pub fn signal_key(key: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey::new(key).expect("an idempotency key"))
}

/// A waitpoint by its name.
pub fn keyed(name: &str) -> WaitpointRef {
    WaitpointRef::Key(waitpoint_key(name))
}

/// A suspend on a fresh waitpoint until its first signal of whatever name.
pub fn suspend(task: &Task, key: &str) -> Suspend {
    waits::suspend(task, waits::wildcard(key))
}

/// A small message of a user, without an idempotency key.
pub fn message(name: &str) -> Message {
    Message {
        category: "test".to_owned(),
        source_type: "user".to_owned(),
        source_identity: "ada".to_owned(),
        content: Content::new(b"hello".as_slice()),
        ..Message::new(signal_name(name))
    }
}

/// A signal to a waitpoint by its id, with the token.
pub fn signal(id: ExecutionId, to: &IssuedWaitpoint, name: &str) -> DeliverSignal {
    DeliverSignal { signal: message(name), ..DeliverSignal::new(id, to, signal_name(name)) }
}

/// The same with an idempotency key.
pub fn signal_once(id: ExecutionId, to: &IssuedWaitpoint, key: &str) -> DeliverSignal {
    let plain = signal(id, to, "once");
    let signal = Message { idempotency_key: signal_key(key), ..plain.signal };
    DeliverSignal { signal, ..plain }
}

/// An operator's yes, without a comment.
pub fn approval(id: ExecutionId, key: &str) -> DeliverApproval {
    DeliverApproval {
        execution_id: id,
        waitpoint: keyed(key),
        lane: None,
        signal_id: SignalId::mint(),
        decision: Decision::Approve,
        name: None,
        suffix: Suffix::default(),
        comment: None,
        operator: "grace".to_owned(),
    }
}

pub fn close(id: ExecutionId, key: &str) -> CloseWaitpoint {
    CloseWaitpoint { execution_id: id, waitpoint: keyed(key), reason: "not needed".to_owned() }
}

/// Asks for the token of a waitpoint once more.
pub fn issue(id: ExecutionId, key: &str) -> IssueToken {
    IssueToken { execution_id: id, waitpoint: keyed(key), remint: None }
}

/// Asks for a new endless token in place of the old one.
pub fn remint(id: ExecutionId, key: &str) -> IssueToken {
    IssueToken { remint: Some(Remint { token_ttl_ms: None }), ..issue(id, key) }
}

/// 32 equal bytes as a secret.
pub fn secret_of(byte: u8) -> Secret {
    Secret::from_bytes(vec![byte; 32]).expect("32 bytes are a secret")
}

pub fn rotate(kid: &str, byte: u8, grace_ms: u64) -> RotateSecret {
    RotateSecret { kid: Kid::new(kid).expect("a kid"), secret: secret_of(byte), grace_ms }
}

/// All that an execution shows of itself.
#[derive(Debug, PartialEq)]
pub struct Shown {
    pub record: Record,
    pub waitpoints: Vec<ListedWaitpoint>,
    pub signals: Vec<ListedSignal>,
    pub events: Vec<Event>,
}

impl World {
    /// All signals that an execution has accepted.
    pub async fn signals(&self, id: ExecutionId) -> Vec<ListedSignal> {
        let (mut signals, mut from) = (Vec::new(), Some(0));
        while let Some(next) = from {
            let query = ListSignals { execution_id: id, from: next, limit: limits::PAGE_MAX };
            let page = self.backend.ask(query).await.expect("signals");
            signals.extend(page.items);
            from = page.next;
        }
        signals
    }

    /// A running task with one pending waitpoint.
    pub async fn start_with(&self, key: &str) -> (Task, IssuedWaitpoint) {
        let task = self.start(self.work()).await;
        let issued = self.act(pending(&task, key)).await;
        (task, issued)
    }

    /// A suspended task and the one waitpoint that it waits for.
    pub async fn listening(&self, key: &str) -> (Task, IssuedWaitpoint) {
        let task = self.start(self.work()).await;
        let suspended = self.act(suspend(&task, key)).await;
        let [issued] = suspended.waitpoints.try_into().expect("one waitpoint");
        (task, issued)
    }

    /// What the events of one kind about an execution say under `field`, oldest first.
    pub async fn told(&self, id: ExecutionId, kind: EventKind, field: &str) -> Vec<Detail> {
        let events = self.events(id).await.into_iter().filter(|event| event.kind == kind);
        events.map(|mut event| event.data.remove(field).expect("a detail")).collect()
    }

    pub async fn shown(&self, id: ExecutionId) -> Shown {
        Shown {
            record: self.describe(id).await,
            waitpoints: self.waitpoints(id).await,
            signals: self.signals(id).await,
            events: self.events(id).await,
        }
    }

    /// The operation is refused with this code, and nothing that its execution shows has changed.
    pub async fn turns_away(&self, operation: impl Into<Command>, expected: Code) {
        let command = operation.into();
        let id = command.execution_id().expect("an operation on one execution");
        let before = self.shown(id).await;
        self.refuses(command, expected).await;
        assert_eq!(self.shown(id).await, before, "refused with {expected}, and something changed");
    }

    /// The operation is answered, and nothing that its execution shows has changed.
    pub async fn leaves_alone<O: Operation>(&self, operation: O) -> O::Reply {
        let id = operation.execution_id().expect("an operation on one execution");
        let before = self.shown(id).await;
        let reply = self.act(operation).await;
        assert_eq!(self.shown(id).await, before, "{} changed something", O::NAME);
        reply
    }
}
