//! Walks over lists that every partition has a part of, in one order over all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::read::{Leaf, Page, Seen};
use ff_core::state::Execution;
use ff_core::time::TimestampMs;
use redis::{Cmd, Value};

use crate::everywhere::Missing;
use crate::record::Entry;
use crate::store::{Shared, join_all};
use crate::{read, reply};

/// Records that one read brings.
const READ_MOST: usize = 64;

/// A question over all partitions.
pub(crate) trait Course: Sync {
    /// Its order is that of the walk.
    type Position: Copy + Ord + Send + Sync;

    type Item: Send;

    /// Shows the next entries of each partition.
    const FUNCTION: &'static str;

    /// What the function is given for entries behind a position, before the partitions.
    fn arguments(&self, call: &mut Cmd, behind: Option<Self::Position>, most: usize);

    /// Reads one entry of a partition.
    fn position(partition: u16, entry: &[u8]) -> Option<Self::Position>;

    /// Given the last of the entries that a partition has shown: none that it has not shown comes
    /// before this, or at it.
    fn sure(last: Self::Position) -> Self::Position;

    fn execution_id(at: &Self::Position) -> ExecutionId;

    fn limit(&self) -> u32;

    /// What an entry is to the question.
    fn see(&self, at: &Self::Position, found: &Execution, now: TimestampMs) -> Seen<Self::Item>;

    fn cursor_after(&self, at: Self::Position) -> String;
}

/// The page behind a position.
pub(crate) async fn page<C: Course>(
    shared: &Arc<Shared>,
    course: &C,
    behind: Option<C::Position>,
) -> Result<Page<C::Item>, EngineError> {
    let mut leaf = Leaf::new(course.limit());
    let mut walk = Walk { shared, course, behind };
    loop {
        let (positions, more) = walk.step().await?;
        let found = load(shared, positions.iter().map(C::execution_id).collect()).await?;
        let is_done = positions.iter().any(|at| {
            let seen = |(now, entry): &(_, Entry)| course.see(at, &entry.execution, *now);
            let see = || found.get(&C::execution_id(at)).map_or(Seen::Passed, seen);
            leaf.look(*at, see).is_break()
        });
        if is_done || !more {
            return Ok(leaf.finish(|last| course.cursor_after(last)));
        }
    }
}

struct Walk<'a, C: Course> {
    shared: &'a Arc<Shared>,
    course: &'a C,
    /// All up to here have been seen.
    behind: Option<C::Position>,
}

/// The next entries of one partition.
struct Front<P> {
    positions: Vec<P>,
    complete: bool,
}

impl<C: Course> Walk<'_, C> {
    /// The next positions in order, and whether there are more behind them.
    async fn step(&mut self) -> Result<(Vec<C::Position>, bool), EngineError> {
        let mut most = (self.course.limit() as usize).clamp(16, READ_MOST);
        loop {
            let fronts = self.fronts(most).await?;
            // What a partition has not shown comes behind this.
            let unseen = fronts.iter().filter(|front| !front.complete);
            let sure = unseen.filter_map(|front| front.positions.iter().max()).copied();
            let sure = sure.map(C::sure).min();
            let mut positions: Vec<_> = fronts.into_iter().flat_map(|f| f.positions).collect();
            positions.sort_unstable();
            positions.dedup();
            positions.retain(|at| {
                self.behind.is_none_or(|behind| *at > behind) && sure.is_none_or(|sure| *at <= sure)
            });
            if positions.is_empty() && sure.is_some() {
                // All that was shown lies too close together: look further.
                most *= 2;
                continue;
            }
            self.behind = positions.last().copied().or(self.behind);
            return Ok((positions, sure.is_some()));
        }
    }

    async fn fronts(&self, most: usize) -> Result<Vec<Front<C::Position>>, EngineError> {
        let replies = self
            .shared
            .everywhere(C::FUNCTION, Missing::Wait, |call, partitions| {
                self.course.arguments(call, self.behind, most);
                call.arg(partitions);
            })
            .await?;
        let mut fronts = Vec::new();
        for reply in replies {
            for front in reply::array(reply)? {
                fronts.push(read_front::<C>(front)?);
            }
        }
        Ok(fronts)
    }
}

fn read_front<C: Course>(front: Value) -> Result<Front<C::Position>, EngineError> {
    let mut items = reply::array(front)?.into_iter();
    let partition = reply::partition(&reply::next(&mut items)?)?;
    let complete = reply::number(&reply::next(&mut items)?)? == 1;
    let mut positions = Vec::new();
    for entry in items {
        let entry = reply::some_bytes(entry)?;
        positions.push(C::position(partition, &entry).ok_or_else(|| {
            EngineError::corruption(format!("{} of {partition} has {entry:?}", C::FUNCTION))
        })?);
    }
    Ok(Front { positions, complete })
}

/// The records of these executions that exist, each with the time at which it was read.
async fn load(
    shared: &Arc<Shared>,
    ids: BTreeSet<ExecutionId>,
) -> Result<HashMap<ExecutionId, (TimestampMs, Entry)>, EngineError> {
    let mut by_partition: BTreeMap<u16, Vec<ExecutionId>> = BTreeMap::new();
    for id in ids {
        by_partition.entry(id.partition()).or_default().push(id);
    }
    let parts = by_partition.values().flat_map(|ids| ids.chunks(READ_MOST));
    let reads = parts.filter_map(|part| {
        let partition = part.first()?.partition();
        Some(async move { read::executions(shared, partition, part).await })
    });
    let mut found = HashMap::new();
    for read in join_all(reads).await {
        let (now, entries) = read?;
        let entries = entries.into_iter().flatten();
        found.extend(entries.map(|entry| (entry.execution.id, (now, entry))));
    }
    Ok(found)
}
