//! Telling tails that the output of their execution has grown or ended.
//!
//! An append notes its execution in a small stream of its partition; the end of an attempt stands in
//! the log. One listener of this process waits for both, on a connection of its own, and tells those
//! who tail that execution and nobody else.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::id::Home;
use ff_core::read::{Followed, StreamPage, StreamRange};
use ff_core::tails::Tails;
use futures_util::FutureExt as _;
use futures_util::future::WeakShared;
use redis::Value;

use crate::attendance::{Attendance, Present};
use crate::everywhere::Missing;
use crate::growth::{REST, TURN, parts};
use crate::store::{Shared, join_all};
use crate::{frames, homes, log, reply};

/// Entries of one stream that one turn reads.
const ENTRIES_MOST: usize = 100;

/// Who tails, and the listener that serves them.
#[derive(Default)]
pub(crate) struct Listening {
    tails: Tails,
    present: Attendance,
    looks: Mutex<HashMap<(StreamRange, u64), WeakShared<Look>>>,
}

/// A page on its way.
type Look = Pin<Box<dyn Future<Output = Result<Arc<StreamPage>, EngineError>> + Send>>;

/// Looks that are remembered before those that have ended are dropped.
const LOOKS: usize = 64;

impl Listening {
    fn join(shared: &Arc<Shared>) -> Present<'_> {
        let (present, start) = shared.tails.present.join();
        if let Some(shift) = start {
            for part in parts(shared) {
                tokio::spawn(listen(Arc::clone(shared), part, shift));
            }
        }
        present
    }

    /// Ends all waits.
    pub(crate) fn end(&self) {
        self.tails.tell_all();
    }
}

/// Output of an attempt: frames behind a place, or its end.
pub(crate) async fn frames(
    shared: &Arc<Shared>,
    range: &StreamRange,
    wait: Duration,
) -> Result<Followed, EngineError> {
    let deadline = Instant::now() + wait;
    // Watching begins before anything is read, so nothing falls between.
    let mut watching = shared.tails.tails.watch(range.execution_id);
    let mut present = None;
    let mut page = frames::page(shared, range).await?;
    loop {
        let found = !page.frames.is_empty() || page.closed.is_some();
        if found || wait.is_zero() || shared.is_closing() {
            return Ok(Followed::Frames(page));
        }
        present.get_or_insert_with(|| Listening::join(shared));
        if tokio::time::timeout_at(deadline.into(), watching.news()).await.is_err() {
            return Ok(Followed::Frames(page));
        }
        page = look(shared, range, watching.last_news()).await?;
    }
}

/// A page that holds all that the news with this number told of. Tails that stand at the same place
/// and were woken by the same news share one call.
async fn look(
    shared: &Arc<Shared>,
    range: &StreamRange,
    news: u64,
) -> Result<StreamPage, EngineError> {
    let look = {
        let mut looks = shared.tails.looks.lock().unwrap_or_else(PoisonError::into_inner);
        match looks.get(&(*range, news)).and_then(WeakShared::upgrade) {
            Some(under_way) => under_way,
            None => {
                if looks.len() >= LOOKS {
                    looks.retain(|_, look| look.upgrade().is_some());
                }
                let (shared, range) = (Arc::clone(shared), *range);
                let page = async move { Ok(Arc::new(frames::page(&shared, &range).await?)) };
                let fresh = (Box::pin(page) as Look).shared();
                looks.extend(fresh.downgrade().map(|weak| ((range, news), weak)));
                fresh
            }
        }
    };
    look.await.map(Arc::unwrap_or_clone)
}

/// How far a listener has read: the last entry of each stream.
type Places = HashMap<String, u64>;

