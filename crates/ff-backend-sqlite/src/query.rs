//! Answers questions on a read connection.

use std::sync::Arc;

use ff_core::content::Content;
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::event::{Envelope, Event, EventAbout};
use ff_core::id::{DocumentId, ExecutionId, Subject};
use ff_core::limits;
use ff_core::machine::{Need, Needs, Overlay, Settings, consult};
use ff_core::read::{
    Answer, Attempts, Context, Events, Filter, FlowSnapshot, Kids, Leaf, ListAttempts, ListEvents,
    ListFlowEvents, Listed, Page, Query, ReadResult, Record, Search, SearchPosition, Seen, Walk,
};
use ff_core::state::{Execution, ListingPosition};
use ff_core::time::TimestampMs;
use ff_relational::{decode_attempt, decode_document, decode_event, decode_execution};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::fault;
use crate::fleet::{self, Around};
use crate::load::{self, document_at, id_at, uuid_at};
use crate::{audit, frames, routes, schema, statements};

/// Rows that one page reads: one more than it looks at, to see whether there are more.
const LOOK_AHEAD: u32 = limits::SEARCH_LOOK_AHEAD + 1;

pub(crate) fn answer(
    connection: &Connection,
    settings: &Arc<Settings>,
    query: &Query,
    now: TimestampMs,
) -> Result<Answer, EngineError> {
    Ok(match query {
        Query::ReadResult(q) => Answer::ReadResult(result(connection, q)?),
        Query::ReadContext(q) => Answer::ReadContext(context(connection, q.execution_id)?),
        Query::ListAttempts(q) => Answer::ListAttempts(attempts(connection, q)?),
        Query::ListEvents(q) => Answer::ListEvents(events(connection, q)?),
        Query::Search(q) => Answer::Search(search(connection, q, now)?),
        Query::ListPendingWaitpoints(q) => Answer::ListPendingWaitpoints(walk(connection, q, now)?),
        Query::ListSuspended(q) => Answer::ListSuspended(walk(connection, q, now)?),
        Query::DescribeFlow(q) => {
            let id = DocumentId::flow(q.flow_id, &settings.partitions);
            let found = load::document(connection, &id)?;
            let counts = load::tally(connection, &id)?;
            let flow = found.as_ref().and_then(|found| FlowSnapshot::of(found, &counts));
            Answer::DescribeFlow(flow.map(Box::new))
        }
        Query::ListFlowEvents(q) => {
            let id = DocumentId::flow(q.flow_id, &settings.partitions);
            Answer::ListFlowEvents(flow_events(connection, &id, q)?)
        }
        Query::ListFlows(q) => Answer::ListFlows(walk_documents(connection, q, now)?),
        Query::ListBudgets(q) => Answer::ListBudgets(walk_documents(connection, q, now)?),
        Query::ListQuotaPolicies(q) => {
            Answer::ListQuotaPolicies(walk_documents(connection, q, now)?)
        }
        Query::ListKids(_) => {
            let keyring = schema::keyring(connection)?;
            let keyring = keyring.ok_or_else(|| EngineError::corruption("there is no keyring"))?;
            Answer::ListKids(Kids::from(&keyring))
        }
        Query::ListBlocked(q) => Answer::ListBlocked(walk(connection, q, now)?),
        Query::ListLimited(q) => Answer::ListLimited(walk(connection, q, now)?),
        Query::ListKeys(q) => Answer::ListKeys(walk_documents(connection, q, now)?),
        Query::ListBulks(q) => Answer::ListBulks(walk_documents(connection, q, now)?),
        Query::ListUnrouted(q) => Answer::ListUnrouted(walk(connection, q, now)?),
        Query::ListOffers(q) => Answer::ListOffers(walk_documents(connection, q, now)?),
        Query::ListRoutes(q) => Answer::ListRoutes(routes::list(connection, q)?),
        Query::ListQueued(q) => Answer::ListQueued(routes::queued(connection, q)?),
        Query::ListFleets(q) => Answer::ListFleets(routes::fleets(connection, q)?),
        Query::ListNamespaces(q) => Answer::ListNamespaces(routes::namespaces(connection, q)?),
        Query::ListCancelBacklog(q) => {
            Answer::ListCancelBacklog(walk_documents(connection, q, now)?)
        }
        Query::DescribeWorker(_)
        | Query::ListWorkers(_)
        | Query::LeasesOf(_)
        | Query::ListExpiredLeases(_)
        | Query::DescribeLane(_)
        | Query::ListLanes(_) => fleet::answer(connection, query, now)?,
        Query::ReadStream(q) => Answer::ReadStream(frames::page(connection, &q.range(), now)?),
        Query::ReadSummary(q) => Answer::ReadSummary(frames::summary(connection, q, now)?),
        Query::Audit(_) => Answer::Audit(audit::audit(connection, now)?),
        other => {
            let consulted = |overlay: &Overlay| consult(overlay, other, now);
            let answer = with_facts(connection, settings, consulted)?;
            let nobody = || EngineError::bug(format!("nobody answers {}", other.name()));
            answer.ok_or_else(nobody)?
        }
    })
}

