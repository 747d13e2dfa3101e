//! Search: the lists of submits of all partitions, merged, newest first.

use std::collections::BTreeMap;
use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::read::{Page, Record, Search, SearchPosition};
use ff_core::time::TimestampMs;
use redis::Value;
use uuid::Uuid;

use crate::everywhere::Missing;
use crate::record::{Entry, uint};
use crate::store::{Shared, join_all};
use crate::{read, reply};

/// Records that one read brings.
const READ_MOST: usize = 64;

/// Up to so much may entries of a list stand out of the order of their times: a commit accepts a
/// decision that is that old.
const DISORDER_MS: i64 = 1_000;

pub(crate) async fn search(shared: &Arc<Shared>, query: &Search) -> Result<Page, EngineError> {
    let mut walk = Walk { shared, behind: query.position()?, looked: 0 };
    let mut page = Page::default();
    let limit = query.limit as usize;
    let mut last = None;
    loop {
        let (positions, more) = walk.step(limit).await?;
        let found = load(shared, &positions).await?;
        for (position, record) in positions.iter().zip(found) {
            if page.items.len() == limit {
                page.next_cursor = last.map(|last| query.cursor_after(last));
                return Ok(page);
            }
            last = Some(*position);
            if let Some((now, entry)) = record
                && query.filter.matches(&entry.execution)
            {
                page.items.push(Record::of(&entry.execution, now));
            }
        }
        if !more {
            return Ok(page);
        }
        if walk.looked >= limits::SEARCH_LOOK_AHEAD as usize {
            page.next_cursor = last.map(|last| query.cursor_after(last));
            return Ok(page);
        }
    }
}

/// A walk over all executions.
struct Walk<'a> {
    shared: &'a Arc<Shared>,
    /// All from here on have been seen.
    behind: Option<SearchPosition>,
    looked: usize,
}

impl Walk<'_> {
    /// The next positions in order, and whether there are more behind them.
    async fn step(&mut self, wanted: usize) -> Result<(Vec<SearchPosition>, bool), EngineError> {
        let mut most = wanted.clamp(16, READ_MOST);
        loop {
            let before = self.behind.map_or(i64::MAX >> 16, |at| at.created_at.0 + DISORDER_MS);
            let fronts = self.fronts(before, most).await?;
            // What a partition has not shown is at most this young.
            let unseen = fronts.iter().filter(|front| !front.complete);
            let unseen =
                unseen.filter_map(|front| front.positions.iter().map(|p| p.created_at).min());
            let sure_after = unseen.max().map(|at| TimestampMs(at.0 + DISORDER_MS));
            let mut positions: Vec<_> =
                fronts.iter().flat_map(|front| front.positions.iter().copied()).collect();
            positions.sort_unstable_by(|a, b| b.cmp(a));
            positions.dedup();
            positions.retain(|at| {
                self.behind.is_none_or(|behind| *at < behind)
                    && sure_after.is_none_or(|sure| at.created_at > sure)
            });
            let more = sure_after.is_some();
            if positions.is_empty() && more {
                // All that was shown lies too close together: look further.
                most *= 2;
                continue;
            }
            self.looked += positions.len();
            self.behind = positions.last().copied().or(self.behind);
            return Ok((positions, more));
        }
    }

    async fn fronts(&self, before: i64, most: usize) -> Result<Vec<Front>, EngineError> {
        let replies = self
            .shared
            .everywhere("ff_created", Missing::Wait, |call, partitions| {
                call.arg(before).arg(most).arg(partitions);
            })
            .await?;
        let mut fronts = Vec::new();
        for reply in replies {
            for front in reply::array(reply)? {
                fronts.push(Front::read(front)?);
            }
        }
        Ok(fronts)
    }
}

/// The newest submits of one partition.
struct Front {
    positions: Vec<SearchPosition>,
    complete: bool,
}

impl Front {
    fn read(front: Value) -> Result<Self, EngineError> {
        let mut items = reply::array(front)?.into_iter();
        let partition = reply::partition(&reply::next(&mut items)?)?;
        let complete = reply::number(&reply::next(&mut items)?)? == 1;
        let mut positions = Vec::new();
        for entry in items {
            let entry = reply::some_bytes(entry)?;
            let position = entry.split_at_checked(6).and_then(|(created, uuid)| {
                let created_at = TimestampMs(uint(created).cast_signed());
                let uuid = Uuid::from_slice(uuid).ok()?;
                Some(SearchPosition { created_at, execution_id: ExecutionId::new(partition, uuid) })
            });
            positions.push(position.ok_or_else(|| {
                EngineError::corruption(format!("the list of submits of {partition} is broken"))
            })?);
        }
        Ok(Self { positions, complete })
    }
}

/// The records at these positions; none where the execution is gone, or was made again later.
async fn load(
    shared: &Arc<Shared>,
    positions: &[SearchPosition],
) -> Result<Vec<Option<(TimestampMs, Entry)>>, EngineError> {
    let mut by_partition: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (n, position) in positions.iter().enumerate() {
        by_partition.entry(position.execution_id.partition()).or_default().push(n);
    }
    let parts: Vec<_> = by_partition
        .iter()
        .flat_map(|(partition, places)| places.chunks(READ_MOST).map(|part| (*partition, part)))
        .collect();
    let reads = parts.iter().map(|(partition, part)| async move {
        let ids: Vec<_> = part.iter().map(|n| positions[*n].execution_id).collect();
        read::executions(shared, *partition, &ids).await
    });
    let mut found: Vec<_> = positions.iter().map(|_| None).collect();
    for ((_, part), read) in parts.iter().zip(join_all(reads).await) {
        let (now, entries) = read?;
        for (n, entry) in part.iter().zip(entries) {
            let entry = entry.filter(|e| e.execution.about.created_at == positions[*n].created_at);
            found[*n] = entry.map(|entry| (now, entry));
        }
    }
    Ok(found)
}
