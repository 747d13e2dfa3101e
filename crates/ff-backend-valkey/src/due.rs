//! What time does: when something is due, and carrying it out.

use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Home, Subject};
use ff_core::operation::{ExpireExecution, Reply, Tick, Ticked};
use ff_core::read::Dues;
use ff_core::time::TimestampMs;
use redis::Value;

use crate::apply::{Job, run};
use crate::commit::ITEMS_MOST;
use crate::everywhere::Missing;
use crate::reply;
use crate::store::Shared;

/// The earliest entries of one partition's timers.
struct Front {
    partition: u16,
    now: TimestampMs,
    entries: Vec<(TimestampMs, Subject)>,
}

/// When time has something to do next, in every partition.
pub(crate) async fn due(shared: &Arc<Shared>) -> Result<Dues, EngineError> {
    let mut dues = Dues::default();
    for front in fronts(shared, None, 0).await? {
        dues.now = dues.now.max(front.now);
        let earliest = front.entries.iter().map(|(at, _)| *at).min();
        dues.items.extend(earliest.map(|at| (Some(front.partition), at)));
    }
    Ok(dues)
}

/// Carries out what is due, oldest first.
pub(crate) async fn tick(shared: &Arc<Shared>, tick: &Tick) -> Result<Ticked, EngineError> {
    let mut due = Vec::new();
    for front in fronts(shared, tick.partition, tick.most).await? {
        due.extend(front.entries.into_iter().filter(|(at, _)| *at <= front.now));
    }
    due.sort_unstable();
    // A lease and a timer of one execution are one thing to look at.
    let mut seen = std::collections::HashSet::new();
    due.retain(|(_, subject)| seen.insert(subject.clone()));
    let mut ticked = Ticked { fired: Vec::new(), more: due.len() > tick.most as usize };
    due.truncate(tick.most as usize);
    for part in due.chunks(ITEMS_MOST) {
        ticked.merge(&carry_out(shared, part.iter().map(|(_, subject)| subject)).await?);
    }
    Ok(ticked)
}

/// The earliest entries of leases and timers, `most` and one more of each.
async fn fronts(
    shared: &Arc<Shared>,
    partition: Option<u16>,
    most: u32,
) -> Result<Vec<Front>, EngineError> {
    let replies = match partition {
        Some(partition) => {
            let mut call = shared.read_function("ff_due");
            call.arg(1).arg(shared.keys.events(partition));
            shared.begin(&mut call).arg(most).arg(partition);
            vec![shared.send(partition, &call).await?]
        }
        None => {
            shared
                .everywhere("ff_due", Missing::LeaveOut, |call, partitions| {
                    call.arg(most).arg(partitions);
                })
                .await?
        }
    };
    let mut fronts = Vec::new();
    for reply in replies {
        for front in reply::array(reply)? {
            fronts.push(read_front(shared, front)?);
        }
    }
    Ok(fronts)
}

fn read_front(shared: &Shared, front: Value) -> Result<Front, EngineError> {
    let mut items = reply::array(front)?.into_iter();
    let partition = reply::partition(&reply::next(&mut items)?)?;
    let now = reply::instant(&reply::next(&mut items)?)?;
    let home = Home::partition(partition);
    shared.clock.note(&home, now);
    let mut entries = Vec::new();
    while let Some(at) = items.next() {
        let subject = reply::subject(&home, reply::next(&mut items)?)?;
        entries.push((reply::instant(&at)?, subject));
    }
    Ok(Front { partition, now, entries })
}

/// Lets the machine fire what is due of each of these.
async fn carry_out(
    shared: &Arc<Shared>,
    due: impl Iterator<Item = &Subject>,
) -> Result<Ticked, EngineError> {
    let jobs = due.map(Job::due).collect();
    let mut ticked = Ticked::default();
    for done in run(shared, jobs).await {
        if let Reply::Tick(part) = done?.reply {
            ticked.merge(&part);
        }
    }
    Ok(ticked)
}

/// Executions that a claim met in a queue although their deadline has passed.
pub(crate) async fn expire(shared: &Arc<Shared>, ids: &[ExecutionId]) -> Result<(), EngineError> {
    let expire = |id: &ExecutionId| {
        let expire = ExpireExecution { execution_id: *id };
        Job::new(shared, expire.into())
    };
    for part in ids.chunks(ITEMS_MOST) {
        for done in run(shared, part.iter().map(expire).collect()).await {
            done?;
        }
    }
    Ok(())
}
