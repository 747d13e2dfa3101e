//! Answers questions about lanes, workers and leases.

use std::collections::{BTreeSet, HashMap};

use ff_core::error::EngineError;
use ff_core::id::{DocumentId, LaneId, Namespace, WorkerInstanceId};
use ff_core::limits;
use ff_core::read::{
    Answer, DescribeLane, DescribeWorker, LaneFound, LaneSnapshot, Leaf, LeasePosition, LeaseWalk,
    ListLanes, ListWorkers, ListedLease, Page, Query, Record, WorkerSnapshot,
};
use ff_core::state::{Document, Execution, List, MemberCounts, PublicState, Surroundings};
use ff_core::time::TimestampMs;
use ff_relational::{decode_document, decode_execution};
use rusqlite::{Connection, Row, params};

use crate::error::fault;
use crate::load::{self, id_at};
use crate::query::{blob_at, walk_documents};
use crate::statements;

/// Eligible executions of a lane that are looked at for the oldest.
const ELIGIBLE_LOOKED_AT: u32 = 1_000;

/// Lanes and flows around executions, each read once.
pub(crate) struct Around<'a> {
    connection: &'a Connection,
    known: HashMap<DocumentId, Surroundings>,
}

impl<'a> Around<'a> {
    pub(crate) fn new(connection: &'a Connection) -> Self {
        Self { connection, known: HashMap::new() }
    }

    /// The record as it reads amid what stands around it.
    pub(crate) fn show(&mut self, record: Record) -> Result<Record, EngineError> {
        let lane = self.look_at(DocumentId::lane(&record.namespace, &record.lane))?.lane;
        let flow = record.awaited_flow().map(|flow| self.look_at(flow)).transpose()?;
        let flow_stops = flow.is_some_and(|flow| flow.flow_stops);
        Ok(record.amid(Surroundings { lane, flow_stops }))
    }

    /// What a lane or a flow means to what stands in it.
    fn look_at(&mut self, id: DocumentId) -> Result<Surroundings, EngineError> {
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let found = load::document(self.connection, &id)?;
        let around = found.as_ref().map(Surroundings::by).unwrap_or_default();
        self.known.insert(id, around);
        Ok(around)
    }
}

pub(crate) fn answer(
    connection: &Connection,
    query: &Query,
    now: TimestampMs,
) -> Result<Answer, EngineError> {
    Ok(match query {
        Query::DescribeWorker(q) => Answer::DescribeWorker(describe_worker(connection, q, now)?),
        Query::ListWorkers(q) => Answer::ListWorkers(list_workers(connection, q, now)?),
        Query::LeasesOf(q) => Answer::LeasesOf(leases(connection, q, now)?),
        Query::ListExpiredLeases(q) => Answer::ListExpiredLeases(leases(connection, q, now)?),
        Query::DescribeLane(q) => {
            Answer::DescribeLane(Box::new(describe_lane(connection, q, now)?))
        }
        Query::ListLanes(q) => Answer::ListLanes(list_lanes(connection, q, now)?),
        other => return Err(EngineError::bug(format!("{} is not answered here", other.name()))),
    })
}

fn describe_lane(
    connection: &Connection,
    query: &DescribeLane,
    now: TimestampMs,
) -> Result<LaneSnapshot, EngineError> {
    let workers = workers(connection, &query.namespace, now)?;
    lane(connection, &query.namespace, &query.lane, &workers, now)
}

fn list_lanes(
    connection: &Connection,
    query: &ListLanes,
    now: TimestampMs,
) -> Result<Page<LaneSnapshot>, EngineError> {
    let workers = workers(connection, &query.namespace, now)?;
    let mut names: BTreeSet<_> =
        workers.iter().flat_map(|worker| worker.lanes.iter().cloned()).collect();
    names.extend(live_lanes(connection, &query.namespace)?);
    for document in documents(connection, &query.namespace, List::Lane)? {
        names.extend(document.lane().map(|lane| lane.name.clone()));
    }
    let describe = |name| lane(connection, &query.namespace, &name, &workers, now);
    query.page(names)?.try_map(describe)
}

fn lane(
    connection: &Connection,
    namespace: &Namespace,
    lane: &LaneId,
    workers: &[WorkerSnapshot],
    now: TimestampMs,
) -> Result<LaneSnapshot, EngineError> {
    let document = load::document(connection, &DocumentId::lane(namespace, lane))?;
    let found = LaneFound {
        counts: counts(connection, namespace, lane).map_err(|error| fault(&error))?,
        oldest: oldest_eligible(connection, namespace, lane)?,
    };
    Ok(LaneSnapshot::of(lane, document.as_ref(), &found, workers, now))
}

fn counts(
    connection: &Connection,
    namespace: &Namespace,
    lane: &LaneId,
) -> rusqlite::Result<MemberCounts> {
    let mut counts = MemberCounts::default();
    let mut statement = connection.prepare_cached(statements::count_lane)?;
    let mut rows = statement.query(params![namespace.as_str(), lane.as_str()])?;
    while let Some(row) = rows.next()? {
        if let Some(state) = PublicState::parse(row.get_ref(0)?.as_str()?) {
            counts.add(state as u8, row.get(1)?);
        }
    }
    Ok(counts)
}

fn oldest_eligible(
    connection: &Connection,
    namespace: &Namespace,
    lane: &LaneId,
) -> Result<Option<TimestampMs>, EngineError> {
    let mut statement =
        connection.prepare_cached(statements::eligible_of_lane).map_err(|error| fault(&error))?;
    let values = params![namespace.as_str(), lane.as_str(), ELIGIBLE_LOOKED_AT];
    let mut rows = statement.query(values).map_err(|error| fault(&error))?;
    let mut oldest = None;
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        let execution = decode_execution(blob_at(row, 0).map_err(|error| fault(&error))?)?;
        let since = execution.phase.claimable().map(|runnable| runnable.since);
        oldest = [oldest, since].into_iter().flatten().min();
    }
    Ok(oldest)
}

