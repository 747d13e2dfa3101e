//! The floor under the speed of this store: the rows that lifecycles write, and nothing else.
//!
//! Schema, pragmas, statements and sizes of records are the store's own; there are no commands, no
//! reads and no rules. What the store reaches is judged by how near it comes to this.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{
    Authority, DocumentId, ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId,
};
use ff_core::limits;
use ff_core::machine::{self, Overlay, QueueView, Settings};
use ff_core::operation::{Claim, Complete, LaneOrder, LaneShare, RegisterWorker, Submit};
use ff_core::partition::PartitionConfig;
use ff_core::state::{Document, Execution};
use ff_core::time::TimestampMs;
use ff_relational::{Batch, Job, encode_event, encode_execution};
use rusqlite::{Connection, Statement, params};

use crate::error::OpenError;
use crate::options::SqliteOptions;
use crate::store::open_writer;
use crate::{schema, statements};

/// A run of the floor: for so long, groups of executions are submitted in one transaction, claimed
/// in a second and completed in a third.
#[derive(Debug, Clone, Copy)]
pub struct Floor {
    pub duration: Duration,
    /// Executions of one transaction.
    pub group: usize,
    pub payload_bytes: usize,
}

/// What a run reached.
#[derive(Debug, Clone)]
pub struct FloorReport {
    pub lifecycles: u64,
    pub elapsed: Duration,
    /// How long each group took for its three transactions.
    pub groups: Vec<Duration>,
}

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum FloorError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl FloorReport {
    pub fn lifecycles_per_s(&self) -> f64 {
        self.lifecycles as f64 / self.elapsed.as_secs_f64()
    }
}

impl Floor {
    /// Runs on a file of its own: one that exists is refused, since the rows mean nothing.
    pub fn run(&self, options: &SqliteOptions) -> Result<FloorReport, FloorError> {
        if let Some(path) = options.path.as_ref().filter(|path| path.exists()) {
            let source = io::ErrorKind::AlreadyExists.into();
            return Err(OpenError::File { path: path.clone(), source }.into());
        }
        let records = Records::of_one_lifecycle(self.payload_bytes)?;
        let mut connection = open_writer(options)?;
        schema::migrate(&mut connection)?;
        let mut rows = Rows::prepare(&connection, &records)?;
        let begun = Instant::now();
        let mut groups = Vec::new();
        let mut lifecycles = 0;
        while groups.is_empty() || begun.elapsed() < self.duration {
            let group_begun = Instant::now();
            let numbers = lifecycles..lifecycles + self.group.max(1) as i64;
            transact(&connection, numbers.clone(), |number| rows.submit(number))?;
            transact(&connection, numbers.clone(), |number| rows.claim(number))?;
            transact(&connection, numbers.clone(), |number| rows.complete(number))?;
            lifecycles = numbers.end;
            groups.push(group_begun.elapsed());
        }
        let lifecycles = lifecycles.unsigned_abs();
        Ok(FloorReport { lifecycles, elapsed: begun.elapsed(), groups })
    }
}

