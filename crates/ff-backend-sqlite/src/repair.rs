//! Derives again what records decide by themselves.

use ff_core::error::EngineError;
use ff_core::read::Repaired;
use ff_core::time::TimestampMs;
use ff_relational::{ExecutionWrite, decode_execution};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::audit::audit;
use crate::error::fault;
use crate::query::blob_at;
use crate::queues::Queues;
use crate::statements;
use crate::write::Rows;

/// Tables of which every row belongs to a record.
const OWNED: [&str; 6] = [
    statements::sweep_payloads,
    statements::sweep_results,
    statements::sweep_attempts,
    statements::sweep_beside,
    statements::sweep_frames,
    statements::sweep_frame_expiries,
];

/// Tables that are derived from records.
const DERIVED: [&str; 3] =
    [statements::empty_ready, statements::empty_timers, statements::empty_listings];

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
    let mut statement =
        transaction.prepare(statements::all_executions).map_err(|error| fault(&error))?;
    let mut records = statement.query([]).map_err(|error| fault(&error))?;
    while let Some(record) = records.next().map_err(|error| fault(&error))? {
        let core = blob_at(record, 6).map_err(|error| fault(&error))?;
        let execution = decode_execution(core)?;
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
        rows.lists(queues, &ExecutionWrite::listing(execution))?;
    }
    drop(records);
    drop(statement);
    let left = audit(&transaction, now)?;
    transaction.commit().map_err(|error| fault(&error))?;
    Ok(Repaired { found, left })
}