fn live_lanes(connection: &Connection, namespace: &Namespace) -> Result<Vec<LaneId>, EngineError> {
    let read = || {
        let mut statement = connection.prepare_cached(statements::live_lanes)?;
        let rows = statement.query_map(params![namespace.as_str()], |row| lane_at(row, 0))?;
        rows.collect::<Result<Vec<_>, _>>()
    };
    read().map_err(|error: rusqlite::Error| fault(&error))
}

fn lane_at(row: &Row<'_>, column: usize) -> rusqlite::Result<LaneId> {
    let text = row.get_ref(column)?.as_str()?;
    LaneId::new(text).map_err(|error| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(column, kind, error.into())
    })
}

/// All documents that stand in a list of the namespace.
fn documents(
    connection: &Connection,
    namespace: &Namespace,
    list: List,
) -> Result<Vec<Document>, EngineError> {
    let mut statement = connection
        .prepare_cached(statements::walk_document_listing)
        .map_err(|error| fault(&error))?;
    let (name, id, all): (&[u8], _, _) = (&[], "", -1_i64);
    let values = params![namespace.as_str(), list.code(), i64::MIN, name, id, all];
    let mut rows = statement.query(values).map_err(|error| fault(&error))?;
    let mut documents = Vec::new();
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        documents.push(decode_document(blob_at(row, 3).map_err(|error| fault(&error))?)?);
    }
    Ok(documents)
}

/// Live workers of a namespace, without what they run.
fn workers(
    connection: &Connection,
    namespace: &Namespace,
    now: TimestampMs,
) -> Result<Vec<WorkerSnapshot>, EngineError> {
    let found = documents(connection, namespace, List::Worker)?;
    let workers = found.iter().filter_map(Document::worker);
    Ok(workers.filter_map(|worker| WorkerSnapshot::of(worker, now)).collect())
}

fn describe_worker(
    connection: &Connection,
    query: &DescribeWorker,
    now: TimestampMs,
) -> Result<Option<Box<WorkerSnapshot>>, EngineError> {
    let id = DocumentId::worker(&query.namespace, &query.worker_instance_id);
    let document = load::document(connection, &id)?;
    let worker = document.as_ref().and_then(Document::worker);
    let Some(snapshot) = worker.and_then(|worker| WorkerSnapshot::of(worker, now)) else {
        return Ok(None);
    };
    if !query.counted {
        return Ok(Some(Box::new(snapshot)));
    }
    let running = running(connection, &query.namespace)?;
    let running = running.get(&snapshot.worker_instance_id).copied().unwrap_or_default();
    Ok(Some(Box::new(WorkerSnapshot { running, ..snapshot })))
}

fn list_workers(
    connection: &Connection,
    query: &ListWorkers,
    now: TimestampMs,
) -> Result<Page<WorkerSnapshot>, EngineError> {
    let mut page = walk_documents(connection, query, now)?;
    if !page.items.is_empty() {
        let running = running(connection, &query.namespace)?;
        for item in &mut page.items {
            item.running = running.get(&item.worker_instance_id).copied().unwrap_or_default();
        }
    }
    Ok(page)
}

/// How many leases each instance holds.
fn running(
    connection: &Connection,
    namespace: &Namespace,
) -> Result<HashMap<WorkerInstanceId, u32>, EngineError> {
    let mut running = HashMap::new();
    active(connection, namespace, None, -1, |_, execution| {
        if let Some(lease) = execution.phase.lease() {
            *running.entry(lease.worker_instance_id.clone()).or_default() += 1;
        }
        true
    })?;
    Ok(running)
}

/// A page of leases.
fn leases(
    connection: &Connection,
    query: &impl LeaseWalk,
    now: TimestampMs,
) -> Result<Page<ListedLease>, EngineError> {
    let behind = query.behind()?;
    let most = i64::from(limits::SEARCH_LOOK_AHEAD) + 1;
    let mut leaf = Leaf::new(query.limit());
    active(connection, query.namespace(), behind.as_ref(), most, |position, execution| {
        leaf.look(position, || query.see(execution, now)).is_continue()
    })?;
    Ok(query.page(leaf))
}

/// Shows active executions of a namespace behind a place, until `look` has seen enough.
fn active(
    connection: &Connection,
    namespace: &Namespace,
    behind: Option<&LeasePosition>,
    most: i64,
    mut look: impl FnMut(LeasePosition, &Execution) -> bool,
) -> Result<(), EngineError> {
    let lane = behind.map_or("", |behind| behind.lane.as_str());
    let id = behind.map_or(Vec::new(), |behind| behind.execution_id.to_bytes().to_vec());
    let mut statement =
        connection.prepare_cached(statements::walk_active).map_err(|error| fault(&error))?;
    let values = params![namespace.as_str(), lane, id, most];
    let mut rows = statement.query(values).map_err(|error| fault(&error))?;
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        let at = || Ok((lane_at(row, 0)?, id_at(row, 1)?));
        let (lane, execution_id) = at().map_err(|error: rusqlite::Error| fault(&error))?;
        let execution = decode_execution(blob_at(row, 2).map_err(|error| fault(&error))?)?;
        if !look(LeasePosition { lane, execution_id }, &execution) {
            break;
        }
    }
    Ok(())
}
