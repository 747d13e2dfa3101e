//! Tally: what the steps of this process have done, counted for metrics. Nothing decides by it.
//!
//! Every transition is written by exactly one process, so the sum over all processes counts each once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use crate::event::{Detail, Event, EventKind};
use crate::id::Namespace;
use crate::machine::{Changed, Changes, PassedSibling, SIBLING_IMPOSSIBLE, SIBLING_SATISFIED};
use crate::state::{Execution, GroupState, Join, Phase};

/// Values of one label that are told apart; further ones are [`OTHER`].
pub const LABELS: usize = 1_000;
pub const OTHER: &str = "other";

/// Upper bounds of the classes of waiting times, in milliseconds; a last class has none.
pub const WAIT_BOUNDS_MS: [u64; 12] =
    [1, 2, 5, 10, 25, 100, 500, 2_500, 10_000, 60_000, 600_000, 3_600_000];

/// What is counted. Each has one label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// An event about an execution, by its lane.
    Event(EventKind),
    /// An attempt has ended, by the lane.
    Attempt(AttemptEnd),
    /// A hard limit was reached, by the dimension.
    BudgetHit,
    /// A group of edges has decided, by its policy.
    GroupDecided,
    /// An upstream was to be cancelled because its group had decided, by what the group had decided.
    SiblingDispatched,
    /// What became of it, by [`SiblingDisposition`].
    SiblingDisposed,
    /// An invariant was found not to hold on the way, by its name.
    Violation,
}

/// How an attempt has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptEnd {
    Ok,
    Error,
    Timeout,
    Cancelled,
    Retry,
}

/// What becomes of an upstream that its group, once decided, no longer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiblingDisposition {
    Cancelled,
    /// It had ended by itself between the decision and the cancel.
    AlreadyTerminal,
    NotFound,
}

/// How long executions waited from the moment they could be claimed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Waits {
    /// By [`WAIT_BOUNDS_MS`], each counted in one class.
    pub classes: [u64; WAIT_BOUNDS_MS.len() + 1],
    pub total_ms: u64,
}

/// Counts by what is counted and by its label.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    pub counted: BTreeMap<Counted, BTreeMap<String, u64>>,
    /// By lane.
    pub waits: BTreeMap<String, Waits>,
    /// Where executions changed, as far as there is room.
    pub namespaces: BTreeSet<Namespace>,
}

/// Counts of this process so far.
#[derive(Debug, Default)]
pub struct Tally(Mutex<Counts>);

impl AttemptEnd {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Retry => "retry",
        }
    }

    const fn of(kind: EventKind) -> Option<Self> {
        match kind {
            EventKind::Completed => Some(Self::Ok),
            EventKind::Failed => Some(Self::Error),
            EventKind::Expired => Some(Self::Timeout),
            EventKind::Cancelled => Some(Self::Cancelled),
            EventKind::RetryScheduled => Some(Self::Retry),
            _ => None,
        }
    }
}

impl SiblingDisposition {
    pub const ALL: [Self; 3] = [Self::Cancelled, Self::AlreadyTerminal, Self::NotFound];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::AlreadyTerminal => "already_terminal",
            Self::NotFound => "not_found",
        }
    }
}

