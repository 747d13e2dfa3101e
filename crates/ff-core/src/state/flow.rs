//! A flow: a DAG of executions.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Attached, Due, DueKind, List, Listing, PublicState};
use crate::id::{FlowId, Kind, Namespace};
use crate::tags::Tags;
use crate::time::TimestampMs;

/// The record of a flow. Members and edges stand in rows beside it; what a member is to its flow
/// stands in the member ([`super::Member`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    pub id: FlowId,
    pub namespace: Namespace,
    pub kind: Kind,
    pub tags: Tags,
    pub created_at: TimestampMs,
    /// How long it is kept once it has ended.
    pub retention_ms: u64,
    /// What all its members stand under.
    pub attached: Attached,
    /// What a submit with the same idempotency key is compared with.
    pub fingerprint: Option<[u8; 32]>,
    /// Counts changes of members, edges and groups.
    pub graph_revision: u64,
    pub members: u32,
    pub edges: u32,
    /// How many of those were removed by themselves. Their numbers are not used again.
    pub gone: Gone,
    /// Members that have not ended.
    pub live: u32,
    /// Failures noted since it was made; some may have been handled or replayed meanwhile.
    pub failures: u32,
    /// Its failures are being looked at one after another.
    pub judging: bool,
    /// It is on its way out with all its members.
    pub removing: bool,
    /// Some member has waited for others: who waits for whom is more than the edges say.
    pub waits: bool,
    /// Members of the submitted graph.
    pub folded: u32,
    /// Edges of the submitted graph have ids that count up from here.
    pub edge_seed: Option<(Uuid, u32)>,
    pub end: Option<FlowEnd>,
    pub cancel: Option<FlowCancel>,
    pub work: Work,
}

/// Members that were removed by themselves, and the edges that led from them and to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gone {
    pub members: u32,
    pub edges: u32,
}

/// All members have ended, or it was cancelled and they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEnd {
    /// At least one failure was not handled.
    pub failed: bool,
    pub at: TimestampMs,
    /// When the flow is removed with all its members.
    pub kept_until: TimestampMs,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowCancel {
    pub policy: CancelPolicy,
    pub reason: String,
    pub at: TimestampMs,
}

/// What a cancelled flow means for its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelPolicy {
    /// Every member that has not ended is cancelled.
    CancelAll,
    /// Running members go on; all others are cancelled.
    CancelPending,
    /// Members go on; nothing can be added.
    FlowOnly,
}

/// What is left to be done, in rows numbered `first..next` beside the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Work {
    pub first: u32,
    pub next: u32,
    /// When the oldest was left, and whose work it is.
    pub since: TimestampMs,
    pub kind: WorkKind,
    /// Items that edges must wait for.
    pub barriers: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WorkKind {
    /// Edges of members that have ended.
    #[default]
    Resolve,
    /// Failures that may have been handled.
    Judge,
    /// Upstreams of a group that has decided.
    CancelSiblings,
    /// Members of a cancelled flow.
    CancelMembers,
    /// Members of a submitted graph that are not there yet.
    Unfold,
    /// Members of a flow that is being removed.
    Remove,
}

/// What users see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowState {
    Open,
    Running,
    Blocked,
    Completed,
    Failed,
    Cancelled,
}

/// How many members of a flow are in each state, how many have ever started, and how many wait that
/// nobody may claim. Stores count them by comparing executions before and after
/// ([`super::Recounted`]).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberCounts {
    states: [u32; PublicState::ALL.len()],
    pub started: u32,
    pub kept_back: u32,
}

impl CancelPolicy {
    pub const ALL: [Self; 3] = [Self::CancelAll, Self::CancelPending, Self::FlowOnly];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CancelAll => "cancel_all",
            Self::CancelPending => "cancel_pending",
            Self::FlowOnly => "flow_only",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text)
    }
}