/// Answers a question that is decided over facts, loading them as it asks for them.
fn with_facts<T>(
    connection: &Connection,
    settings: &Arc<Settings>,
    answer: impl Fn(&Overlay) -> Result<Result<T, Refusal>, Needs>,
) -> Result<T, EngineError> {
    let mut overlay = Overlay::new(Arc::clone(settings));
    loop {
        let needs = match answer(&overlay) {
            Ok(answer) => return Ok(answer?),
            Err(needs) => needs,
        };
        for need in needs.0 {
            match need {
                Need::Row(of, key) => {
                    let bytes = load::row(connection, &of, &key)?;
                    overlay.supply_row(of, key, bytes);
                }
                Need::Execution(id) => {
                    let found = load::execution(connection, id)?;
                    overlay.supply_execution(id, found.map(Arc::new));
                }
                Need::Document(id) => {
                    let found = load::document(connection, &id)?;
                    overlay.supply_document(id, found.map(Arc::new));
                }
                other => {
                    return Err(EngineError::bug(format!("a question asked for {other:?}")));
                }
            }
        }
    }
}

pub(crate) fn existing(connection: &Connection, id: ExecutionId) -> Result<Execution, EngineError> {
    load::execution(connection, id)?.ok_or_else(|| {
        Refusal::at(Code::ExecutionNotFound, "execution_id", format!("no execution {id}")).into()
    })
}

fn result(connection: &Connection, query: &ReadResult) -> Result<Content, EngineError> {
    let execution = existing(connection, query.execution_id)?;
    let found = load::result(connection, query.execution_id, query.attempt_of(&execution))?;
    found.ok_or_else(|| {
        Refusal::new(Code::ResultNotFound, "the execution has no result (yet)").into()
    })
}

fn context(connection: &Connection, id: ExecutionId) -> Result<Option<Context>, EngineError> {
    let Some(execution) = load::execution(connection, id)? else { return Ok(None) };
    Ok(Some(Context {
        payload: load::payload(connection, id)?.unwrap_or_default(),
        content_type: execution.about.content_type.clone(),
        kind: execution.about.kind.clone(),
        tags: execution.tags,
    }))
}

/// Earlier attempts from their table, the current one from the record.
fn attempts(connection: &Connection, query: &ListAttempts) -> Result<Attempts, EngineError> {
    let execution = existing(connection, query.execution_id)?;
    let limit = query.limit as usize;
    let after = query.after.map_or(-1, i64::from);
    let mut statement =
        connection.prepare_cached(statements::load_attempts).map_err(|error| fault(&error))?;
    let mut rows = statement
        .query(params![query.execution_id.to_bytes(), after, limit as i64 + 1])
        .map_err(|error| fault(&error))?;
    let mut items = Vec::new();
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        items.push(decode_attempt(blob_at(row, 0).map_err(|error| fault(&error))?)?);
    }
    items.extend(execution.attempt.filter(|attempt| i64::from(attempt.index) > after));
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|attempt| attempt.index);
    Ok(Attempts { items, next })
}

