//! Retention of the log and of the lists of submits. Records of repetition go by themselves: the
//! server removes their keys.

use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::Home;
use ff_core::operation::{Trim, Trimmed};
use ff_core::time::TimestampMs;

use crate::commit::ITEMS_MOST;
use crate::item::{HOUR_MS, OLD};
use crate::store::{Shared, join_all};
use crate::{homes, keyring, read, reply};

/// Hours whose lists are left alone: by then most of what was submitted in them is gone.
const HOURS_LISTED: i64 = 25;

/// Of the bytes that the log may have, one in so many is for homes without executions: they are many
/// where there are many namespaces, and have few events.
const SHARE_OF_OTHERS: u64 = 8;

/// One bounded step in every home.
pub(crate) async fn trim(shared: &Arc<Shared>, trim: &Trim) -> Result<Trimmed, EngineError> {
    let homes = homes::all(shared).await?;
    let (partitions, others) = shares(trim.event_bytes, &homes);
    let steps = homes.iter().map(|home| async move {
        let Some(partition) = home.flow_partition() else {
            return trim_log(shared, home, trim, others).await;
        };
        let (events, more_events) = trim_log(shared, home, trim, partitions).await?;
        let more_submits = sweep(shared, partition).await?;
        Ok::<_, EngineError>((events, more_events || more_submits))
    });
    let mut trimmed = Trimmed::default();
    for step in join_all(steps).await {
        let (events, more) = step?;
        trimmed.events += events;
        trimmed.more |= more;
    }
    keyring::sweep(shared).await?;
    Ok(trimmed)
}

/// The bytes that the log of each partition of executions may have, and of each other home.
fn shares(bytes: u64, homes: &[Home]) -> (u64, u64) {
    let partitions = homes.iter().filter(|home| home.flow_partition().is_some()).count() as u64;
    let others = bytes / SHARE_OF_OTHERS;
    let each = |bytes: u64, count: u64| bytes / count.max(1);
    (each(bytes - others, partitions), each(others, homes.len() as u64 - partitions))
}

/// Removes the oldest events of a home: how many, and whether more are to go.
async fn trim_log(
    shared: &Shared,
    home: &Home,
    trim: &Trim,
    bytes: u64,
) -> Result<(u32, bool), EngineError> {
    let mut call = shared.function("ff_trim");
    call.arg(1).arg(shared.keys.log(home));
    shared.begin(&mut call);
    // Beyond 2^53 the functions' numbers are not exact, and nobody keeps that much.
    call.arg(trim.events_before.0).arg(bytes.min(1 << 50)).arg(trim.most);
    let reply = reply::array(shared.send_home(home, &call).await?)?;
    let count = |n: usize| reply.get(n).map_or(Ok(0), reply::number);
    Ok((u32::try_from(count(0)?).unwrap_or(u32::MAX), count(1)? == 1))
}

/// Shortens the oldest list of submits, if it is old enough; whether more is to do.
async fn sweep(shared: &Shared, partition: u16) -> Result<bool, EngineError> {
    let hours = shared.keys.index(partition, "created");
    let mut first = redis::cmd("ZRANGE");
    first.arg(&hours).arg(0).arg(0);
    let oldest = reply::array(shared.send(partition, &first).await?)?;
    let Some(oldest) = oldest.first() else { return Ok(false) };
    let hour = reply::number(oldest)?;
    let now: TimestampMs = match shared.clock.estimate(&Home::partition(partition)) {
        Some(now) => now,
        None => read::read_keys(shared, partition, Vec::new()).await?.0,
    };
    if hour >= now.0.div_euclid(HOUR_MS) - HOURS_LISTED {
        return Ok(false);
    }
    let bucket = shared.keys.index(partition, &format!("created:{hour}"));
    let mut call = shared.function("ff_sweep");
    call.arg(3).arg(&hours).arg(bucket).arg(shared.keys.index(partition, OLD));
    shared.begin(&mut call).arg(partition).arg(hour).arg(ITEMS_MOST);
    shared.send(partition, &call).await?;
    // The rest of the hour, or the next one, may be old enough too.
    Ok(true)
}
