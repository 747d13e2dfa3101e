//! What time does: when something is due, and carrying it out.

use std::sync::Arc;

use bytes::Bytes;
use ff_core::error::{Code, EngineError};
use ff_core::id::{ExecutionId, Home, Subject};
use ff_core::operation::{ExpireExecution, Fired, NotDue, Reply, Tick, Ticked};
use ff_core::read::Dues;
use ff_core::time::TimestampMs;
use redis::{Cmd, Value};

use crate::apply::{Done, Job, run};
use crate::commit::ITEMS_MOST;
use crate::everywhere::{Answered, Missing, Tour};
use crate::passed::Entry;
use crate::store::{Shared, join_all};
use crate::{ask, homes, reply, subject};

/// Homes without executions that are asked together whether any has timers.
const TOGETHER: usize = 16;

/// Entries of a home that one call shows; what is more comes with the next tick.
const OF_A_HOME: u32 = 256;

/// The earliest entries of one home's leases and of its timers.
struct Front {
    home: Home,
    now: TimestampMs,
    indexes: [Vec<Entry>; 2],
}

/// What one call tells.
struct Told {
    now: TimestampMs,
    /// How many namespaces stand in the register, if it was to tell.
    entered: Option<i64>,
    fronts: Vec<Front>,
}

/// An entry that is due, and when it was found so.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Late {
    at: TimestampMs,
    /// None: its member is no name. What is due together is carried out in the order of names, as in every
    /// store.
    subject: Option<Subject>,
    home: Home,
    member: Bytes,
    now: TimestampMs,
}

/// An execution in a queue, past its deadline.
#[derive(Debug, Clone)]
pub(crate) struct Expired {
    pub(crate) id: ExecutionId,
    pub(crate) queue: Arc<str>,
}

/// When time has something to do next, in every home.
pub(crate) async fn due(shared: &Arc<Shared>) -> Result<Dues, EngineError> {
    let (now, fronts) = earliest(shared).await?;
    let mut dues = Dues { now, ..Dues::default() };
    for front in fronts {
        let earliest = front.entries().map(|(at, _)| *at).min();
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
        let front = front?;
        let before = due.len();
        let is_due = |(at, _): &&Entry| *at <= front.now;
        due.extend(front.entries().filter(is_due).map(|(at, member)| Late {
            at: *at,
            subject: subject::parse(&front.home, member),
            home: front.home.clone(),
            member: member.clone(),
            now: front.now,
        }));
        more |= each < tick.most && due.len() - before > each as usize;
    }
    due.sort_unstable();
    // A lease and a timer of one execution are one thing to look at.
    let mut seen = std::collections::HashSet::new();
    due.retain(|late| seen.insert((late.home.clone(), late.member.clone())));
    more |= due.len() > tick.most as usize;
    due.truncate(tick.most as usize);
    let mut ticked = Ticked { more, ..Ticked::default() };
    for part in due.chunks(ITEMS_MOST) {
        ticked.merge(&carry_out(shared, part).await?);
    }
    Ok(ticked)
}

/// Homes in which something is due.
async fn homes_due(shared: &Arc<Shared>) -> Result<Vec<Home>, EngineError> {
    let fronts = earliest(shared).await?.1.into_iter();
    let due = fronts.filter(|front| front.entries().any(|(at, _)| *at <= front.now));
    Ok(due.map(|front| front.home).collect())
}

/// The time, and of each home the earliest of its leases and of its timers that do not rest.
async fn earliest(shared: &Arc<Shared>) -> Result<(TimestampMs, Vec<Front>), EngineError> {
    let (mut latest, mut fronts, mut hidden) = (TimestampMs(0), Vec::new(), Vec::new());
    for told in all_told(shared).await? {
        latest = latest.max(told.now);
        for front in told.fronts {
            match shared.passed.any_in(&front.home, told.now) {
                true => hidden.push(front.home),
                false => fronts.push(front),
            }
        }
    }
    let looks = hidden.iter().map(|home| front_of(shared, home, 0));
    for front in join_all(looks).await {
        // The home of a node that hangs is left out, as it is by the look at all of them.
        fronts.extend(front.ok());
    }
    Ok((latest, fronts))
}

/// What all homes tell: first those that are known, then those that others have made since.
async fn all_told(shared: &Arc<Shared>) -> Result<Vec<Told>, EngineError> {
    let arguments = |call: &mut Cmd, homes: &[Home]| ask(shared, call, (0, 0), homes);
    let tour = Tour::by("ff_due", Missing::LeaveOut);
    let (mut all, mut homes) = (Vec::new(), shared.homes.known());
    while !homes.is_empty() {
        let first = all.len();
        for Answered { homes, reply } in shared.everywhere(tour, homes, arguments).await?.answered {
            all.push(read_told(shared, &homes, reply)?);
        }
        homes = match all[first..].iter().find_map(|told| told.entered) {
            Some(count) => homes::catch_up(shared, count).await?,
            None => Vec::new(),
        };
    }
    Ok(all)
}

