//! Answers questions.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::event::{Envelope, EventAbout};
use ff_core::id::{DocumentId, ExecutionId, Home, Subject};
use ff_core::machine::{Need, Needs, Overlay, consult};
use ff_core::read::{
    Answer, Attempts, Context, DescribeFlow, Events, FlowSnapshot, Kids, ListAttempts, Query,
    ReadResult,
};
use ff_core::state::Attempt;
use ff_core::time::TimestampMs;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::read::{Known, PORTION};
use crate::record::Entry;
use crate::store::{Shared, join_all};
use crate::{audit, due, fleet, frames, keyring, listing, log, read, reply, routes, search};

/// Events that one call of the history brings.
const HISTORY_STEP: usize = 500;

/// What stands beside a record: attempts and results.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, EngineError> {
    postcard::to_stdvec(value)
        .map_err(|error| EngineError::bug(format!("does not encode: {error}")))
}

pub(crate) fn decode<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, EngineError> {
    postcard::from_bytes(bytes)
        .map_err(|error| EngineError::corruption(format!("{what} does not decode: {error}")))
}

pub(crate) async fn answer(shared: &Arc<Shared>, query: Query) -> Result<Answer, EngineError> {
    Ok(match query {
        Query::ReadResult(q) => Answer::ReadResult(result(shared, &q).await?),
        Query::ReadContext(q) => Answer::ReadContext(context(shared, q.execution_id).await?),
        Query::ListAttempts(q) => Answer::ListAttempts(attempts(shared, &q).await?),
        Query::ListEvents(q) => {
            let found = existing(shared, q.execution_id).await?.execution;
            let newest = (found.last_event, found.event_seq);
            let subject = q.execution_id.into();
            let events = history(shared, subject, newest, (q.after_seq, q.limit), &*found);
            Answer::ListEvents(events.await?)
        }
        Query::ListFlowEvents(q) => {
            let id = DocumentId::flow(q.flow_id, &shared.settings.partitions);
            let found = document(shared, &id).await?.ok_or_else(|| q.not_found())?.0;
            let newest = (found.last_event, found.event_seq);
            let events = history(shared, id.into(), newest, (q.after_seq, q.limit), &found);
            Answer::ListFlowEvents(events.await?)
        }
        Query::Search(q) => Answer::Search(search::search(shared, &q).await?),
        Query::ListPendingWaitpoints(q) => {
            Answer::ListPendingWaitpoints(listing::walk(shared, &q).await?)
        }
        Query::ListSuspended(q) => Answer::ListSuspended(listing::walk(shared, &q).await?),
        Query::DescribeFlow(q) => Answer::DescribeFlow(flow(shared, &q).await?),
        Query::ListFlows(q) => Answer::ListFlows(listing::walk(shared, &q).await?),
        Query::ListBudgets(q) => Answer::ListBudgets(listing::walk(shared, &q).await?),
        Query::ListQuotaPolicies(q) => Answer::ListQuotaPolicies(listing::walk(shared, &q).await?),
        Query::ListBlocked(q) => Answer::ListBlocked(listing::walk(shared, &q).await?),
        Query::ListLimited(q) => Answer::ListLimited(listing::walk(shared, &q).await?),
        Query::ListKeys(q) => Answer::ListKeys(listing::walk(shared, &q).await?),
        Query::ListBulks(q) => Answer::ListBulks(listing::walk(shared, &q).await?),
        Query::ListRoutes(q) => Answer::ListRoutes(routes::list(shared, &q).await?),
        Query::ListQueued(q) => Answer::ListQueued(routes::queued(shared, &q).await?),
        Query::ListFleets(q) => Answer::ListFleets(routes::fleets(shared, &q).await?),
        Query::ListNamespaces(q) => Answer::ListNamespaces(routes::namespaces(shared, &q).await?),
        Query::ListCancelBacklog(q) => Answer::ListCancelBacklog(listing::walk(shared, &q).await?),
        Query::ListUnrouted(q) => Answer::ListUnrouted(listing::walk(shared, &q).await?),
        Query::ListOffers(q) => Answer::ListOffers(listing::walk(shared, &q).await?),
        Query::ListKids(_) => Answer::ListKids(Kids::from(&*keyring::refresh(shared).await?)),
        Query::ReadStream(q) => Answer::ReadStream(frames::page(shared, &q.range()).await?),
        Query::ReadSummary(q) => Answer::ReadSummary(frames::summary(shared, &q).await?),
        query @ (Query::DescribeWorker(_)
        | Query::ListWorkers(_)
        | Query::LeasesOf(_)
        | Query::ListExpiredLeases(_)
        | Query::DescribeLane(_)
        | Query::ListLanes(_)) => fleet::answer(shared, &query).await?,
        Query::Due(_) => Answer::Due(due::due(shared).await?),
        Query::Audit(_) => Answer::Audit(audit::audit(shared).await?.audited),
        other => {
            let consulted = |overlay: &Overlay, now| consult(overlay, &other, now);
            let answer = with_facts(shared, consulted).await?;
            let nobody = || EngineError::bug(format!("nobody answers {}", other.name()));
            answer.ok_or_else(nobody)?
        }
    })
}

