//! What an execution is to its flow.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Execution, MemberCounts, Outcome, PublicState};
use crate::id::{DocumentId, FlowId, MemberName};

/// An execution's part in its flow. Its edges stand in rows beside it, in pages; their state follows
/// from the outcome of their upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub flow_id: FlowId,
    /// Counts members in the order in which they were added.
    pub number: u32,
    pub name: Option<MemberName>,
    /// The edges that lead to it and count.
    pub group: Group,
    /// Edges that lead to it, and from it.
    pub ins: u32,
    pub outs: u32,
    /// How many of its outgoing edges have been looked at since it ended.
    pub resolved: u32,
    /// What is left of taking back what the generation before has resolved.
    pub taking_back: Option<Box<TakingBack>>,
    /// Members that wait for its end.
    pub parents: Vec<Parent>,
    /// How often it has waited for children, and for how many the last time.
    pub waits: u32,
    pub children: u32,
    /// The attempt that waited the last time.
    pub waiting_attempt: u32,
}

/// Outgoing edges of a replayed member that are still to be taken back: more than one step does.
/// Until then they count in their groups as the generation before has resolved them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakingBack {
    /// That of the generation before.
    pub outcome: Outcome,
    /// Those left are `from..to`.
    pub from: u32,
    pub to: u32,
    /// Those from here on were never resolved.
    pub resolved: u32,
    pub reach: Reach,
    /// Edges that were applied meanwhile, and never counted.
    pub except: Vec<u32>,
}

/// How far a replay goes beyond its member and what was skipped because of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reach {
    /// Downstreams that ran are replayed too.
    pub descendants: bool,
    /// So are upstreams that were cancelled because a group could not be satisfied any more.
    pub siblings: bool,
}

/// A member that waits for the end of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub uuid: Uuid,
    /// Which of its waits.
    pub wait: u32,
}

/// All applied edges of one member with their join rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Group {
    pub join: Join,
    /// Edges that count.
    pub edges: u32,
    pub satisfied: u32,
    pub impossible: u32,
    pub state: GroupState,
}

/// When a group lets its member go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Join {
    /// All edges are satisfied.
    #[default]
    AllOf,
    /// One is.
    AnyOf(OnSatisfied),
    /// So many are.
    Quorum(u32, OnSatisfied),
}

/// What becomes of the other upstreams when a group has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnSatisfied {
    #[default]
    CancelRemaining,
    LetRun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupState {
    #[default]
    Pending,
    Satisfied,
    Impossible,
    /// Its member was cancelled before the group decided.
    Cancelled,
}

/// Which outcomes satisfy an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    #[default]
    SuccessOnly,
    Always,
    FailureOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeState {
    Pending,
    Satisfied,
    Impossible,
}

/// How an execution counts in its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    pub state: PublicState,
    pub started: bool,
    /// It waits, and nobody may claim it.
    pub kept_back: bool,
}

/// What a change does to the counts of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recounted {
    pub flow: DocumentId,
    pub before: Option<Counted>,
    pub after: Option<Counted>,
}

impl EdgeKind {
    pub const ALL: [Self; 3] = [Self::SuccessOnly, Self::Always, Self::FailureOnly];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SuccessOnly => "success_only",
            Self::Always => "always",
            Self::FailureOnly => "failure_only",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    pub const fn is_satisfied_by(self, outcome: Outcome) -> bool {
        match self {
            Self::SuccessOnly => matches!(outcome, Outcome::Success),
            Self::Always => true,
            Self::FailureOnly => matches!(outcome, Outcome::Failed | Outcome::Expired),
        }
    }

    pub const fn resolved_by(self, outcome: Outcome) -> EdgeState {
        if self.is_satisfied_by(outcome) { EdgeState::Satisfied } else { EdgeState::Impossible }
    }
}

impl EdgeState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Satisfied => "satisfied",
            Self::Impossible => "impossible",
        }
    }
}

impl GroupState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Satisfied => "satisfied",
            Self::Impossible => "impossible",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Join {
    /// Whether the other upstreams are cancelled when the group has decided.
    pub const fn cancels_remaining(self) -> bool {
        match self {
            Self::AllOf => false,
            Self::AnyOf(then) | Self::Quorum(_, then) => {
                matches!(then, OnSatisfied::CancelRemaining)
            }
        }
    }
}

impl TakingBack {
    /// Whether an edge counts as the generation before has resolved it.
    pub fn counts(&self, slot: u32) -> bool {
        (self.from..self.to.min(self.resolved)).contains(&slot) && !self.except.contains(&slot)
    }
}

impl Group {
    /// One more edge counts.
    pub fn apply(&mut self) {
        self.edges += 1;
    }

    /// An edge has resolved; true if the group decides with it.
    pub fn resolve(&mut self, edge: EdgeState) -> bool {
        self.count(edge);
        let before = self.state;
        if before == GroupState::Pending && edge != EdgeState::Pending {
            self.state = self.decide();
        }
        self.state != before
    }

    /// An edge has resolved, and the group decides nothing by it.
    pub fn count(&mut self, edge: EdgeState) {
        match edge {
            EdgeState::Pending => {}
            EdgeState::Satisfied => self.satisfied += 1,
            EdgeState::Impossible => self.impossible += 1,
        }
    }