/// The earliest leases and timers of a home that do not rest, `most` and one more of each. What rests
/// stands at the front, so that as many pages are read as it takes to get behind it.
async fn front_of(shared: &Shared, home: &Home, most: u32) -> Result<Front, EngineError> {
    let mut front = Front { home: home.clone(), now: TimestampMs(0), indexes: Default::default() };
    let (mut skipped, mut most_of_page) = (0, most);
    let mut ended = [false; 2];
    while ended.contains(&false) {
        let page = page_of(shared, home, (skipped, most_of_page)).await?;
        let Some(page) = page else { break };
        front.now = page.now;
        for ((index, mut found), ended) in
            front.indexes.iter_mut().zip(page.indexes).zip(&mut ended).filter(|(_, ended)| !**ended)
        {
            let is_last = found.len() <= most_of_page as usize;
            shared.passed.retain_awake(home, &mut found, page.now);
            index.append(&mut found);
            *ended = is_last || index.len() > most as usize;
        }
        skipped += most_of_page + 1;
        most_of_page = OF_A_HOME;
    }
    Ok(front)
}

/// Leases and timers of a home behind the first `skipped` of each, `most` and one more; none: there are
/// no such.
async fn page_of(
    shared: &Shared,
    home: &Home,
    (skipped, most): (u32, u32),
) -> Result<Option<Front>, EngineError> {
    let homes = std::slice::from_ref(home);
    let mut call = shared.read_function("ff_due");
    call.arg(1).arg(shared.keys.log(home));
    ask(shared, shared.begin(&mut call), (skipped, most), homes);
    Ok(read_told(shared, homes, shared.send_home(home, &call).await?)?.fronts.pop())
}

fn ask(shared: &Shared, call: &mut Cmd, (skipped, most): (u32, u32), homes: &[Home]) {
    call.arg(skipped).arg(most).arg(if shared.client.is_cluster() { 0 } else { TOGETHER });
    homes.iter().for_each(|home| {
        call.arg(home.to_string());
    });
}

fn read_told(shared: &Shared, homes: &[Home], reply: Value) -> Result<Told, EngineError> {
    let mut items = reply::array(reply)?.into_iter();
    let now = reply::instant(&reply::next(&mut items)?)?;
    homes.iter().for_each(|home| shared.clock.note(home, now));
    let entered = Some(reply::number(&reply::next(&mut items)?)?).filter(|count| *count >= 0);
    let fronts = items.map(|front| read_front(now, front)).collect::<Result<_, _>>()?;
    Ok(Told { now, entered, fronts })
}

fn read_front(now: TimestampMs, front: Value) -> Result<Front, EngineError> {
    let mut items = reply::array(front)?.into_iter();
    let home = reply::home(reply::next(&mut items)?)?;
    let leases = read_index(reply::next(&mut items)?)?;
    let timers = read_index(reply::next(&mut items)?)?;
    Ok(Front { home, now, indexes: [leases, timers] })
}

fn read_index(index: Value) -> Result<Vec<Entry>, EngineError> {
    let mut items = reply::array(index)?.into_iter();
    let mut entries = Vec::with_capacity(items.len() / 2);
    while let Some(at) = items.next() {
        entries.push((reply::instant(&at)?, reply::some_bytes(reply::next(&mut items)?)?));
    }
    Ok(entries)
}

impl Front {
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.indexes.iter().flatten()
    }
}

/// Lets the machine fire what is due of each of these.
async fn carry_out(shared: &Arc<Shared>, due: &[Late]) -> Result<Ticked, EngineError> {
    let mut ticked = Ticked::default();
    let (mut sound, mut jobs, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    for late in due {
        match &late.subject {
            Some(subject) => {
                jobs.push(Job::due(subject));
                sound.push((late, subject));
            }
            None => {
                let (home, member) = (&late.home, &late.member);
                tracing::error!(%home, ?member, "what is due is passed over: it is no name");
                broken.push(late);
            }
        }
    }
    for ((late, subject), done) in sound.into_iter().zip(run(shared, jobs).await) {
        match unless_broken(subject, done)? {
            Some(Done { reply: Reply::Tick(part), .. }) => ticked.merge(&part),
            Some(_) => {}
            None => broken.push(late),
        }
    }
    for late in broken {
        ticked.broken += 1;
        shared.passed.note(&late.home, (late.at, late.member.clone()), late.now);
    }
    Ok(ticked)
}

/// None: its record cannot be read. It stays due and is told of again after a rest, and holds up nothing
/// else: leases and timers of a home wait for nobody's repair.
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

/// Ends executions that a claim met in a queue although their deadline has passed. True: at least one of
/// them is in its queue no more.
pub(crate) async fn expire(shared: &Arc<Shared>, met: &[Expired]) -> Result<bool, EngineError> {
    let expire = |it: &Expired| Job::new(shared, ExpireExecution { execution_id: it.id }.into());
    let mut any = false;
    for part in met.chunks(ITEMS_MOST) {
        for (it, done) in part.iter().zip(run(shared, part.iter().map(expire).collect()).await) {
            match unless_broken(&Subject::from(it.id), done)? {
                Some(Done {
                    reply: Reply::ExpireExecution(Fired::AlreadySatisfied(why)), ..
                }) => {
                    any |= why != NotDue::NotYetDue;
                }
                Some(_) => any = true,
                None => {
                    move_aside(shared, it).await?;
                    any = true;
                }
            }
        }
    }
    Ok(any)
}

/// Takes a broken record out of its queue: claims would meet it for ever, and many of them would hide
/// what stands behind.
async fn move_aside(shared: &Shared, it: &Expired) -> Result<(), EngineError> {
    let partition = it.id.partition();
    let mut leave = redis::cmd("ZREM");
    leave.arg(shared.keys.queue(partition, &it.queue)).arg(&it.id.uuid().as_bytes()[..]);
    if reply::number(&shared.send(partition, &leave).await?)? > 0 {
        ask::note_aside(shared, &it.queue, &it.id, "a broken record past its deadline");
    }
    Ok(())
}