/// Answers a question that the machine decides, reading what it asks for. All of it, of each home,
/// is of one moment, but for long lists that it asks for at once.
pub(crate) async fn with_facts<T>(
    shared: &Shared,
    answer: impl Fn(&Overlay, TimestampMs) -> Result<Result<T, Refusal>, Needs>,
) -> Result<T, EngineError> {
    decide(shared, true, Overlay::new(Arc::clone(&shared.settings)), answer).await
}

/// The same for what does not change meanwhile: nothing is read twice, nor what is known already.
pub(crate) async fn with_more<T>(
    shared: &Shared,
    known: Overlay,
    answer: impl Fn(&Overlay) -> Result<Result<T, Refusal>, Needs>,
) -> Result<T, EngineError> {
    decide(shared, false, known, |overlay, _| answer(overlay)).await
}

async fn decide<T>(
    shared: &Shared,
    of_one_moment: bool,
    mut overlay: Overlay,
    answer: impl Fn(&Overlay, TimestampMs) -> Result<Result<T, Refusal>, Needs>,
) -> Result<T, EngineError> {
    let mut known: BTreeMap<Home, Known> = BTreeMap::new();
    let mut now = TimestampMs(0);
    loop {
        let needs = match answer(&overlay, now) {
            Ok(answer) => return Ok(answer?),
            Err(needs) => needs,
        };
        let mut by_home: BTreeMap<Home, Vec<Need>> = BTreeMap::new();
        for need in needs.0 {
            let home = home_of(&need)
                .ok_or_else(|| EngineError::bug(format!("a question asked for {need:?}")))?;
            by_home.entry(home).or_default().push(need);
        }
        if by_home.is_empty() {
            return Err(EngineError::bug("a question lacks nothing and has no answer"));
        }
        let reads = by_home.iter().map(|(home, needs)| {
            let before = known.get(home).cloned().unwrap_or_default();
            let whole = of_one_moment && needs.len() <= PORTION;
            async move {
                let reads = match whole {
                    true => vec![read::read(shared, home, &before, needs).await],
                    false => read::read_in_portions(shared, home, needs).await,
                };
                (home, whole, reads)
            }
        });
        for (home, whole, reads) in join_all(reads).await {
            for read in reads {
                let read = read?;
                read.supply(&mut overlay)?;
                now = read.read_at.unwrap_or(now);
                if whole {
                    known.insert(home.clone(), read);
                }
            }
        }
    }
}

/// Where a fact stands that a question may ask for.
fn home_of(need: &Need) -> Option<Home> {
    match need {
        Need::Execution(id) | Need::Payload(id) | Need::Result(id) => {
            Some(Home::partition(id.partition()))
        }
        Need::Document(id) => Some(id.home.clone()),
        Need::Dedup(key) => Some(Home::partition(key.partition)),
        Need::Row(of, _) => Some(of.home()),
        Need::Queue(..) | Need::Due(..) | Need::Keyring => None,
    }
}

/// A flow and the counts of its members, of one moment.
async fn flow(
    shared: &Shared,
    query: &DescribeFlow,
) -> Result<Option<Box<FlowSnapshot>>, EngineError> {
    let id = DocumentId::flow(query.flow_id, &shared.settings.partitions);
    let found = document(shared, &id).await?;
    let flow = found.and_then(|(document, counts)| FlowSnapshot::of(&document, &counts));
    Ok(flow.map(Box::new))
}

/// A document and the counts of its members, of one moment.
async fn document(shared: &Shared, id: &DocumentId) -> Result<Option<read::Counted>, EngineError> {
    let (_, mut found) = read::documents(shared, &id.home, std::slice::from_ref(id)).await?;
    Ok(found.pop().flatten())
}

async fn find(
    shared: &Shared,
    id: ExecutionId,
) -> Result<(TimestampMs, Option<Entry>), EngineError> {
    let (now, mut entries) = read::executions(shared, id.partition(), &[id]).await?;
    Ok((now, entries.pop().flatten()))
}

async fn existing(shared: &Shared, id: ExecutionId) -> Result<Entry, EngineError> {
    Ok(existing_at(shared, id).await?.1)
}

pub(crate) fn not_found(id: ExecutionId) -> EngineError {
    Refusal::at(Code::ExecutionNotFound, "execution_id", format!("no execution {id}")).into()
}