fn events(connection: &Connection, query: &ListEvents) -> Result<Events, EngineError> {
    let found = existing(connection, query.execution_id)?;
    let newest = (found.last_event, found.event_seq);
    history(connection, newest, (query.after_seq, query.limit), &found)
}

fn flow_events(
    connection: &Connection,
    id: &DocumentId,
    query: &ListFlowEvents,
) -> Result<Events, EngineError> {
    let found = load::document(connection, id)?.ok_or_else(|| query.not_found())?;
    let newest = (found.last_event, found.event_seq);
    history(connection, newest, (query.after_seq, query.limit), &found)
}

/// Walks the chain of a record's events backwards from the newest, whose number and seq are given.
fn history<'a, R>(
    connection: &Connection,
    (mut number, mut before): (u64, u64),
    (after_seq, limit): (u64, u32),
    record: &'a R,
) -> Result<Events, EngineError>
where
    EventAbout: From<&'a R>,
{
    let mut chain = Vec::new();
    while before > after_seq {
        // Retention has taken this one, and all before it.
        let Some(event) = event(connection, number)? else { break };
        (number, before) = (event.previous, event.seq.saturating_sub(1));
        chain.push(event);
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

fn event(connection: &Connection, number: u64) -> Result<Option<Event>, EngineError> {
    let found = connection
        .prepare_cached(statements::load_event)
        .and_then(|mut statement| {
            statement
                .query_row(params![number as i64], |row| Ok(decode_event(blob_at(row, 0)?)))
                .optional()
        })
        .map_err(|error| fault(&error))?;
    found.transpose()
}

fn search(
    connection: &Connection,
    query: &Search,
    now: TimestampMs,
) -> Result<Page<Record>, EngineError> {
    let (created, id) = match query.position()? {
        Some(position) => (position.created_at.0, position.execution_id.to_bytes().to_vec()),
        None => (i64::MAX, Vec::new()),
    };
    let mut statement =
        connection.prepare_cached(statements::search).map_err(|error| fault(&error))?;
    let mut rows =
        statement.query(params![created, id, LOOK_AHEAD]).map_err(|error| fault(&error))?;
    let mut leaf = Leaf::new(query.limit);
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        let (position, core) = search_row(&query.filter, row).map_err(|error| fault(&error))?;
        let execution = core.map(decode_execution).transpose()?;
        let see = || execution.map_or(Seen::Passed, |execution| query.see(&execution, now));
        if leaf.look(position, see).is_break() {
            break;
        }
    }
    let mut page = leaf.finish(|last| query.cursor_after(last));
    let mut around = Around::new(connection);
    let shown = page.items.into_iter().map(|record| around.show(record));
    page.items = shown.collect::<Result<_, _>>()?;
    Ok(page)
}

/// Where a row stands, and its record if it may match.
fn search_row<'a>(
    filter: &Filter,
    row: &'a Row<'_>,
) -> rusqlite::Result<(SearchPosition, Option<&'a [u8]>)> {
    let created_at = TimestampMs(row.get(0)?);
    let position = SearchPosition { created_at, execution_id: id_at(row, 1)? };
    let core = may_match(filter, row)?.then(|| blob_at(row, 6)).transpose()?;
    Ok((position, core))
}

