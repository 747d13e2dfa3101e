//! Events: one line of a partition's log for each transition. They are the audit trail, the feed of
//! every subscription, and never carry payloads, results or tokens.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::{
    FlowId, Home, HomeFamily, Kind, LaneId, Namespace, PartitionFamily, Subject, WorkerInstanceId,
};
use crate::state::{Body, Document, Execution, Outcome};
use crate::tags::Tags;
use crate::time::TimestampMs;

/// `<log>-<number>`, as `7-42`. Numbers rise within a log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventId {
    pub home: Home,
    pub number: u64,
}

/// The text is not the id of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of an event")]
pub struct EventIdParseError;

impl FromStr for EventId {
    type Err = EventIdParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            // The name of a namespace may hold a dash, a number holds none.
            let (log, number) = text.rsplit_once('-')?;
            Some(Self { home: Home::of_log(log)?, number: number.parse().ok()? })
        };
        parse().ok_or(EventIdParseError)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.home.log(), self.number)
    }
}

macro_rules! event_kinds {
    ($($variant:ident = $code:literal, $text:literal;)*) => {
        /// What happened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum EventKind { $(#[serde(rename = $text)] $variant,)* }

        impl EventKind {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The number under which stores keep it; a code is never given to another kind.
            pub const fn code(self) -> u8 {
                match self { $(Self::$variant => $code,)* }
            }

            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }

            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

event_kinds! {
    Submitted = 1, "execution.submitted";
    Eligible = 2, "execution.eligible";
    Delayed = 3, "execution.delayed";
    Blocked = 4, "execution.blocked";
    Unblocked = 5, "execution.unblocked";
    Claimed = 6, "execution.claimed";
    Progressed = 7, "execution.progressed";
    RetryScheduled = 8, "execution.retry_scheduled";
    LeaseExpired = 9, "execution.lease_expired";
    LeaseRevoked = 10, "execution.lease_revoked";
    Completed = 11, "execution.completed";
    Failed = 12, "execution.failed";
    Cancelled = 13, "execution.cancelled";
    Expired = 14, "execution.expired";
    PriorityChanged = 15, "execution.priority_changed";
    Replayed = 16, "execution.replayed";
    Tagged = 17, "execution.tagged";
    Deleted = 18, "execution.deleted";
    Suspended = 19, "execution.suspended";
    Resumed = 20, "execution.resumed";
    Escalated = 21, "execution.escalated";
    WaitpointCreated = 22, "waitpoint.created";
    WaitpointClosed = 23, "waitpoint.closed";
    TokenIssued = 24, "waitpoint.token_issued";
    SignalAccepted = 25, "signal.accepted";
    Skipped = 26, "execution.skipped";
    Released = 27, "execution.released";
    FlowCreated = 28, "flow.created";
    FlowChanged = 29, "flow.changed";
    FlowCompleted = 30, "flow.completed";
    FlowFailed = 31, "flow.failed";
    FlowCancelled = 32, "flow.cancelled";
    FlowReopened = 33, "flow.reopened";
    EdgeResolved = 34, "edge.resolved";
    WorkerJoined = 35, "worker.joined";
    WorkerDraining = 36, "worker.draining";
    WorkerLost = 37, "worker.lost";
    LaneChanged = 38, "lane.changed";
    NamespaceChanged = 39, "namespace.changed";
    BudgetSoftLimit = 40, "budget.soft_limit";
    BudgetHardLimit = 41, "budget.hard_limit";
    BudgetReset = 42, "budget.reset";
    BulkChanged = 43, "bulk.changed";
}

impl EventKind {
    /// The homes whose logs hold events of this kind.
    pub fn homes(self) -> HomeFamily {
        let (of, _) = self.as_str().split_once('.').unwrap_or_default();
        match of {
            "budget" => HomeFamily::Partitions(PartitionFamily::Budget),
            "worker" | "lane" | "namespace" => HomeFamily::Namespaces,
            "bulk" => HomeFamily::Global,
            _ => HomeFamily::Partitions(PartitionFamily::Flow),
        }
    }
}

/// What the log keeps of one transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Given by the store when it writes the step; 0 until then.
    pub number: u64,
    /// Number of the event before this one about the same subject; 0 for none. The chain leads
    /// through an execution's history without an index.
    pub previous: u64,
    pub subject: Subject,
    pub namespace: Namespace,
    /// None for what belongs to no lane.
    pub lane: Option<LaneId>,
    /// 1, 2, 3 … per subject, without holes.
    pub seq: u64,
    pub kind: EventKind,
    pub time: TimestampMs,
    pub attempt_index: Option<u32>,
    pub lease_epoch: Option<u64>,
    pub worker_instance_id: Option<WorkerInstanceId>,
    pub outcome: Option<Outcome>,
    pub data: EventData,
}

/// Details of one event by name.
pub type EventData = BTreeMap<String, Detail>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detail {
    Text(String),
    Number(i64),
    Map(BTreeMap<String, String>),
}

/// An event as it is delivered: with what is known of its subject at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub event: Event,
    /// None once the subject has been removed.
    pub about: Option<EventAbout>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventAbout {
    pub kind: Option<Kind>,
    pub flow_id: Option<FlowId>,
    pub tags: Tags,
}

impl Envelope {
    /// The event with what its record, if there still is one, says now. The last event of an
    /// execution brings along what can no longer be looked up.
    pub fn new(event: Event, about: Option<EventAbout>) -> Self {
        let about = about.or_else(|| EventAbout::carried(&event));
        Self { event, about }
    }
}

impl From<&Execution> for EventAbout {
    fn from(execution: &Execution) -> Self {
        Self {
            kind: Some(execution.about.kind.clone()),
            flow_id: execution.member.as_ref().map(|member| member.flow_id),
            tags: execution.tags.clone(),
        }
    }
}

impl From<&Document> for EventAbout {
    fn from(document: &Document) -> Self {
        match &document.body {
            Body::Flow(flow) => Self {
                kind: Some(flow.kind.clone()),
                flow_id: Some(flow.id),
                tags: flow.tags.clone(),
            },
            Body::Budget(_)
            | Body::QuotaPolicy(_)
            | Body::Worker(_)
            | Body::Lane(_)
            | Body::NamespaceRecord(_)
            | Body::ApiKey(_)
            | Body::Bulk(_) => Self { kind: None, flow_id: None, tags: Tags::default() },
        }
    }
}

impl EventAbout {
    fn carried(event: &Event) -> Option<Self> {
        let Some(Detail::Text(kind)) = event.data.get("kind") else { return None };
        let Some(Detail::Map(tags)) = event.data.get("tags") else { return None };
        Some(Self {
            kind: Some(Kind::new(kind).ok()?),
            flow_id: None,
            tags: Tags::new(tags.clone()).ok()?,
        })
    }
}

impl Event {
    pub fn id(&self) -> EventId {
        EventId { home: self.subject.home(), number: self.number }
    }
}

impl From<&str> for Detail {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<TimestampMs> for Detail {
    fn from(at: TimestampMs) -> Self {
        Self::Number(at.0)
    }
}

impl From<u64> for Detail {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Detail {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_is_known_to_stand_in_its_homes() {
        let of_executions = HomeFamily::Partitions(PartitionFamily::Flow);
        let of = |kind: &EventKind| kind.as_str().split('.').next().unwrap_or("");
        let among = |kinds: &mut dyn Iterator<Item = &EventKind>| -> BTreeSet<_> {
            kinds.map(of).collect()
        };
        let mut there = EventKind::ALL.iter().filter(|kind| kind.homes() == of_executions);
        let expected = ["edge", "execution", "flow", "signal", "waitpoint"];
        assert_eq!(among(&mut there), BTreeSet::from(expected));
        let mut elsewhere = EventKind::ALL.iter().filter(|kind| kind.homes() != of_executions);
        let expected = ["budget", "bulk", "lane", "namespace", "worker"];
        assert_eq!(among(&mut elsewhere), BTreeSet::from(expected));
    }
}
