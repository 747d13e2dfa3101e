//! Subscriptions: events of all partitions, resumable from a cursor.

use super::query::check_limit;
use super::{StreamPage, Tail};
use crate::error::Refusal;
use crate::event::{Envelope, Event, EventKind};
use crate::id::{FlowId, Home, Kind, LaneId, Namespace};
use crate::partition::PartitionConfig;
use crate::state::Outcome;
use crate::time::TimestampMs;

/// Something that can be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    Events(Follow),
    /// A timer that is due sooner than the one known.
    Timers {
        known: Option<TimestampMs>,
    },
    /// The output of an attempt.
    Frames(Tail),
}

/// What following brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    Events {
        items: Vec<Envelope>,
        /// Where to go on behind each of them, if that was asked for.
        cursors: Vec<String>,
        /// Where to go on, also when there are no items.
        cursor: String,
        /// Retention has removed events between the old cursor and the first item.
        gap: bool,
    },
    Timers {
        /// None: the wait was over first.
        sooner: Option<TimestampMs>,
    },
    Frames(StreamPage),
}

/// Events after a place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    pub filter: EventFilter,
    pub from: From,
    pub limit: u32,
    /// Whether a cursor is wanted behind each event, and not only behind the last.
    pub each: bool,
}

/// Where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    Now,
    /// The oldest kept.
    Start,
    Cursor(String),
}

/// Which events; an empty list asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter {
    pub kinds_of_event: Vec<EventKind>,
    pub namespace: Option<Namespace>,
    pub lanes: Vec<LaneId>,
    pub kinds: Vec<Kind>,
    pub tags: Vec<(String, String)>,
    /// Of a flow: its own events and those of its members.
    pub flow: Option<FlowId>,
    pub outcomes: Vec<Outcome>,
}

/// The named sets of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscription {
    Completions,
    Lifecycle,
    LeaseHistory,
    SignalDelivery,
}

impl Subscription {
    pub fn kinds_of_event(self) -> Vec<EventKind> {
        use EventKind::{
            Cancelled, Claimed, Completed, Delayed, Expired, Failed, LeaseExpired, LeaseRevoked,
            Released, Replayed, RetryScheduled, SignalAccepted, Skipped, Suspended,
        };
        match self {
            Self::Completions => vec![Completed, Failed, Cancelled, Expired, Skipped],
            Self::Lifecycle => {
                let of_execution = |kind: &&EventKind| kind.as_str().starts_with("execution.");
                EventKind::ALL.iter().filter(of_execution).copied().collect()
            }
            Self::LeaseHistory => vec![
                Claimed,
                Released,
                Delayed,
                Suspended,
                RetryScheduled,
                LeaseExpired,
                LeaseRevoked,
                Replayed,
                Completed,
                Failed,
                Cancelled,
                Expired,
                Skipped,
            ],
            Self::SignalDelivery => vec![SignalAccepted],
        }
    }
}

impl Follow {
    pub fn check(&self) -> Result<(), Refusal> {
        check_limit(self.limit)
    }
}

