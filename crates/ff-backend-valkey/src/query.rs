//! Answers questions.

use std::sync::Arc;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::event::Envelope;
use ff_core::id::ExecutionId;
use ff_core::machine::{Need, Needs, Overlay, list_signals, observe_signals};
use ff_core::read::{
    Answer, Attempts, Context, Events, Kids, ListAttempts, ListEvents, ListedWaitpoint, Query,
    ReadResult, Record, explain,
};
use ff_core::state::Attempt;
use ff_core::time::TimestampMs;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::record::Entry;
use crate::store::Shared;
use crate::{audit, due, frames, keyring, listing, log, read, reply, search};

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
        Query::Describe(q) => {
            let (now, entry) = find(shared, q.execution_id).await?;
            Answer::Describe(entry.map(|found| Box::new(Record::of(&found.execution, now))))
        }
        Query::ReadState(q) => {
            let (now, entry) = find(shared, q.execution_id).await?;
            Answer::ReadState(entry.map(|found| found.execution.state_vector(now)))
        }
        Query::ReadResult(q) => Answer::ReadResult(result(shared, &q).await?),
        Query::ReadContext(q) => Answer::ReadContext(context(shared, q.execution_id).await?),
        Query::ListAttempts(q) => Answer::ListAttempts(attempts(shared, &q).await?),
        Query::ListEvents(q) => Answer::ListEvents(events(shared, &q).await?),
        Query::Search(q) => Answer::Search(search::search(shared, &q).await?),
        Query::Explain(q) => {
            let (now, entry) = find(shared, q.execution_id).await?;
            Answer::Explain(entry.map(|found| explain(&found.execution, now)))
        }
        Query::ListSignals(q) => {
            let found = existing(shared, q.execution_id).await?.execution;
            let listed = |overlay: &Overlay| list_signals(overlay, &found, &q);
            Answer::ListSignals(with_rows(shared, listed).await?)
        }
        Query::ObserveSignals(q) => {
            let found = existing(shared, q.execution_id).await?.execution;
            let observed = |overlay: &Overlay| observe_signals(overlay, &found, &q.fence);
            Answer::ObserveSignals(with_rows(shared, observed).await?)
        }
        Query::ListWaitpoints(q) => {
            let (now, found) = existing_at(shared, q.execution_id).await?;
            Answer::ListWaitpoints(ListedWaitpoint::all_of(&found.execution, now))
        }
        Query::ListPendingWaitpoints(q) => {
            Answer::ListPendingWaitpoints(listing::walk(shared, &q).await?)
        }
        Query::ListSuspended(q) => Answer::ListSuspended(listing::walk(shared, &q).await?),
        Query::ListKids(_) => Answer::ListKids(Kids::from(&*keyring::refresh(shared).await?)),
        Query::ReadStream(q) => Answer::ReadStream(frames::page(shared, &q.range()).await?),
        Query::ReadSummary(q) => Answer::ReadSummary(frames::summary(shared, &q).await?),
        Query::Due(_) => Answer::Due(due::due(shared).await?),
        Query::Audit(_) => Answer::Audit(audit::audit(shared).await?.audited),
    })
}

/// Answers a question that is decided over rows, reading them as it asks for them.
pub(crate) async fn with_rows<T>(
    shared: &Shared,
    answer: impl Fn(&Overlay) -> Result<Result<T, Refusal>, Needs>,
) -> Result<T, EngineError> {
    let mut overlay = Overlay::new(Arc::clone(&shared.settings));
    loop {
        let needs = match answer(&overlay) {
            Ok(answer) => return Ok(answer?),
            Err(needs) => needs,
        };
        let mut names = Vec::with_capacity(needs.0.len());
        for need in needs.0 {
            let Need::Row(id, key) = need else {
                return Err(EngineError::bug(format!("a question asked for {need:?}")));
            };
            names.push((id, key));
        }
        let Some((id, _)) = names.first() else {
            return Err(EngineError::bug("a question lacks nothing and has no answer"));
        };
        let rows = read::rows(shared, *id, &names).await?;
        for ((id, key), bytes) in names.into_iter().zip(rows) {
            overlay.supply_row(id, key, bytes);
        }
    }
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
    let names = [shared.keys.core(id), shared.keys.payload(id)];
    let (_, mut values) = read::read_keys(shared, id.partition(), &names).await?;
    let (core, beside) = (values.next().flatten(), values.next().flatten());
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

/// Walks the chain of an execution's events backwards from the newest.
async fn events(shared: &Shared, query: &ListEvents) -> Result<Events, EngineError> {
    let id = query.execution_id;
    let execution = existing(shared, id).await?.execution;
    let mut chain = Vec::new();
    let (mut number, mut before) = (execution.last_event, execution.event_seq);
    while before > query.after_seq {
        let mut call = shared.read_function("ff_history");
        call.arg(1).arg(shared.keys.events(id.partition())).arg(crate::library::CALL_VERSION);
        call.arg(number).arg(query.after_seq).arg(HISTORY_STEP);
        let mut items = reply::array(shared.send(id.partition(), &call).await?)?.into_iter();
        let known = chain.len();
        while let Some(at) = items.next() {
            let bytes: Bytes = reply::some_bytes(reply::next(&mut items)?)?;
            let event = log::decode(id.partition(), reply::number(&at)?.unsigned_abs(), &bytes)?;
            (number, before) = (event.previous, event.seq.saturating_sub(1));
            chain.push(event);
        }
        // Retention has taken the next one, and all before it.
        if chain.len() - known < HISTORY_STEP {
            break;
        }
    }
    let gap = before > query.after_seq;
    chain.reverse();
    let limit = query.limit as usize;
    let more = chain.len() > limit;
    chain.truncate(limit);
    let next = chain.last().filter(|_| more).map(|event| event.seq);
    let items = chain.into_iter().map(|event| Envelope::new(event, Some(&execution))).collect();
    Ok(Events { items, next, gap })
}
