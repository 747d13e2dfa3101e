//! Lists over all executions or documents of a namespace. As queue place and timer they are functions of the
//! state: a store writes what differs between before and after, and no rule can forget an entry.
//!
//! A store keeps lists without knowing what they are for. What a claim does must change none: some
//! stores note a claim in short and work it out later.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Document, Execution, Phase};
use crate::id::{HomeFamily, Namespace, PartitionFamily, Subject};
use crate::time::TimestampMs;

/// What a list is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum List {
    /// Waitpoints that are not closed, by their id, since they were made.
    Waitpoint,
    /// Suspended executions, by their own uuid, since they were suspended.
    Suspended,
    /// Flows, by their id, newest first.
    Flow,
    /// Budgets, by their id, newest first.
    Budget,
    /// Quota policies, by their id, newest first.
    QuotaPolicy,
}

impl List {
    pub const ALL: [Self; 5] =
        [Self::Waitpoint, Self::Suspended, Self::Flow, Self::Budget, Self::QuotaPolicy];

    /// The number under which stores keep it; never given to another list.
    pub const fn code(self) -> u8 {
        match self {
            Self::Waitpoint => 1,
            Self::Suspended => 2,
            Self::Flow => 3,
            Self::Budget => 8,
            Self::QuotaPolicy => 9,
        }
    }

    /// Where what it lists stands.
    pub const fn family(self) -> HomeFamily {
        match self {
            Self::Waitpoint | Self::Suspended | Self::Flow => {
                HomeFamily::Partitions(PartitionFamily::Flow)
            }
            Self::Budget => HomeFamily::Partitions(PartitionFamily::Budget),
            Self::QuotaPolicy => HomeFamily::Partitions(PartitionFamily::Quota),
        }
    }
}

/// An entry that an execution or document has in a list, one of a name at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing<'a> {
    pub namespace: &'a Namespace,
    pub list: List,
    pub at: TimestampMs,
    pub name: Uuid,
}

/// Where an entry stands in its list: oldest first, ties by name, then by what it lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListingPosition {
    pub at: TimestampMs,
    pub name: Uuid,
    pub subject: Subject,
}

/// What a change takes out of lists and puts into them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Relisted<'a> {
    pub out: Vec<Listing<'a>>,
    pub into: Vec<Listing<'a>>,
}

impl<'a> Relisted<'a> {
    pub fn between(before: Option<&'a Execution>, after: Option<&'a Execution>) -> Self {
        let of =
            |execution: Option<&'a Execution>| execution.into_iter().flat_map(Execution::listings);
        if of(before).eq(of(after)) {
            return Self::default();
        }
        let (before, after): (Vec<_>, Vec<_>) = (of(before).collect(), of(after).collect());
        Self::differing(&before, &after)
    }

    pub fn of_document(before: Option<&'a Document>, after: Option<&'a Document>) -> Self {
        let of = |document: Option<&'a Document>| {
            document.into_iter().flat_map(Document::listings).collect::<Vec<_>>()
        };
        Self::differing(&of(before), &of(after))
    }

    fn differing(before: &[Listing<'a>], after: &[Listing<'a>]) -> Self {
        let only = |these: &[Listing<'a>], others: &[Listing<'a>]| {
            these.iter().filter(|listing| !others.contains(listing)).copied().collect()
        };
        Self { out: only(before, after), into: only(after, before) }
    }
}

impl Execution {
    /// Every entry that stores must list it with.
    pub fn listings(&self) -> impl Iterator<Item = Listing<'_>> {
        let entry = |list, at, name| Listing { namespace: &self.about.namespace, list, at, name };
        let waitpoints = self.waits.open.iter().map(move |waitpoint| {
            entry(List::Waitpoint, waitpoint.created_at, waitpoint.id.uuid())
        });
        let suspended = match &self.phase {
            Phase::Suspended(suspension) => {
                Some(entry(List::Suspended, suspension.since, self.id.uuid()))
            }
            _ => None,
        };
        waitpoints.chain(suspended)
    }
}