impl EventFilter {
    /// Whether it may match: as far as the event tells without what its record says.
    pub fn may_match(&self, event: &Event) -> bool {
        let listed = |wanted: &[_], value| wanted.is_empty() || wanted.contains(value);
        listed(&self.kinds_of_event, &event.kind)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == event.namespace)
            && (self.lanes.is_empty()
                || event.lane.as_ref().is_some_and(|lane| self.lanes.contains(lane)))
            && (self.outcomes.is_empty()
                || event.outcome.is_some_and(|outcome| self.outcomes.contains(&outcome)))
    }

    pub fn matches(&self, envelope: &Envelope) -> bool {
        let Envelope { event, about } = envelope;
        let has_tag = |(key, value): &(String, String)| {
            about.as_ref().and_then(|about| about.tags.get(key)) == Some(value)
        };
        self.may_match(event)
            && (self.kinds.is_empty()
                || about
                    .as_ref()
                    .and_then(|about| about.kind.as_ref())
                    .is_some_and(|kind| self.kinds.contains(kind)))
            && self.tags.iter().all(has_tag)
            && self
                .flow
                .is_none_or(|flow| about.as_ref().is_some_and(|about| about.flow_id == Some(flow)))
    }

    /// Whether the log of a home may hold what it matches. What stands elsewhere is nothing that a
    /// subscriber has to know of.
    pub fn may_match_in(&self, home: &Home, partitions: &PartitionConfig) -> bool {
        let all = self.kinds_of_event.is_empty();
        let kinds = if all { EventKind::ALL } else { &self.kinds_of_event };
        if !kinds.iter().any(|kind| kind.homes() == home.family()) {
            return false;
        }
        match (home, home.flow_partition()) {
            (_, Some(index)) => self.flow.is_none_or(|flow| flow.partition(partitions) == index),
            _ if self.is_of_executions() => false,
            (Home::Namespace(own), _) => self.namespace.as_ref().is_none_or(|it| it == own),
            _ => true,
        }
    }

    /// Whether it asks for something that only executions, or flows, have.
    const fn is_of_executions(&self) -> bool {
        !self.lanes.is_empty()
            || !self.kinds.is_empty()
            || !self.tags.is_empty()
            || !self.outcomes.is_empty()
            || self.flow.is_some()
    }

    /// What a cursor of this filter is bound to.
    pub fn scope(&self) -> String {
        format!("events {self:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of a small deployment in which a filter may find something.
    fn homes(filter: &EventFilter) -> String {
        let config = PartitionConfig { flow: 2, budget: 1, quota: 1 };
        let all = ["{fp:0}", "{fp:1}", "{b:0}", "{q:0}", "{w:ours}", "{w:theirs}", "{g}"];
        let may_match =
            |home: &&&str| home.parse().is_ok_and(|home| filter.may_match_in(&home, &config));
        all.iter().filter(may_match).copied().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_filter_knows_where_it_may_find_something() {
        let ours = Namespace::new("ours").ok();
        let of = |kinds: &[EventKind]| EventFilter {
            kinds_of_event: kinds.to_vec(),
            namespace: ours.clone(),
            ..EventFilter::default()
        };
        let lanes = LaneId::new("mail").into_iter().collect();
        let flow = FlowId::mint();
        let own = flow.partition(&PartitionConfig { flow: 2, budget: 1, quota: 1 });
        for (filter, expected) in [
            (EventFilter::default(), "{fp:0} {fp:1} {b:0} {w:ours} {w:theirs} {g}"),
            (of(&[]), "{fp:0} {fp:1} {b:0} {w:ours} {g}"),
            (of(&Subscription::Lifecycle.kinds_of_event()), "{fp:0} {fp:1}"),
            (of(&[EventKind::SignalAccepted]), "{fp:0} {fp:1}"),
            (of(&[EventKind::LaneChanged, EventKind::WorkerLost]), "{w:ours}"),
            (of(&[EventKind::Claimed, EventKind::WorkerLost]), "{fp:0} {fp:1} {w:ours}"),
            (of(&[EventKind::BudgetReset]), "{b:0}"),
            (of(&[EventKind::BulkChanged]), "{g}"),
            (EventFilter { outcomes: vec![Outcome::Failed], ..of(&[]) }, "{fp:0} {fp:1}"),
            (EventFilter { lanes, ..of(&[]) }, "{fp:0} {fp:1}"),
            (EventFilter { flow: Some(flow), ..of(&[]) }, ["{fp:0}", "{fp:1}"][usize::from(own)]),
            (EventFilter { flow: Some(flow), ..of(&[EventKind::BulkChanged]) }, ""),
        ] {
            assert_eq!(homes(&filter), expected, "{filter:?}");
        }
    }
}
