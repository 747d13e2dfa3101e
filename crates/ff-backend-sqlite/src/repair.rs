//! Derives again what records decide by themselves.

use ff_core::error::EngineError;
use ff_core::read::Repaired;
use ff_core::state::{Execution, Recounted};
use ff_core::time::TimestampMs;
use ff_relational::{DocumentWrite, ExecutionWrite, decode_document, decode_execution};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::audit::audit;
use crate::error::fault;
use crate::query::blob_at;
use crate::queues::Queues;
use crate::statements;
use crate::write::Rows;

/// Tables of which every row belongs to a record.
const OWNED: [&str; 7] = [
    statements::sweep_payloads,
    statements::sweep_results,
    statements::sweep_attempts,
    statements::sweep_beside,
    statements::sweep_frames,
    statements::sweep_frame_expiries,
    statements::sweep_document_rows,
];

/// Tables that are derived from records.
const DERIVED: [&str; 6] = [
    statements::empty_ready,
    statements::empty_timers,
    statements::empty_listings,
    statements::empty_document_timers,
    statements::empty_document_listings,
    statements::empty_tallies,
];

/// In one transaction, so that a repair that fails changes nothing.
pub(crate) fn repair(
    connection: &mut Connection,
    queues: &mut Queues,
    now: TimestampMs,
) -> Result<Repaired, EngineError> {
    let found = audit(connection, now)?;
    if found.violations.is_empty() {
        return Ok(Repaired { left: found.clone(), found });
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| fault(&error))?;
    let rows = Rows { connection: &transaction };
    for statement in OWNED.into_iter().chain(DERIVED) {
        rows.run(statement, [])?;
    }
    list_executions(&rows, queues)?;
    list_documents(&rows)?;
    let left = audit(&transaction, now)?;
    transaction.commit().map_err(|error| fault(&error))?;
    Ok(Repaired { found, left })
}

fn list_executions(rows: &Rows<'_>, queues: &mut Queues) -> Result<(), EngineError> {
    let mut statement =
        rows.connection.prepare(statements::all_executions).map_err(|error| fault(&error))?;
    let mut records = statement.query([]).map_err(|error| fault(&error))?;
    while let Some(record) = records.next().map_err(|error| fault(&error))? {
        let core = blob_at(record, 6).map_err(|error| fault(&error))?;
        let execution = decode_execution(core)?;
        mend_columns(rows, &execution)?;
        if let Some(counted) = Recounted::between(None, Some(&execution)) {
            for (field, delta) in counted.deltas() {
                rows.run(statements::add_tally, params![counted.flow.to_string(), field, delta])?;
            }
        }
        rows.lists(queues, &ExecutionWrite::listing(execution))?;
    }
    Ok(())
}

/// The columns that are for people and filters.
pub(crate) fn mend_columns(rows: &Rows<'_>, execution: &Execution) -> Result<(), EngineError> {
    let about = &execution.about;
    rows.run(
        statements::mend_execution,
        params![
            execution.id.to_bytes(),
            about.created_at.0,
            about.namespace.as_str(),
            about.lane.as_str(),
            about.kind.as_str(),
            execution.public_state().as_str()
        ],
    )?;
    Ok(())
}

fn list_documents(rows: &Rows<'_>) -> Result<(), EngineError> {
    let mut statement =
        rows.connection.prepare(statements::all_documents).map_err(|error| fault(&error))?;
    let mut records = statement.query([]).map_err(|error| fault(&error))?;
    while let Some(record) = records.next().map_err(|error| fault(&error))? {
        let document = decode_document(blob_at(record, 1).map_err(|error| fault(&error))?)?;
        rows.document_lists(&DocumentWrite::listing(document))?;
    }
    Ok(())
}
