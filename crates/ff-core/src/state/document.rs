//! Documents: everything with a record of its own that is not an execution.
//!
//! Stores keep them as they keep executions, and know as little of them: a record that is written
//! only if it is unchanged, rows beside it, the next thing that time does, entries in lists. A
//! feature that needs a new kind of record adds a [`Body`] and no code in any store.

use serde::{Deserialize, Serialize};

use super::{
    ApiKey, Attached, Budget, Bulk, Due, Flow, Lane, Listing, NamespaceRecord, QuotaPolicy, Worker,
};
use crate::id::{DocumentId, Namespace};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub id: DocumentId,
    /// Counts every write: what a conditional write compares.
    pub revision: u64,
    /// Counts the events about this document: the newest one bears this number.
    pub event_seq: u64,
    /// Number of the newest event in its home's log.
    pub last_event: u64,
    pub body: Body,
}

/// What a document holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    Flow(Box<Flow>),
    Budget(Box<Budget>),
    QuotaPolicy(Box<QuotaPolicy>),
    Worker(Box<Worker>),
    Lane(Box<Lane>),
    NamespaceRecord(Box<NamespaceRecord>),
    ApiKey(Box<ApiKey>),
    Bulk(Box<Bulk>),
}

/// One kind of body.
pub trait Part: Clone + PartialEq {
    fn of(body: &Body) -> Option<&Self>;
    fn into_body(self: Box<Self>) -> Body;
    fn namespace(&self) -> &Namespace;
}

macro_rules! parts {
    ($($part:ident)+) => {$(
        impl Part for $part {
            fn of(body: &Body) -> Option<&Self> {
                match body {
                    Body::$part(part) => Some(part),
                    _ => None,
                }
            }

            fn into_body(self: Box<Self>) -> Body {
                Body::$part(self)
            }

            fn namespace(&self) -> &Namespace {
                &self.namespace
            }
        }
    )+};
}

parts! { Flow Budget QuotaPolicy Worker Lane NamespaceRecord ApiKey Bulk }

impl Document {
    pub fn namespace(&self) -> &Namespace {
        match &self.body {
            Body::Flow(flow) => &flow.namespace,
            Body::Budget(budget) => &budget.namespace,
            Body::QuotaPolicy(policy) => &policy.namespace,
            Body::Worker(worker) => &worker.namespace,
            Body::Lane(lane) => &lane.namespace,
            Body::NamespaceRecord(record) => &record.namespace,
            Body::ApiKey(key) => &key.namespace,
            Body::Bulk(bulk) => &bulk.namespace,
        }
    }

    /// What time will do to it next, if nothing else happens first.
    pub fn due(&self) -> Option<Due> {
        match &self.body {
            Body::Flow(flow) => flow.due(),
            Body::Budget(budget) => budget.due(),
            Body::QuotaPolicy(policy) => policy.due(),
            Body::Worker(worker) => worker.due(),
            Body::Bulk(bulk) => bulk.due(),
            Body::Lane(_) | Body::NamespaceRecord(_) | Body::ApiKey(_) => None,
        }
    }

    /// Every entry that stores must list it with.
    pub fn listings(&self) -> impl Iterator<Item = Listing<'_>> {
        let entry = match &self.body {
            Body::Flow(flow) => Some(flow.listing()),
            Body::Budget(budget) => Some(budget.listing()),
            Body::QuotaPolicy(policy) => Some(policy.listing()),
            Body::Worker(worker) => worker.listing(),
            Body::Lane(lane) => Some(lane.listing()),
            Body::ApiKey(key) => Some(key.listing()),
            Body::Bulk(bulk) => Some(bulk.listing()),
            Body::NamespaceRecord(_) => None,
        };
        let backlog = self.flow().and_then(Flow::backlog_listing);
        entry.into_iter().chain(backlog)
    }

    pub fn flow(&self) -> Option<&Flow> {
        Flow::of(&self.body)
    }

    pub fn budget(&self) -> Option<&Budget> {
        Budget::of(&self.body)
    }

    pub fn quota_policy(&self) -> Option<&QuotaPolicy> {
        QuotaPolicy::of(&self.body)
    }

    pub fn worker(&self) -> Option<&Worker> {
        Worker::of(&self.body)
    }

    pub fn lane(&self) -> Option<&Lane> {
        Lane::of(&self.body)
    }

    /// What everything in it stands under, if it is something that can be said of.
    pub fn attached(&self) -> Option<&Attached> {
        match &self.body {
            Body::Flow(flow) => Some(&flow.attached),
            Body::Lane(lane) => Some(&lane.attached),
            Body::NamespaceRecord(record) => Some(&record.attached),
            Body::Budget(_)
            | Body::QuotaPolicy(_)
            | Body::Worker(_)
            | Body::ApiKey(_)
            | Body::Bulk(_) => None,
        }
    }

    /// What was said of a namespace as a whole.
    pub fn about_namespace(&self) -> Option<&NamespaceRecord> {
        NamespaceRecord::of(&self.body)
    }
}