fn transact(
    connection: &Connection,
    mut numbers: Range<i64>,
    write: impl FnMut(i64) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    numbers.try_for_each(write)?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

/// What one step leaves of an execution.
struct Record {
    state: &'static str,
    core: Vec<u8>,
    event: Vec<u8>,
    due: i64,
}

/// What every execution of a run looks like after each of its steps. All are copies of one: a row
/// costs the same whatever its bytes say.
struct Records {
    execution: Arc<Execution>,
    payload: Bytes,
    submitted: Record,
    claimed: Record,
    completed: Record,
}

impl Records {
    fn of_one_lifecycle(payload_bytes: usize) -> Result<Self, EngineError> {
        let id = ExecutionId::from_bytes(&key(0)).ok_or_else(|| EngineError::bug("no id"))?;
        let payload = Bytes::from(vec![b'x'; payload_bytes]);
        let lane = named(LaneId::new("bench-00000000"))?;
        let lane_id = DocumentId::lane(&Namespace::default(), &lane);
        let namespace_id = DocumentId::namespace(&Namespace::default());
        let submit = Submit {
            payload: Content::new(payload.clone()),
            ..Submit::new(id, lane.clone(), named(Kind::new("bench"))?)
        };
        let (execution, submitted) = step(Job::Command(submit.into()), |overlay| {
            overlay.supply_execution(id, None);
            overlay.supply_document(lane_id.clone(), None);
            overlay.supply_document(namespace_id.clone(), None);
        })?;
        let claim = claim_on(&lane)?;
        let worker = registered(&claim)?;
        let (active, claimed) = step(Job::Claim(claim), |overlay| {
            overlay.supply_document(lane_id.clone(), None);
            overlay.supply_document(namespace_id.clone(), None);
            overlay.supply_document(worker.id.clone(), Some(Arc::clone(&worker)));
            let score = execution.queue_place().map_or(0, |place| place.score);
            overlay.supply_queue(view_on(&lane), vec![(score, id)], true);
            overlay.supply_execution(id, Some(Arc::clone(&execution)));
            overlay.supply_payload(id, Some(payload.clone()));
        })?;
        let authority = active.live_fence().map_or(Authority::Override, Authority::Fence);
        let complete = Complete { execution_id: id, authority, result: None, next: None };
        let (_, completed) = step(Job::Command(complete.into()), |overlay| {
            overlay.supply_execution(id, Some(Arc::clone(&active)));
        })?;
        Ok(Self { execution, payload, submitted, claimed, completed })
    }
}

fn claim_on(lane: &LaneId) -> Result<Claim, EngineError> {
    Ok(Claim {
        namespace: Namespace::default(),
        worker_id: named(WorkerId::new("bench"))?,
        worker_instance_id: named(WorkerInstanceId::new("bench-1"))?,
        lanes: vec![LaneShare::new(lane.clone())],
        order: LaneOrder::default(),
        capabilities: Default::default(),
        max: 1,
        lease_ttl_ms: limits::LEASE_TTL_MS,
        seed: Default::default(),
        sets_aside: false,
    })
}

/// The document of the worker that claims.
fn registered(claim: &Claim) -> Result<Arc<Document>, EngineError> {
    let register = RegisterWorker::for_claim(claim, "bench", limits::WORKER_TTL_MIN_MS);
    let settings = Settings::new("sqlite", PartitionConfig::default());
    let mut overlay = Overlay::new(Arc::new(settings));
    let id = DocumentId::worker(&claim.namespace, &claim.worker_instance_id);
    overlay.supply_document(id, None);
    let step = machine::apply(&overlay, &register.into(), BEGINNING)
        .map_err(|needs| EngineError::bug(format!("the floor lacks {needs:?}")))?;
    let document = step.changes.documents.into_iter().find_map(|changed| changed.after);
    document.ok_or_else(|| EngineError::bug("no registration"))
}

fn view_on(lane: &LaneId) -> QueueView {
    QueueView {
        namespace: Namespace::default(),
        lane: lane.clone(),
        capabilities: Default::default(),
    }
}

fn named<T, E: ToString>(made: Result<T, E>) -> Result<T, EngineError> {
    made.map_err(|error| EngineError::bug(error.to_string()))
}

/// One step of the machine on one execution: what it is afterwards, and what is stored of it.
fn step(
    job: Job,
    supply: impl FnOnce(&mut Overlay),
) -> Result<(Arc<Execution>, Record), EngineError> {
    let settings = Settings::new("sqlite", PartitionConfig::default());
    let mut batch = Batch::new(Arc::new(settings), vec![job]);
    supply(batch.overlay());
    let outcome = batch
        .run(BEGINNING, || 1)
        .map_err(|needs| EngineError::bug(format!("the floor lacks {needs:?}")))?;
    let execution = outcome.writes.executions.first().and_then(|write| write.after.clone());
    let (Some(execution), Some(event)) = (execution, outcome.writes.events.first()) else {
        return Err(EngineError::bug(format!("no step: {:?}", outcome.answers)));
    };
    let record = Record {
        state: execution.public_state().as_str(),
        core: encode_execution(&execution)?,
        event: encode_event(event)?,
        due: execution.due().map_or(0, |due| due.at.0),
    };
    Ok((execution, record))
}

/// When every run begins, for times of the usual size.
const BEGINNING: TimestampMs = TimestampMs(1_800_000_000_000);
const QUEUE: i64 = 1;
const EVENTS_OF_A_LIFECYCLE: i64 = 3;

/// Ids rise as those of executions do.
fn key(number: i64) -> [u8; ExecutionId::BYTES] {
    let mut bytes = [0; ExecutionId::BYTES];
    bytes[8..16].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The statements of a lifecycle, prepared once.
struct Rows<'a> {
    records: &'a Records,
    insert_execution: Statement<'a>,
    update_execution: Statement<'a>,
    insert_payload: Statement<'a>,
    insert_ready: Statement<'a>,
    delete_ready: Statement<'a>,
    insert_timer: Statement<'a>,
    delete_timer: Statement<'a>,
    insert_event: Statement<'a>,
}

impl<'a> Rows<'a> {
    fn prepare(connection: &'a Connection, records: &'a Records) -> rusqlite::Result<Self> {
        Ok(Self {
            records,
            insert_execution: connection.prepare(statements::insert_execution)?,
            update_execution: connection.prepare(statements::update_execution)?,
            insert_payload: connection.prepare(statements::insert_payload)?,
            insert_ready: connection.prepare(statements::insert_ready)?,
            delete_ready: connection.prepare(statements::delete_ready)?,
            insert_timer: connection.prepare(statements::insert_timer)?,
            delete_timer: connection.prepare(statements::delete_timer)?,
            insert_event: connection.prepare(statements::insert_event)?,
        })
    }

    fn submit(&mut self, number: i64) -> rusqlite::Result<()> {
        let Records { execution, payload, submitted, .. } = self.records;
        let about = &execution.about;
        self.insert_execution.execute(params![
            key(number),
            created(number),
            about.namespace.as_str(),
            about.lane.as_str(),
            about.kind.as_str(),
            submitted.state,
            submitted.core
        ])?;
        if !payload.is_empty() {
            self.insert_payload.execute(params![key(number), &payload[..]])?;
        }
        self.insert_ready.execute(params![QUEUE, created(number), key(number)])?;
        self.event(number, 1, submitted)
    }

    fn claim(&mut self, number: i64) -> rusqlite::Result<()> {
        let claimed = &self.records.claimed;
        self.update_execution.execute(params![key(number), claimed.state, claimed.core])?;
        self.delete_ready.execute(params![QUEUE, created(number), key(number)])?;
        self.insert_timer.execute(params![claimed.due + number, key(number)])?;
        self.event(number, 2, claimed)
    }

    fn complete(&mut self, number: i64) -> rusqlite::Result<()> {
        let Records { claimed, completed, .. } = self.records;
        self.update_execution.execute(params![key(number), completed.state, completed.core])?;
        self.delete_timer.execute(params![claimed.due + number, key(number)])?;
        self.insert_timer.execute(params![completed.due + number, key(number)])?;
        self.event(number, 3, completed)
    }

    fn event(&mut self, number: i64, seq: i64, record: &Record) -> rusqlite::Result<()> {
        let number = number * EVENTS_OF_A_LIFECYCLE + seq;
        self.insert_event.execute(params![number, created(number), record.event])?;
        Ok(())
    }
}

fn created(number: i64) -> i64 {
    BEGINNING.0 + number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(connection: &Connection, table: &str) -> u64 {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs()
    }

    #[test]
    fn every_lifecycle_leaves_the_rows_that_the_store_leaves() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("floor.db");
        let floor = Floor { duration: Duration::ZERO, group: 7, payload_bytes: 10 };
        let report = floor.run(&SqliteOptions::file(&path)).unwrap();
        assert_eq!((report.lifecycles, report.groups.len()), (7, 1));
        let connection = Connection::open(&path).unwrap();
        let counted =
            ["execution", "payload", "ready", "timer", "event"].map(|t| count(&connection, t));
        assert_eq!(counted, [7, 7, 0, 7, 21]);
    }

    #[test]
    fn a_file_that_exists_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("precious.db");
        std::fs::write(&path, "precious").unwrap();
        let floor = Floor { duration: Duration::ZERO, group: 1, payload_bytes: 0 };
        let error = floor.run(&SqliteOptions::file(&path)).unwrap_err();
        assert!(error.to_string().contains("precious.db"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}