    /// An edge is pending again. A group that has decided stays so until it is reopened.
    pub fn unresolve(&mut self, edge: EdgeState) {
        match edge {
            EdgeState::Pending => {}
            EdgeState::Satisfied => self.satisfied = self.satisfied.saturating_sub(1),
            EdgeState::Impossible => self.impossible = self.impossible.saturating_sub(1),
        }
    }

    /// Decides from its edges as they are.
    pub fn reopen(&mut self) {
        let untouched = self.satisfied + self.impossible == 0;
        self.state = if untouched { GroupState::Pending } else { self.decide() };
    }

    /// What the edges that have resolved say.
    fn decide(&self) -> GroupState {
        let (wanted, possible) = match self.join {
            Join::AllOf => (self.edges, self.edges - self.impossible),
            Join::AnyOf(_) => (1, self.edges - self.impossible),
            Join::Quorum(k, _) => (k, self.edges - self.impossible),
        };
        if self.satisfied >= wanted {
            GroupState::Satisfied
        } else if possible < wanted {
            GroupState::Impossible
        } else {
            GroupState::Pending
        }
    }

    /// Whether it keeps a member that has not started from running.
    pub const fn blocks(&self) -> bool {
        self.edges > 0 && !matches!(self.state, GroupState::Satisfied)
    }

    pub const fn unresolved(&self) -> u32 {
        self.edges - self.satisfied - self.impossible
    }
}

impl Recounted {
    /// What differs; none if nothing does.
    pub fn between(before: Option<&Execution>, after: Option<&Execution>) -> Option<Self> {
        let member = |execution: Option<&Execution>| {
            let execution = execution?;
            let member = execution.member.as_ref()?;
            Some((
                DocumentId::flow_in(execution.id.partition(), member.flow_id),
                execution.counted(),
            ))
        };
        let (before, after) = (member(before), member(after));
        if before == after {
            return None;
        }
        let flow = after.as_ref().or(before.as_ref())?.0.clone();
        let counted = |side: Option<(DocumentId, Counted)>| side.map(|(_, counted)| counted);
        Some(Self { flow, before: counted(before), after: counted(after) })
    }

    /// What to add to which field of [`super::MemberCounts`].
    pub fn deltas(&self) -> Vec<(u8, i64)> {
        let mut deltas = Vec::new();
        for (counted, delta) in [(self.before, -1), (self.after, 1)] {
            let Some(counted) = counted else { continue };
            deltas.push((counted.state as u8, delta));
            deltas.extend(counted.started.then_some((MemberCounts::STARTED, delta)));
            deltas.extend(counted.kept_back.then_some((MemberCounts::KEPT_BACK, delta)));
        }
        deltas.sort_unstable();
        deltas.dedup_by(|(field, delta), (before, sum)| {
            let same = field == before;
            *sum += if same { *delta } else { 0 };
            same
        });
        deltas.retain(|(_, delta)| *delta != 0);
        deltas
    }
}

impl Execution {
    pub fn counted(&self) -> Counted {
        let state = self.public_state();
        let kept_back = state == PublicState::Waiting && self.phase.claimable().is_none();
        Counted { state, started: self.started_at.is_some(), kept_back }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(join: Join, edges: u32, resolved: &[EdgeState]) -> GroupState {
        let mut group = Group { join, edges, ..Group::default() };
        let decided = resolved.iter().filter(|edge| group.resolve(**edge)).count();
        assert!(decided <= 1, "a group decides once");
        group.state
    }

    #[test]
    fn joins_decide_as_soon_as_they_can() {
        use EdgeState::{Impossible as No, Satisfied as Yes};
        let any = Join::AnyOf(OnSatisfied::LetRun);
        let two = Join::Quorum(2, OnSatisfied::LetRun);
        for (join, edges, resolved, expected) in [
            (Join::AllOf, 2, &[Yes][..], GroupState::Pending),
            (Join::AllOf, 2, &[Yes, Yes], GroupState::Satisfied),
            (Join::AllOf, 3, &[Yes, No, Yes], GroupState::Impossible),
            (any, 3, &[No, No], GroupState::Pending),
            (any, 3, &[No, Yes, No], GroupState::Satisfied),
            (any, 2, &[No, No], GroupState::Impossible),
            (two, 3, &[Yes, No], GroupState::Pending),
            (two, 3, &[Yes, No, Yes], GroupState::Satisfied),
            (two, 3, &[No, No, Yes], GroupState::Impossible),
            // More than there are edges: known with the first that resolves.
            (two, 1, &[], GroupState::Pending),
            (two, 1, &[Yes], GroupState::Impossible),
        ] {
            assert_eq!(after(join, edges, resolved), expected, "{join:?} {edges} {resolved:?}");
        }
    }

    #[test]
    fn kinds_and_outcomes() {
        use Outcome::{Cancelled, Expired, Failed, Skipped, Success};
        let satisfying = |kind: EdgeKind| {
            let all = [Success, Failed, Cancelled, Expired, Skipped];
            all.into_iter().filter(|outcome| kind.is_satisfied_by(*outcome)).collect::<Vec<_>>()
        };
        assert_eq!(satisfying(EdgeKind::SuccessOnly), [Success]);
        assert_eq!(satisfying(EdgeKind::Always).len(), 5);
        assert_eq!(satisfying(EdgeKind::FailureOnly), [Failed, Expired]);
    }
}