async fn existing_at(
    shared: &Shared,
    id: ExecutionId,
) -> Result<(TimestampMs, Entry), EngineError> {
    let (now, entry) = find(shared, id).await?;
    Ok((now, entry.ok_or_else(|| not_found(id))?))
}

async fn result(shared: &Shared, query: &ReadResult) -> Result<Content, EngineError> {
    let id = query.execution_id;
    let entry = existing(shared, id).await?;
    let asked = query.attempt_of(&entry.execution);
    if let Some((index, content)) = &entry.result
        && asked == Some(*index)
    {
        return Ok(content.clone());
    }
    let mut get = redis::cmd("HGETALL");
    get.arg(shared.keys.results(id));
    let mut items = reply::flat(shared.send(id.partition(), &get).await?)?.into_iter();
    let mut results: Vec<(u32, Content)> = entry.result.into_iter().collect();
    while let Some(index) = items.next() {
        let content = reply::some_bytes(reply::next(&mut items)?)?;
        let index = u32::try_from(reply::number(&index)?).unwrap_or(u32::MAX);
        results.push((index, decode("result", &content)?));
    }
    let wanted = results.into_iter().filter(|(index, _)| asked.is_none_or(|n| n == *index));
    let newest = wanted.max_by_key(|(index, _)| *index);
    newest.map(|(_, content)| content).ok_or_else(|| {
        Refusal::new(Code::ResultNotFound, "the execution has no result (yet)").into()
    })
}

async fn context(shared: &Shared, id: ExecutionId) -> Result<Option<Context>, EngineError> {
    let names = vec![shared.keys.core(id), shared.keys.payload(id)];
    let (_, mut values) = read::read_keys(shared, id.partition(), names).await?;
    let (core, beside) = (values.bytes()?, values.bytes()?);
    let Some(core) = core else { return Ok(None) };
    let entry = Entry::decode(id, &core)?;
    Ok(Some(Context {
        payload: entry.payload.or(beside).unwrap_or_default(),
        content_type: entry.execution.about.content_type.clone(),
        kind: entry.execution.about.kind.clone(),
        tags: entry.execution.tags.clone(),
    }))
}

/// Earlier attempts from their list, in which an attempt's place is its index, then those in the
/// record.
async fn attempts(shared: &Shared, query: &ListAttempts) -> Result<Attempts, EngineError> {
    let id = query.execution_id;
    let entry = existing(shared, id).await?;
    let limit = query.limit as usize;
    let begin = query.after.map_or(0, |after| u64::from(after) + 1);
    let mut range = redis::cmd("LRANGE");
    range.arg(shared.keys.attempts(id)).arg(begin).arg(begin + limit as u64);
    let listed = reply::array(shared.send(id.partition(), &range).await?)?;
    let listed = listed.into_iter().map(|attempt| decode("attempt", &reply::some_bytes(attempt)?));
    let mut items: Vec<Attempt> = listed.collect::<Result<_, EngineError>>()?;
    let in_record = entry.unlisted.iter().chain(&entry.execution.attempt);
    items.extend(in_record.filter(|attempt| u64::from(attempt.index) >= begin).cloned());
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|attempt| attempt.index);
    Ok(Attempts { items, next })
}

/// Walks the chain of a record's events backwards from the newest, whose number and seq are given.
async fn history<'a, R>(
    shared: &Shared,
    subject: Subject,
    (mut number, mut before): (u64, u64),
    (after_seq, limit): (u64, u32),
    record: &'a R,
) -> Result<Events, EngineError>
where
    EventAbout: From<&'a R>,
{
    let home = subject.home();
    let mut chain = Vec::new();
    while before > after_seq {
        let mut call = shared.read_function("ff_history");
        call.arg(1).arg(shared.keys.log(&home)).arg(shared.client.call_version());
        call.arg(number).arg(after_seq).arg(HISTORY_STEP);
        let mut items = reply::array(shared.send_home(&home, &call).await?)?.into_iter();
        let known = chain.len();
        while let Some(at) = items.next() {
            let bytes: Bytes = reply::some_bytes(reply::next(&mut items)?)?;
            let event = log::decode(&home, reply::number(&at)?.unsigned_abs(), &bytes)?;
            (number, before) = (event.previous, event.seq.saturating_sub(1));
            chain.push(event);
        }
        // Retention has taken the next one, and all before it.
        if chain.len() - known < HISTORY_STEP {
            break;
        }
    }
    let gap = before > after_seq;
    chain.reverse();
    let limit = limit as usize;
    let more = chain.len() > limit;
    chain.truncate(limit);
    let next = chain.last().filter(|_| more).map(|event| event.seq);
    let items = chain.into_iter().map(|event| Envelope::new(event, Some(record.into()))).collect();
    Ok(Events { items, next, gap })
}
