//! What a rule may ask, and how it says that it does not know yet.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::capability::Capabilities;
use crate::content::Content;
use crate::id::{
    DocumentId, ExecutionId, FlowId, Home, IdempotencyKey, LaneId, Namespace, Subject,
};
use crate::partition::PartitionConfig;
use crate::policy::Retention;
use crate::state::{Document, Execution, LaneState, Outcome};
use crate::time::TimestampMs;
use crate::token::Keyring;

use super::rows::RowKey;

/// The answer to a question: there, known to be absent, or needed.
pub type Known<T> = Result<Option<T>, Needs>;

/// What a rule may ask.
pub trait Facts {
    fn settings(&self) -> &Settings;

    fn execution(&self, id: ExecutionId) -> Known<Arc<Execution>>;

    fn document(&self, id: &DocumentId) -> Known<Arc<Document>>;

    fn payload(&self, id: ExecutionId) -> Known<Bytes>;

    /// The result of its newest attempt.
    fn result(&self, id: ExecutionId) -> Known<Content>;

    fn dedup(&self, key: &DedupKey) -> Known<DedupRecord>;

    /// The front of the queues that `view` covers, merged in order: at least `at_least` entries, or
    /// all there are. The store proposes; the rule confirms each one.
    fn candidates(&self, view: &QueueView, at_least: usize) -> Result<Candidates, Needs>;

    /// What is due at `now` in a home, or in all, oldest first: at most `most`.
    fn due(&self, home: Option<&Home>, now: TimestampMs, most: usize) -> Result<DueList, Needs>;

    /// A row beside an execution or a document.
    fn row(&self, of: &Subject, key: &RowKey) -> Known<Bytes>;

    /// The keys that sign waitpoint tokens.
    fn keyring(&self) -> Result<Arc<Keyring>, Needs>;

    /// Whether some of what is lacking is there and cannot be read: nothing will bring it.
    fn is_lost(&self, lacking: &Needs) -> bool;

    /// Asks for many rows at once.
    fn want_rows(&self, of: &Subject, keys: &[RowKey]) -> Result<(), Needs> {
        let mut needs = Needs::default();
        for key in keys {
            needs.note(self.row(of, key));
        }
        needs.into_result()
    }

    /// Asks for executions and payloads of many at once, so that one round loads them all.
    fn want_tasks(&self, ids: &[ExecutionId]) -> Result<(), Needs> {
        let mut needs = Needs::default();
        for &id in ids {
            needs.note(self.execution(id));
            needs.note(self.payload(id));
        }
        needs.into_result()
    }

    /// The state of a lane; one that nobody has said anything of is active.
    fn lane_state(&self, namespace: &Namespace, lane: &LaneId) -> Result<LaneState, Needs> {
        let document = self.document(&DocumentId::lane(namespace, lane))?;
        let lane = document.as_ref().and_then(|document| document.lane());
        Ok(lane.map_or(LaneState::default(), |lane| lane.state))
    }

    /// Asks for many executions at once.
    fn want_executions(&self, ids: &[ExecutionId]) -> Result<(), Needs> {
        let mut needs = Needs::default();
        for &id in ids {
            needs.note(self.execution(id));
        }
        needs.into_result()
    }
}

/// What a deployment sets for every rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Names the kind of store in handles.
    pub store: &'static str,
    pub partitions: PartitionConfig,
    /// For policies that do not say; the last resort is [`crate::limits::RETENTION_MS`].
    pub retention: Retention,
}

impl Settings {
    pub fn new(store: &'static str, partitions: PartitionConfig) -> Self {
        Self { store, partitions, retention: Retention::default() }
    }

    pub(super) fn retention_ms(&self, execution: &Execution, outcome: Outcome) -> u64 {
        let policy = &execution.policy().retention;
        let policy = policy.or(execution.about.retention);
        policy.of(outcome).or(self.retention.of(outcome)).unwrap_or(crate::limits::RETENTION_MS)
    }
}

/// Where an idempotency key is looked up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DedupKey {
    pub partition: u16,
    pub scope: DedupScope,
    pub key: IdempotencyKey,
}

/// Within what an idempotency key is one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DedupScope {
    Namespace(Namespace),
    /// Members of a flow.
    Flow(FlowId),
}

/// The name under which stores keep it. No namespace holds a colon.
impl fmt::Display for DedupScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace(namespace) => f.write_str(namespace),
            Self::Flow(flow) => write!(f, "flow:{flow}"),
        }
    }
}

/// What is remembered of a submit with a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DedupRecord {
    pub execution_id: ExecutionId,
    pub fingerprint: [u8; 32],
    pub expires_at: TimestampMs,
}

/// The queues of one lane that a worker with these capabilities covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueView {
    pub namespace: Namespace,
    pub lane: LaneId,
    pub capabilities: Capabilities,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidates {
    pub ids: Vec<ExecutionId>,
    /// There are no more behind these.
    pub complete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DueList {
    pub ids: Vec<Subject>,
    /// There are no more behind these.
    pub complete: bool,
}

/// A fact that a step lacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    Execution(ExecutionId),
    Document(DocumentId),
    Payload(ExecutionId),
    Result(ExecutionId),
    Dedup(DedupKey),
    /// The front of a view, at least so many entries.
    Queue(QueueView, usize),
    /// What is due at an instant, at most so many.
    Due(Option<Home>, TimestampMs, usize),
    Row(Subject, RowKey),
    Keyring,
}

/// The facts that a step, or a whole batch of steps, lacked. May name one several times.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Needs(pub Vec<Need>);

impl Needs {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// How many entries of each view are needed in all: claims of one batch add up.
    pub fn queue_totals(&self) -> HashMap<&QueueView, usize> {
        let mut totals = HashMap::new();
        for need in &self.0 {
            if let Need::Queue(view, count) = need {
                *totals.entry(view).or_default() += count;
            }
        }
        totals
    }

    pub(super) fn note<T>(&mut self, known: Known<T>) {
        if let Err(needs) = known {
            self.merge(needs);
        }
    }

    /// What is known; what is not is noted.
    pub(super) fn found<T>(&mut self, known: Known<T>) -> Option<T> {
        known.unwrap_or_else(|needs| {
            self.merge(needs);
            None
        })
    }

    pub(super) fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl From<Need> for Needs {
    fn from(need: Need) -> Self {
        Self(vec![need])
    }
}