async fn listen(shared: Arc<Shared>, partitions: Vec<u16>, shift: u64) {
    let Some(&first) = partitions.first() else { return };
    let slot = shared.keys.slot(first);
    let streams: Vec<(String, u16)> = partitions
        .iter()
        .flat_map(|p| [(shared.keys.told(*p), *p), (shared.keys.events(*p), *p)])
        .collect();
    let (mut connection, mut places) = (None, None);
    let (mut emptied, mut is_quiet) = (shared.emptied.times(), false);
    while shared.tails.present.goes_on(shift) && !shared.is_closing() {
        let turn = async {
            // Where a stream ended is no place in the one that is there after it. One listener looks
            // for all of the process.
            if is_quiet && first == 0 {
                homes::learn(&shared, Missing::Wait).await?;
            }
            let before = std::mem::replace(&mut emptied, shared.emptied.times());
            if before != emptied {
                places = None;
            }
            let known = match &mut places {
                Some(known) => known,
                None => {
                    let ends = ends(&shared, &streams).await?;
                    // What came before that is found by those who look now.
                    shared.tails.tails.tell_all();
                    places.insert(ends)
                }
            };
            if connection.is_none() {
                connection = Some(shared.client.dedicated(slot).await?);
            }
            let Some(dedicated) = &mut connection else { return Ok(()) };
            let call = wait_for_entries(&streams, known);
            let grown = dedicated.query(&call, TURN + shared.options.call_timeout).await?;
            is_quiet = matches!(grown, Value::Nil);
            tell(&shared.tails.tails, &streams, known, grown)
        };
        if let Err(error) = turn.await {
            tracing::debug!(%error, "the wait for output broke off");
            (connection, places) = (None, None);
            tokio::time::sleep(REST).await;
        }
    }
}

/// Where the streams end.
async fn ends(shared: &Shared, streams: &[(String, u16)]) -> Result<Places, EngineError> {
    let reads = streams.iter().map(|(stream, partition)| async move {
        let mut newest = redis::cmd("XREVRANGE");
        newest.arg(stream).arg("+").arg("-").arg("COUNT").arg(1);
        let mut entries = reply::array(shared.send(*partition, &newest).await?)?;
        let number =
            entries.pop().map_or(Ok(0), |entry| Ok::<_, EngineError>(read_entry(entry)?.0))?;
        Ok::<_, EngineError>((stream.clone(), number))
    });
    join_all(reads).await.into_iter().collect()
}

fn wait_for_entries(streams: &[(String, u16)], places: &Places) -> redis::Cmd {
    let mut call = redis::cmd("XREAD");
    call.arg("COUNT").arg(ENTRIES_MOST).arg("BLOCK").arg(TURN.as_millis() as u64).arg("STREAMS");
    for (stream, _) in streams {
        call.arg(stream);
    }
    for (stream, _) in streams {
        call.arg(format!("0-{}", places.get(stream).copied().unwrap_or(0)));
    }
    call
}

/// Tells of every execution that the entries name.
fn tell(
    tails: &Tails,
    streams: &[(String, u16)],
    places: &mut Places,
    grown: Value,
) -> Result<(), EngineError> {
    if matches!(grown, Value::Nil) {
        return Ok(());
    }
    let mut items = reply::flat(grown)?.into_iter();
    while let Some(stream) = items.next() {
        let stream = reply::text(stream)?;
        let entries = reply::array(reply::next(&mut items)?)?;
        let Some((_, partition)) = streams.iter().find(|(name, _)| *name == stream) else {
            continue;
        };
        let place = places.entry(stream).or_default();
        for entry in entries {
            let (number, name, body) = read_entry(entry)?;
            // Notes that were dropped before they were read may have named anybody.
            if number != *place + 1 {
                tails.tell_all();
            }
            *place = number;
            if name == "x" {
                tails.tell(reply::execution_id(*partition, Value::BulkString(body.to_vec()))?);
            } else {
                let last = number * log::NUMBERS;
                let events = log::decode_entry(&Home::partition(*partition), last, &body)?;
                events
                    .iter()
                    .filter_map(|event| event.subject.execution_id())
                    .for_each(|id| tails.tell(id));
            }
        }
    }
    Ok(())
}

/// Number of a stream's entry, and the name and value of its field.
fn read_entry(entry: Value) -> Result<(u64, String, Bytes), EngineError> {
    let mut parts = reply::array(entry)?.into_iter();
    let id = reply::text(reply::next(&mut parts)?)?;
    let number = id.split_once('-').and_then(|(_, number)| number.parse().ok());
    let number = number.ok_or_else(|| EngineError::bug(format!("an entry has the id {id:?}")))?;
    let mut fields = reply::flat(reply::next(&mut parts)?)?.into_iter();
    let name = reply::text(reply::next(&mut fields)?)?;
    Ok((number, name, reply::some_bytes(reply::next(&mut fields)?)?))
}
