//! Lists over all executions of a namespace: a sorted set in each partition, merged, oldest first.

use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Namespace};
use ff_core::read::{self, Page, Seen};
use ff_core::state::{Execution, List, Listing, ListingPosition};
use ff_core::time::TimestampMs;
use redis::Cmd;
use uuid::Uuid;

use crate::record::uint;
use crate::store::Shared;
use crate::walk::{self, Course};

/// With which the names of all lists of a partition begin.
pub(crate) const LISTS: &str = "list:";

/// The end of a list's key.
pub(crate) fn list_name(list: List, namespace: &Namespace) -> String {
    name_of(list.code(), namespace)
}

pub(crate) fn name_of(code: u8, namespace: &str) -> String {
    format!("{LISTS}{code}:{namespace}")
}

/// Code and namespace of a list by the end of its key.
pub(crate) fn parse_name(name: &str) -> Option<(u8, &str)> {
    let (code, namespace) = name.strip_prefix(LISTS)?.split_once(':')?;
    Some((code.parse().ok()?, namespace))
}

/// The member of an execution's entry: its name, then the uuid. They sort as the list does.
pub(crate) fn member(id: ExecutionId, listing: &Listing<'_>) -> Vec<u8> {
    [*listing.name.as_bytes(), *id.uuid().as_bytes()].concat()
}

/// Name and execution of a member.
pub(crate) fn parse_member(partition: u16, member: &[u8]) -> Option<(Uuid, ExecutionId)> {
    let (name, uuid) = member.split_at_checked(16)?;
    let execution_id = ExecutionId::new(partition, Uuid::from_slice(uuid).ok()?);
    Some((Uuid::from_slice(name).ok()?, execution_id))
}

pub(crate) async fn walk<W: read::Walk>(
    shared: &Arc<Shared>,
    query: &W,
) -> Result<Page<W::Item>, EngineError> {
    walk::page(shared, &Listed(query), query.behind()?).await
}

struct Listed<'a, W>(&'a W);

impl<W: read::Walk> Course for Listed<'_, W> {
    type Position = ListingPosition;

    type Item = W::Item;

    const FUNCTION: &'static str = "ff_listed";

    fn arguments(&self, call: &mut Cmd, behind: Option<ListingPosition>, most: usize) {
        let (at, name, uuid) = match behind {
            Some(at) => (at.at.0, at.name, at.execution_id.uuid()),
            None => (0, Uuid::nil(), Uuid::nil()),
        };
        // The member itself may stand in a later partition.
        let member = [*name.as_bytes(), *uuid.as_bytes()].concat();
        call.arg(list_name(W::LIST, &self.0.filter().namespace)).arg(at).arg(member).arg(most);
    }

    fn position(partition: u16, entry: &[u8]) -> Option<ListingPosition> {
        let (at, member) = entry.split_at_checked(6)?;
        let (name, execution_id) = parse_member(partition, member)?;
        Some(ListingPosition { at: TimestampMs(uint(at).cast_signed()), name, execution_id })
    }

    fn sure(last: ListingPosition) -> ListingPosition {
        last
    }

    fn execution_id(at: &ListingPosition) -> ExecutionId {
        at.execution_id
    }

    fn limit(&self) -> u32 {
        self.0.limit()
    }

    fn see(&self, at: &ListingPosition, found: &Execution, now: TimestampMs) -> Seen<W::Item> {
        self.0.see(at, found, now)
    }

    fn cursor_after(&self, at: ListingPosition) -> String {
        self.0.cursor_after(at)
    }
}