impl Tally {
    /// Adds steps that were written.
    pub fn add<'a>(&self, steps: impl IntoIterator<Item = &'a Changes>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for changes in steps {
            counts.add(changes);
        }
    }

    /// Adds what steps that were written made of executions.
    pub fn add_changed<'a>(&self, executions: impl IntoIterator<Item = &'a Changed>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        executions.into_iter().for_each(|changed| counts.add_execution(changed));
    }

    /// Adds an invariant that a store found not to hold, as `I10`.
    pub fn add_violation(&self, invariant: &'static str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.count(Counted::Violation, invariant);
    }

    /// Adds what was counted elsewhere.
    pub fn merge(&self, other: Counts) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).merge(other);
    }

    pub fn counts(&self) -> Counts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Counts {
    /// Adds one step.
    pub fn add(&mut self, changes: &Changes) {
        for changed in &changes.executions {
            self.add_execution(changed);
        }
        let documents = changes.documents.iter().flat_map(|changed| &changed.events);
        for event in documents.filter(|event| event.kind == EventKind::BudgetHardLimit) {
            self.count(Counted::BudgetHit, text(event, "dimension"));
        }
        for PassedSibling { satisfied, had_ended } in &changes.passed {
            let end = if *had_ended {
                SiblingDisposition::AlreadyTerminal
            } else {
                SiblingDisposition::NotFound
            };
            self.sibling(*satisfied, end);
        }
    }

    fn sibling(&mut self, satisfied: bool, end: SiblingDisposition) {
        let reason = if satisfied { "satisfied" } else { "impossible" };
        self.count(Counted::SiblingDispatched, reason);
        self.count(Counted::SiblingDisposed, end.as_str());
    }

    fn add_execution(&mut self, changed: &Changed) {
        for event in &changed.events {
            let Some(lane) = &event.lane else { continue };
            self.count(Counted::Event(event.kind), lane.as_str());
            self.visit(&event.namespace);
            if let Some(end) = AttemptEnd::of(event.kind)
                && event.attempt_index.is_some()
            {
                self.count(Counted::Attempt(end), lane.as_str());
            }
            match event.kind {
                EventKind::Claimed => self.wait(event, changed.before.as_deref()),
                EventKind::Cancelled => match text(event, "reason") {
                    SIBLING_SATISFIED => self.sibling(true, SiblingDisposition::Cancelled),
                    SIBLING_IMPOSSIBLE => self.sibling(false, SiblingDisposition::Cancelled),
                    _ => {}
                },
                _ => {}
            }
        }
        let (before, after) = (changed.before.as_deref(), changed.after.as_deref());
        if !has_decided(before)
            && has_decided(after)
            && let Some(member) = after.and_then(|after| after.member.as_ref())
        {
            let policy = match member.group.join {
                Join::AllOf => "all_of",
                Join::AnyOf(_) => "any_of",
                Join::Quorum(..) => "quorum",
            };
            self.count(Counted::GroupDecided, policy);
        }
    }

    /// Adds how long an execution waited for the claim that this event tells of.
    fn wait(&mut self, claimed: &Event, before: Option<&Execution>) {
        let Some(lane) = &claimed.lane else { return };
        let Some(phase @ Phase::Runnable(_)) = before.map(|before| &before.phase) else { return };
        // What the same step has made claimable did not wait.
        let since = phase.claimable().map_or(claimed.time, |runnable| runnable.since);
        let waited = u64::try_from(claimed.time.0 - since.0).unwrap_or(0);
        let class = WAIT_BOUNDS_MS.iter().position(|bound| waited <= *bound);
        let waits = labelled(&mut self.waits, lane.as_str());
        waits.classes[class.unwrap_or(WAIT_BOUNDS_MS.len())] += 1;
        waits.total_ms += waited;
    }

    fn visit(&mut self, namespace: &Namespace) {
        if self.namespaces.len() < LABELS && !self.namespaces.contains(namespace) {
            self.namespaces.insert(namespace.clone());
        }
    }

    fn count(&mut self, counted: Counted, label: &str) {
        *labelled(self.counted.entry(counted).or_default(), label) += 1;
    }

    fn merge(&mut self, other: Self) {
        for (counted, labels) in other.counted {
            let mine = self.counted.entry(counted).or_default();
            for (label, count) in labels {
                *labelled(mine, &label) += count;
            }
        }
        other.namespaces.iter().for_each(|namespace| self.visit(namespace));
        for (lane, waits) in other.waits {
            let mine = labelled(&mut self.waits, &lane);
            mine.classes.iter_mut().zip(waits.classes).for_each(|(mine, more)| *mine += more);
            mine.total_ms += waits.total_ms;
        }
    }
}

/// The place of a label, or that of all others once there are too many.
pub fn labelled<'a, T: Default>(labels: &'a mut BTreeMap<String, T>, label: &str) -> &'a mut T {
    let has_room = labels.len() < LABELS || labels.contains_key(label);
    labels.entry(if has_room { label } else { OTHER }.to_owned()).or_default()
}

fn text<'a>(event: &'a Event, name: &str) -> &'a str {
    match event.data.get(name) {
        Some(Detail::Text(text)) => text,
        _ => "",
    }
}

fn has_decided(execution: Option<&Execution>) -> bool {
    let member = execution.and_then(|execution| execution.member.as_ref());
    member.is_some_and(|member| {
        matches!(member.group.state, GroupState::Satisfied | GroupState::Impossible)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bounded() {
        let mut counts = Counts::default();
        for lane in 0..LABELS + 5 {
            counts.count(Counted::BudgetHit, &lane.to_string());
        }
        counts.count(Counted::BudgetHit, "7");
        let labels = &counts.counted[&Counted::BudgetHit];
        assert_eq!(labels.len(), LABELS + 1);
        assert_eq!((labels["7"], labels[OTHER]), (2, 5));
    }

    #[test]
    fn what_two_have_counted_is_added() {
        let (mut one, mut other) = (Counts::default(), Counts::default());
        one.count(Counted::Event(EventKind::Claimed), "a");
        other.count(Counted::Event(EventKind::Claimed), "a");
        other.count(Counted::Event(EventKind::Claimed), "b");
        one.merge(other);
        let labels = &one.counted[&Counted::Event(EventKind::Claimed)];
        assert_eq!((labels["a"], labels["b"]), (2, 1));
    }
}
