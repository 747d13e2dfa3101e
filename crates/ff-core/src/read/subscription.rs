//! Subscriptions: events of all partitions, resumable from a cursor.

use super::query::check_limit;
use super::{StreamPage, Tail};
use crate::error::Refusal;
use crate::event::{Envelope, Event, EventKind};
use crate::id::{FlowId, Kind, LaneId, Namespace};
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

    /// What a cursor of this filter is bound to.
    pub fn scope(&self) -> String {
        format!("events {self:?}")
    }
}
