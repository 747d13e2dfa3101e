//! Retention of the log and of the lists of submits. Records of repetition go by themselves: the
//! server removes their keys.

use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::Home;
use ff_core::operation::{Trim, Trimmed};
use ff_core::time::TimestampMs;

use crate::item::{HOUR_MS, OLD};
use crate::store::{Shared, join_all};
use crate::{homes, keyring, read, reply};

/// Hours whose lists are left alone: by then most of what was submitted in them is gone.
const HOURS_LISTED: i64 = 25;

/// Of the bytes that the log may have, one in so many is for homes without executions: they are many
/// where there are many namespaces, and have few events.
const SHARE_OF_OTHERS: u64 = 8;

/// Entries of a log that one call looks at: everything else waits while a function runs.
const ENTRIES_MOST: u32 = 50;

/// Submits that one call looks up.
const SWEPT_MOST: usize = 256;

/// Homes that are visited at the same time. Others get their turn between them.
const TOGETHER: usize = 8;

/// Visits of one home in a step.
const VISITS_MOST: usize = 64;

/// What a visit removed, and whether more may be to remove.
type Visited = (u32, bool);

/// One bounded step: homes that say that there is more are visited again, without the others.
pub(crate) async fn trim(shared: &Arc<Shared>, trim: &Trim) -> Result<Trimmed, EngineError> {
    let homes = homes::all(shared).await?;
    let (partition, other) = shares(trim.event_bytes, &homes);
    let logs = visits(homes, |home| async move {
        let bytes = if home.flow_partition().is_some() { partition } else { other };
        trim_log(shared, &home, trim, bytes).await
    });
    let logs = logs.await;
    let submits = visits(shared.partitions(), |home| sweep(shared, home)).await;
    // What hinders one of them hinders no other.
    let swept = keyring::sweep(shared).await;
    let ((events, more_events), (_, more_submits)) = (logs?, submits?);
    swept?;
    Ok(Trimmed { events, more: more_events || more_submits, ..Trimmed::default() })
}

/// Visits homes until each has nothing more to do, or was visited often enough. One that fails hinders
/// no other: all are visited before its error is told.
async fn visits<V: Future<Output = Result<Visited, EngineError>>>(
    homes: Vec<Home>,
    visit: impl Fn(Home) -> V,
) -> Result<Visited, EngineError> {
    let (mut left, mut removed, mut failed) = (homes, 0, None);
    for _ in 0..VISITS_MOST {
        let mut again = Vec::new();
        for part in left.chunks(TOGETHER) {
            let visited = join_all(part.iter().cloned().map(&visit)).await;
            for (home, visited) in part.iter().zip(visited) {
                match visited {
                    Ok((count, more)) => {
                        removed += count;
                        again.extend(more.then(|| home.clone()));
                    }
                    Err(error) => failed = Some(error),
                }
            }
        }
        left = again;
    }
    failed.map_or(Ok((removed, !left.is_empty())), Err)
}

/// The bytes that the log of each partition of executions may have, and of each other home.
fn shares(bytes: u64, homes: &[Home]) -> (u64, u64) {
    let partitions = homes.iter().filter(|home| home.flow_partition().is_some()).count() as u64;
    let others = bytes / SHARE_OF_OTHERS;
    let each = |bytes: u64, count: u64| bytes / count.max(1);
    (each(bytes - others, partitions), each(others, homes.len() as u64 - partitions))
}

/// Removes the oldest events of a home: how many, and whether more may be to go.
async fn trim_log(
    shared: &Shared,
    home: &Home,
    trim: &Trim,
    bytes: u64,
) -> Result<Visited, EngineError> {
    let mut call = shared.function("ff_trim");
    call.arg(1).arg(shared.keys.log(home));
    shared.begin(&mut call);
    // Beyond 2^53 the functions' numbers are not exact, and nobody keeps that much.
    call.arg(trim.events_before.0).arg(bytes.min(1 << 50)).arg(trim.most.min(ENTRIES_MOST));
    let reply = reply::array(shared.send_home(home, &call).await?)?;
    let count = |n: usize| reply.get(n).map_or(Ok(0), reply::number);
    Ok((u32::try_from(count(0)?).unwrap_or(u32::MAX), count(1)? == 1))
}

/// Shortens the oldest list of submits, if it is old enough: how many were looked up, and whether more
/// is to do.
async fn sweep(shared: &Shared, home: Home) -> Result<Visited, EngineError> {
    let Some(partition) = home.flow_partition() else { return Ok((0, false)) };
    let hours = shared.keys.index(partition, "created");
    let mut first = redis::cmd("ZRANGE");
    first.arg(&hours).arg(0).arg(0);
    let oldest = reply::array(shared.send(partition, &first).await?)?;
    let Some(oldest) = oldest.first() else { return Ok((0, false)) };
    let hour = reply::number(oldest)?;
    let now: TimestampMs = match shared.clock.estimate(&home) {
        Some(now) => now,
        None => read::read_keys(shared, partition, Vec::new()).await?.0,
    };
    if hour >= now.0.div_euclid(HOUR_MS) - HOURS_LISTED {
        return Ok((0, false));
    }
    let bucket = shared.keys.index(partition, &format!("created:{hour}"));
    let mut call = shared.function("ff_sweep");
    call.arg(3).arg(&hours).arg(bucket).arg(shared.keys.index(partition, OLD));
    shared.begin(&mut call).arg(partition).arg(hour).arg(SWEPT_MOST);
    let looked_up = reply::number(&shared.send(partition, &call).await?)?;
    // The rest of the hour, or the next one, may be old enough too.
    Ok((u32::try_from(looked_up).unwrap_or(u32::MAX), true))
}
