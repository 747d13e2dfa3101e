//! What time does: when something is due, and carrying it out.

use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Home, Subject};
use ff_core::operation::{ExpireExecution, Reply, Tick, Ticked};
use ff_core::read::Dues;
use ff_core::time::TimestampMs;
use redis::{Cmd, Value};

use crate::apply::{Job, run};
use crate::commit::ITEMS_MOST;
use crate::everywhere::{Answered, Missing, Tour};
use crate::reply;
use crate::store::Shared;

/// Homes without executions that are asked together whether any has timers.
const TOGETHER: usize = 16;

/// The earliest entries of one home's timers.
struct Front {
    home: Home,
    now: TimestampMs,
    entries: Vec<(TimestampMs, Subject)>,
}

/// When time has something to do next, in every home.
pub(crate) async fn due(shared: &Arc<Shared>) -> Result<Dues, EngineError> {
    let (now, fronts) = fronts(shared, None, 0).await?;
    let mut dues = Dues { now, ..Dues::default() };
    for front in fronts {
        let earliest = front.entries.iter().map(|(at, _)| *at).min();
        dues.items.extend(earliest.map(|at| (Some(front.home), at)));
    }
    Ok(dues)
}

/// Carries out what is due, oldest first.
pub(crate) async fn tick(shared: &Arc<Shared>, tick: &Tick) -> Result<Ticked, EngineError> {
    let mut due = Vec::new();
    for front in fronts(shared, tick.home.as_ref(), tick.most).await?.1 {
        due.extend(front.entries.into_iter().filter(|(at, _)| *at <= front.now));
    }
    due.sort_unstable();
    // A lease and a timer of one execution are one thing to look at.
    let mut seen = std::collections::HashSet::new();
    due.retain(|(_, subject)| seen.insert(subject.clone()));
    let mut ticked = Ticked { more: due.len() > tick.most as usize, ..Ticked::default() };
    due.truncate(tick.most as usize);
    for part in due.chunks(ITEMS_MOST) {
        ticked.merge(&carry_out(shared, part.iter().map(|(_, subject)| subject)).await?);
    }
    Ok(ticked)
}

/// The time, and the earliest entries of leases and timers, `most` and one more of each.
async fn fronts(
    shared: &Arc<Shared>,
    home: Option<&Home>,
    most: u32,
) -> Result<(TimestampMs, Vec<Front>), EngineError> {
    let arguments = |call: &mut Cmd, homes: &[Home]| {
        call.arg(most).arg(if shared.client.is_cluster() { 0 } else { TOGETHER });
        homes.iter().for_each(|home| {
            call.arg(home.to_string());
        });
    };
    let replies = match home {
        Some(home) => {
            let mut call = shared.read_function("ff_due");
            call.arg(1).arg(shared.keys.log(home));
            arguments(shared.begin(&mut call), std::slice::from_ref(home));
            let reply = shared.send_home(home, &call).await?;
            vec![Answered { homes: vec![home.clone()], reply }]
        }
        None => {
            let mut tour = Tour::by("ff_due", Missing::LeaveOut);
            if most > 0 {
                tour = tour.entries(most as usize);
            }
            shared.in_all_homes(tour, arguments).await?
        }
    };
    let (mut latest, mut fronts) = (TimestampMs(0), Vec::new());
    for answered in replies {
        let mut items = reply::array(answered.reply)?.into_iter();
        let now = reply::instant(&reply::next(&mut items)?)?;
        answered.homes.iter().for_each(|home| shared.clock.note(home, now));
        latest = latest.max(now);
        for front in items {
            fronts.push(read_front(now, front)?);
        }
    }
    Ok((latest, fronts))
}

fn read_front(now: TimestampMs, front: Value) -> Result<Front, EngineError> {
    let mut items = reply::array(front)?.into_iter();
    let home = reply::home(reply::next(&mut items)?)?;
    let mut entries = Vec::new();
    while let Some(at) = items.next() {
        let subject = reply::subject(&home, reply::next(&mut items)?)?;
        entries.push((reply::instant(&at)?, subject));
    }
    Ok(Front { home, now, entries })
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