impl FlowState {
    pub const ALL: [Self; 6] =
        [Self::Open, Self::Running, Self::Blocked, Self::Completed, Self::Failed, Self::Cancelled];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Running => "running",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl Work {
    pub const fn is_empty(&self) -> bool {
        self.first == self.next
    }
}

impl WorkKind {
    const fn due(self) -> DueKind {
        match self {
            Self::Resolve => DueKind::DependencyReconciler,
            Self::Judge => DueKind::FlowProjector,
            Self::CancelSiblings => DueKind::EdgeCancelDispatcher,
            Self::CancelMembers => DueKind::CancelReconciler,
            Self::Unfold => DueKind::FlowBuilder,
            Self::Remove => DueKind::RetentionTrimmer,
        }
    }
}

impl MemberCounts {
    /// The field that counts members that have started.
    pub const STARTED: u8 = 64;
    /// The field that counts members that wait and are held or have no worker; fields below are
    /// numbers of states.
    pub const KEPT_BACK: u8 = 65;

    /// Every field that there is.
    pub fn all_fields() -> impl Iterator<Item = u8> {
        let states = PublicState::ALL.iter().map(|state| *state as u8);
        states.chain([Self::STARTED, Self::KEPT_BACK])
    }

    pub fn of(&self, state: PublicState) -> u32 {
        self.states[state as usize]
    }

    /// Adds to a field; one that this build does not know counts nothing.
    pub fn add(&mut self, field: u8, delta: i64) {
        let count = match field {
            Self::STARTED => Some(&mut self.started),
            Self::KEPT_BACK => Some(&mut self.kept_back),
            state => self.states.get_mut(usize::from(state)),
        };
        if let Some(count) = count {
            *count = count.saturating_add_signed(i32::try_from(delta).unwrap_or_default());
        }
    }

    /// Every field that is not zero.
    pub fn fields(&self) -> impl Iterator<Item = (u8, u32)> {
        let states = (0..).zip(self.states);
        let others = [(Self::STARTED, self.started), (Self::KEPT_BACK, self.kept_back)];
        states.chain(others).filter(|(_, count)| *count > 0)
    }

    /// Whether a member runs or could, now or once its time has come.
    fn any_moves(&self) -> bool {
        let moves = [
            PublicState::Active,
            PublicState::Suspended,
            PublicState::Resumable,
            PublicState::Delayed,
        ];
        moves.into_iter().any(|state| self.of(state) > 0)
            || self.of(PublicState::Waiting) > self.kept_back
    }

    /// States that members are in, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (PublicState, u32)> {
        let all = PublicState::ALL.iter().map(|state| (*state, self.of(*state)));
        all.filter(|(_, count)| *count > 0)
    }
}

impl Flow {
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some()
    }

    /// Members that are there.
    pub const fn node_count(&self) -> u32 {
        self.members - self.gone.members
    }

    /// Edges between members that are there.
    pub const fn edge_count(&self) -> u32 {
        self.edges - self.gone.edges
    }

    /// Whether no member may be claimed any more.
    pub fn stops_claims(&self) -> bool {
        self.cancel.as_ref().is_some_and(|cancel| cancel.policy != CancelPolicy::FlowOnly)
    }

    /// Whether members are still to be cancelled.
    pub fn is_being_cancelled(&self) -> bool {
        self.stops_claims() && self.live > 0 && !self.work.is_empty()
    }

    pub fn state(&self, counts: &MemberCounts) -> FlowState {
        if self.is_cancelled() {
            FlowState::Cancelled
        } else if let Some(end) = self.end {
            if end.failed { FlowState::Failed } else { FlowState::Completed }
        } else if counts.started == 0 {
            FlowState::Open
        } else if counts.any_moves() {
            FlowState::Running
        } else {
            FlowState::Blocked
        }
    }

    pub(crate) fn due(&self) -> Option<Due> {
        if !self.work.is_empty() {
            return Some(Due { at: self.work.since, kind: self.work.kind.due() });
        }
        self.end.map(|end| Due { at: end.kept_until, kind: DueKind::RetentionTrimmer })
    }

    /// Among all flows newest first: the order of that list is that of negated time.
    pub(super) fn listing(&self) -> Listing<'_> {
        self.listed(List::Flow, TimestampMs(-self.created_at.0))
    }

    /// None unless its cancel is still being carried out.
    pub(super) fn backlog_listing(&self) -> Option<Listing<'_>> {
        let cancel = self.cancel.as_ref().filter(|_| self.is_being_cancelled())?;
        Some(self.listed(List::CancelBacklog, cancel.at))
    }

    fn listed(&self, list: List, at: TimestampMs) -> Listing<'_> {
        Listing { namespace: &self.namespace, list, at, name: self.id.uuid() }
    }
}