/// A page of a list.
fn walk<W: Walk>(
    connection: &Connection,
    query: &W,
    now: TimestampMs,
) -> Result<Page<W::Item>, EngineError> {
    let (at, name, id) = match query.behind()? {
        Some(ListingPosition { at, name, subject }) => {
            let id = subject.execution_id().map(|id| id.to_bytes().to_vec());
            (at.0, name.as_bytes().to_vec(), id.unwrap_or_default())
        }
        None => (i64::MIN, Vec::new(), Vec::new()),
    };
    let namespace = query.namespace().as_str();
    let mut statement =
        connection.prepare_cached(statements::walk_listing).map_err(|error| fault(&error))?;
    let mut rows = statement
        .query(params![namespace, W::LIST.code(), at, name, id, LOOK_AHEAD])
        .map_err(|error| fault(&error))?;
    let mut leaf = Leaf::new(query.limit());
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        let (position, core) = listing_row(row).map_err(|error| fault(&error))?;
        let execution = decode_execution(core)?;
        let see = || query.see(&position, Listed::Execution(&execution), now);
        if leaf.look(position.clone(), see).is_break() {
            break;
        }
    }
    Ok(leaf.finish(|last| query.cursor_after(last)))
}

/// A page of a list of documents.
pub(crate) fn walk_documents<W: Walk>(
    connection: &Connection,
    query: &W,
    now: TimestampMs,
) -> Result<Page<W::Item>, EngineError> {
    let (at, name, id) = match query.behind()? {
        Some(ListingPosition { at, name, subject: Subject::Document(id) }) => {
            (at.0, name.as_bytes().to_vec(), id.to_string())
        }
        _ => (i64::MIN, Vec::new(), String::new()),
    };
    let namespace = query.namespace().as_str();
    let mut statement = connection
        .prepare_cached(statements::walk_document_listing)
        .map_err(|error| fault(&error))?;
    let mut rows = statement
        .query(params![namespace, W::LIST.code(), at, name, id, LOOK_AHEAD])
        .map_err(|error| fault(&error))?;
    let mut leaf = Leaf::new(query.limit());
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        let position = document_row(row).map_err(|error| fault(&error))?;
        let document = decode_document(blob_at(row, 3).map_err(|error| fault(&error))?)?;
        let counts = load::tally(connection, &document.id)?;
        let see = || query.see(&position, Listed::Document(&document, &counts), now);
        if leaf.look(position.clone(), see).is_break() {
            break;
        }
    }
    Ok(leaf.finish(|last| query.cursor_after(last)))
}

fn document_row(row: &Row<'_>) -> rusqlite::Result<ListingPosition> {
    let (at, name) = (TimestampMs(row.get(0)?), uuid_at(row, 1)?);
    Ok(ListingPosition { at, name, subject: document_at(row, 2)?.into() })
}

fn listing_row<'a>(row: &'a Row<'_>) -> rusqlite::Result<(ListingPosition, &'a [u8])> {
    let (at, name, id) = (TimestampMs(row.get(0)?), uuid_at(row, 1)?, id_at(row, 2)?);
    Ok((ListingPosition { at, name, subject: id.into() }, blob_at(row, 3)?))
}

/// A look at the plain columns that spares decoding most records that do not match.
fn may_match(filter: &Filter, row: &Row<'_>) -> rusqlite::Result<bool> {
    let text = |column| row.get_ref(column).and_then(|value| Ok(value.as_str()?));
    if let Some(namespace) = &filter.namespace
        && text(2)? != namespace.as_str()
    {
        return Ok(false);
    }
    let (lane, kind, state) = (text(3)?, text(4)?, text(5)?);
    Ok((filter.lanes.is_empty() || filter.lanes.iter().any(|wanted| wanted.as_str() == lane))
        && (filter.kinds.is_empty() || filter.kinds.iter().any(|wanted| wanted.as_str() == kind))
        && (filter.states.is_empty() || filter.states.iter().any(|s| s.as_str() == state)))
}

pub(crate) fn blob_at<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a [u8]> {
    Ok(row.get_ref(column)?.as_blob()?)
}
