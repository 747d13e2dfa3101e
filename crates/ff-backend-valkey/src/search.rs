//! Search: the lists of submits of all partitions, merged, newest first.

use std::cmp::Reverse;
use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Home, Subject};
use ff_core::read::{Listed, Page, Record, Search, SearchPosition, Seen};
use ff_core::time::TimestampMs;
use redis::Cmd;
use uuid::Uuid;

use crate::item::DISORDER_MS;
use crate::lanes;
use crate::record::uint;
use crate::store::Shared;
use crate::walk::{self, Course};

pub(crate) async fn search(
    shared: &Arc<Shared>,
    query: &Search,
) -> Result<Page<Record>, EngineError> {
    let mut page = walk::page(shared, query, query.position()?.map(Reverse)).await?;
    page.items = lanes::show(shared, page.items).await?;
    Ok(page)
}

impl Course for Search {
    type Position = Reverse<SearchPosition>;

    type Item = Record;

    const FUNCTION: &'static str = "ff_created";

    fn homes(&self, shared: &Shared) -> Vec<Home> {
        shared.partitions()
    }

    fn arguments(&self, call: &mut Cmd, behind: Option<Self::Position>, most: usize) {
        let before = behind.map_or(i64::MAX >> 16, |at| at.0.created_at.0 + DISORDER_MS);
        call.arg(before).arg(most);
    }

    fn position(home: &Home, entry: &[u8]) -> Option<Self::Position> {
        let (created, uuid) = entry.split_at_checked(6)?;
        let created_at = TimestampMs(uint(created).cast_signed());
        let execution_id = ExecutionId::new(home.flow_partition()?, Uuid::from_slice(uuid).ok()?);
        Some(Reverse(SearchPosition { created_at, execution_id }))
    }

    fn sure(Reverse(last): Self::Position) -> Self::Position {
        // The first of those that are younger by more than the disorder.
        let created_at = TimestampMs(last.created_at.0 + DISORDER_MS + 1);
        Reverse(SearchPosition { created_at, execution_id: ExecutionId::new(0, Uuid::nil()) })
    }

    fn subject(at: &Self::Position) -> Subject {
        at.0.execution_id.into()
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn see(&self, at: &Self::Position, found: Listed<'_>, now: TimestampMs) -> Seen<Record> {
        let Listed::Execution(found) = found else { return Seen::Passed };
        // An id that was removed and given again stands in the list twice.
        if found.about.created_at == at.0.created_at { self.see(found, now) } else { Seen::Passed }
    }

    fn cursor_after(&self, at: Self::Position) -> String {
        self.cursor_after(at.0)
    }
}
