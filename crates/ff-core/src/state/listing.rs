//! Lists over all executions or documents of a namespace. As queue place and timer they are functions of the
//! state: a store writes what differs between before and after, and no rule can forget an entry.
//!
//! A store keeps lists without knowing what they are for. What a claim does must change none: some
//! stores note a claim in short and work it out later.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{Document, Execution, Phase};
use crate::id::{ExecutionId, HomeFamily, Namespace, PartitionFamily, Subject};
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
    /// Registered workers, since they registered.
    Worker,
    /// Lanes that somebody has said something of, in the order of their names.
    Lane,
    /// Executions that were not admitted, by their own uuid, since they were blocked.
    Blocked,
    /// Those of them that wait for a worker, by their routes, lane by lane.
    Unrouted,
    /// Those of them that a limit keeps back, limit by limit.
    Limited,
    /// API keys, newest first.
    Key,
    /// Bulk operations, by their id, newest first.
    Bulk,
    /// Flows whose cancel is still being carried out, by their id, since they were cancelled.
    CancelBacklog,
}

impl List {
    pub const ALL: [Self; 13] = [
        Self::Waitpoint,
        Self::Suspended,
        Self::Flow,
        Self::Worker,
        Self::Lane,
        Self::Blocked,
        Self::Unrouted,
        Self::Limited,
        Self::Budget,
        Self::QuotaPolicy,
        Self::Key,
        Self::Bulk,
        Self::CancelBacklog,
    ];

    /// The number under which stores keep it; never given to another list.
    pub const fn code(self) -> u8 {
        match self {
            Self::Waitpoint => 1,
            Self::Suspended => 2,
            Self::Flow => 3,
            Self::Worker => 4,
            Self::Lane => 5,
            Self::Blocked => 6,
            Self::Budget => 8,
            Self::QuotaPolicy => 9,
            Self::Unrouted => 10,
            Self::Limited => 11,
            Self::Key => 12,
            Self::Bulk => 13,
            Self::CancelBacklog => 14,
        }
    }

    /// Where what it lists stands.
    pub const fn family(self) -> HomeFamily {
        match self {
            Self::Waitpoint
            | Self::Suspended
            | Self::Flow
            | Self::Blocked
            | Self::Unrouted
            | Self::Limited
            | Self::CancelBacklog => HomeFamily::Partitions(PartitionFamily::Flow),
            Self::Worker | Self::Lane => HomeFamily::Namespaces,
            Self::Key | Self::Bulk => HomeFamily::Global,
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
        let standing = match &self.phase {
            Phase::Suspended(suspension) => {
                Some(entry(List::Suspended, suspension.since, self.id.uuid()))
            }
            _ => {
                let block = self.admission_block();
                block.map(|block| entry(List::Blocked, block.since, self.id.uuid()))
            }
        };
        let why = self.unrouted_listing().or_else(|| self.limited_listing());
        waitpoints.chain(standing).chain(why)
    }
}

/// A place between entries: no execution has the nil uuid.
pub(super) fn place(at: TimestampMs, name: Uuid) -> ListingPosition {
    let subject = Subject::Execution(ExecutionId::new(0, Uuid::nil()));
    ListingPosition { at, name, subject }
}

/// The name of an entry whose own name is text.
pub(super) fn digest_name(text: &str) -> Uuid {
    let digest = Sha256::digest(text.as_bytes());
    Uuid::from_bytes(digest.first_chunk().copied().unwrap_or_default())
}
