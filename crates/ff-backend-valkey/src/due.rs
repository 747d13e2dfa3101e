//! What time does: when something is due, and carrying it out.

use std::sync::Arc;

use ff_core::error::{Code, EngineError};
use ff_core::id::{ExecutionId, Home, Subject};
use ff_core::operation::{ExpireExecution, Reply, Tick, Ticked};
use ff_core::read::Dues;
use ff_core::time::TimestampMs;
use redis::{Cmd, Value};

use crate::apply::{Done, Job, run};
use crate::commit::ITEMS_MOST;
use crate::everywhere::{Answered, Missing, Tour};
use crate::reply;
use crate::store::{Shared, join_all};

/// Homes without executions that are asked together whether any has timers.
const TOGETHER: usize = 16;

/// Entries of a home that one call shows; what is more comes with the next tick.
const OF_A_HOME: u32 = 256;

/// The earliest entries of one home's timers.
struct Front {
    home: Home,
    now: TimestampMs,
    entries: Vec<(TimestampMs, Subject)>,
}

/// When time has something to do next, in every home.
pub(crate) async fn due(shared: &Arc<Shared>) -> Result<Dues, EngineError> {
    let (now, fronts) = earliest(shared).await?;
    let mut dues = Dues { now, ..Dues::default() };
    for front in fronts {
        let earliest = front.entries.iter().map(|(at, _)| *at).min();
        dues.items.extend(earliest.map(|at| (Some(front.home), at)));
    }
    Ok(dues)
}

/// Carries out what is due, oldest first.
pub(crate) async fn tick(shared: &Arc<Shared>, tick: &Tick) -> Result<Ticked, EngineError> {
    let homes = match &tick.home {
        Some(home) => vec![home.clone()],
        None => homes_due(shared).await?,
    };
    let each = tick.most.min(OF_A_HOME);
    let fronts = join_all(homes.iter().map(|home| front_of(shared, home, each))).await;
    let (mut due, mut more) = (Vec::new(), false);
    for front in fronts {
        let before = due.len();
        for front in front? {
            due.extend(front.entries.into_iter().filter(|(at, _)| *at <= front.now));
        }
        more |= each < tick.most && due.len() - before > each as usize;
    }
    due.sort_unstable();
    // A lease and a timer of one execution are one thing to look at.
    let mut seen = std::collections::HashSet::new();
    due.retain(|(_, subject)| seen.insert(subject.clone()));
    more |= due.len() > tick.most as usize;
    due.truncate(tick.most as usize);
    let mut ticked = Ticked { more, ..Ticked::default() };
    for part in due.chunks(ITEMS_MOST) {
        ticked.merge(&carry_out(shared, part.iter().map(|(_, subject)| subject)).await?);
    }
    Ok(ticked)
}

/// Homes in which something is due.
async fn homes_due(shared: &Arc<Shared>) -> Result<Vec<Home>, EngineError> {
    let fronts = earliest(shared).await?.1.into_iter();
    let due = fronts.filter(|front| front.entries.iter().any(|(at, _)| *at <= front.now));
    Ok(due.map(|front| front.home).collect())
}

/// The time, and of each home the earliest of its leases and of its timers.
async fn earliest(shared: &Arc<Shared>) -> Result<(TimestampMs, Vec<Front>), EngineError> {
    let arguments = |call: &mut Cmd, homes: &[Home]| ask(shared, call, 0, homes);
    let tour = Tour::by("ff_due", Missing::LeaveOut);
    let (mut latest, mut fronts) = (TimestampMs(0), Vec::new());
    for Answered { homes, reply } in shared.in_all_homes(tour, arguments).await? {
        let (now, found) = read_fronts(shared, &homes, reply)?;
        latest = latest.max(now);
        fronts.extend(found);
    }
    Ok((latest, fronts))
}

/// The earliest leases and timers of a home, `most` and one more of each.
async fn front_of(shared: &Shared, home: &Home, most: u32) -> Result<Vec<Front>, EngineError> {
    let homes = std::slice::from_ref(home);
    let mut call = shared.read_function("ff_due");
    call.arg(1).arg(shared.keys.log(home));
    ask(shared, shared.begin(&mut call), most, homes);
    Ok(read_fronts(shared, homes, shared.send_home(home, &call).await?)?.1)
}

fn ask(shared: &Shared, call: &mut Cmd, most: u32, homes: &[Home]) {
    call.arg(most).arg(if shared.client.is_cluster() { 0 } else { TOGETHER });
    homes.iter().for_each(|home| {
        call.arg(home.to_string());
    });
}

fn read_fronts(
    shared: &Shared,
    homes: &[Home],
    reply: Value,
) -> Result<(TimestampMs, Vec<Front>), EngineError> {
    let mut items = reply::array(reply)?.into_iter();
    let now = reply::instant(&reply::next(&mut items)?)?;
    homes.iter().for_each(|home| shared.clock.note(home, now));
    Ok((now, items.map(|front| read_front(now, front)).collect::<Result<_, _>>()?))
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
    let due: Vec<_> = due.collect();
    let jobs = due.iter().map(|subject| Job::due(subject)).collect();
    let mut ticked = Ticked::default();
    for (subject, done) in due.into_iter().zip(run(shared, jobs).await) {
        match unless_broken(subject, done)? {
            Some(Done { reply: Reply::Tick(part), .. }) => ticked.merge(&part),
            Some(_) => {}
            None => ticked.broken += 1,
        }
    }
    Ok(ticked)
}

/// None: its record cannot be read. It stays due and is told of each time, and holds up nothing else:
/// leases and timers of a home wait for nobody's repair.
fn unless_broken(
    subject: &Subject,
    done: Result<Done, EngineError>,
) -> Result<Option<Done>, EngineError> {
    match done {
        Err(error) if error.code() == Code::Corruption => {
            tracing::error!(%subject, %error, "what is due of a broken record is passed over");
            Ok(None)
        }
        done => done.map(Some),
    }
}

/// Executions that a claim met in a queue although their deadline has passed.
pub(crate) async fn expire(shared: &Arc<Shared>, ids: &[ExecutionId]) -> Result<(), EngineError> {
    let expire = |id: &ExecutionId| {
        let expire = ExpireExecution { execution_id: *id };
        Job::new(shared, expire.into())
    };
    for part in ids.chunks(ITEMS_MOST) {
        for (id, done) in part.iter().zip(run(shared, part.iter().map(expire).collect()).await) {
            unless_broken(&Subject::from(*id), done)?;
        }
    }
    Ok(())
}
