//! Writes what a batch changed: the net difference, each table in the order of its key.

use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::machine::{FrameChange, RowChange, ShelfChange};
use ff_core::state::{Execution, Listing, Relisted};
use ff_relational::{
    DocumentWrite, ExecutionWrite, Writes, encode_attempt, encode_document, encode_event,
    encode_execution, encode_keyring,
};
use rusqlite::{Connection, Params, params};

use crate::error::fault;
use crate::queues::Queues;
use crate::statements;

pub(crate) fn write(
    connection: &Connection,
    queues: &mut Queues,
    writes: &Writes,
) -> Result<(), EngineError> {
    let writer = Rows { connection };
    for execution in &writes.executions {
        writer.execution(execution)?;
        writer.beside(execution)?;
        for change in &execution.frames {
            writer.frames(execution.id, change)?;
        }
        writer.lists(queues, execution)?;
    }
    for document in &writes.documents {
        writer.document(document)?;
        writer.document_lists(document)?;
    }
    for ((id, field), delta) in writes.tallies() {
        writer.run(statements::add_tally, params![id.to_string(), field, delta])?;
    }
    for (key, record) in &writes.dedups {
        writer.run(
            statements::insert_dedup,
            params![
                key.scope.to_string(),
                key.key.as_str(),
                record.execution_id.to_bytes(),
                record.fingerprint,
                record.expires_at.0
            ],
        )?;
    }
    if let Some(keyring) = &writes.keyring {
        writer.run(statements::put_keyring, params![encode_keyring(keyring)?])?;
    }
    for event in &writes.events {
        let record = encode_event(event)?;
        writer.run(statements::insert_event, params![event.number as i64, event.time.0, record])?;
    }
    Ok(())
}

pub(crate) struct Rows<'a> {
    pub(crate) connection: &'a Connection,
}

impl Rows<'_> {
    pub(crate) fn run(&self, statement: &str, values: impl Params) -> Result<usize, EngineError> {
        self.connection
            .prepare_cached(statement)
            .and_then(|mut statement| statement.execute(values))
            .map_err(|error| fault(&error))
    }

    fn execution(&self, write: &ExecutionWrite) -> Result<(), EngineError> {
        let id = write.id.to_bytes();
        match (&write.before, &write.after) {
            (None, Some(after)) => self.insert(after)?,
            (Some(_), Some(after)) => {
                let state = after.public_state().as_str();
                let core = encode_execution(after)?;
                self.run(statements::update_execution, params![id, state, core])?;
            }
            (_, None) => {
                self.run(statements::delete_execution, params![id])?;
            }
        }
        Ok(())
    }

    fn insert(&self, execution: &Execution) -> Result<(), EngineError> {
        let about = &execution.about;
        self.run(
            statements::insert_execution,
            params![
                execution.id.to_bytes(),
                about.created_at.0,
                about.namespace.as_str(),
                about.lane.as_str(),
                about.kind.as_str(),
                execution.public_state().as_str(),
                encode_execution(execution)?
            ],
        )?;
        Ok(())
    }

    /// Payload, results and earlier attempts.
    fn beside(&self, write: &ExecutionWrite) -> Result<(), EngineError> {
        let id = write.id.to_bytes();
        if write.purge {
            self.run(statements::delete_payload, params![id])?;
            self.run(statements::delete_results, params![id])?;
            self.run(statements::delete_attempts, params![id])?;
            self.run(statements::clear_beside, params![id])?;
            self.run(statements::clear_frames, params![id])?;
            self.run(statements::clear_frame_expiries, params![id])?;
        }
        // An absent payload reads as an empty one.
        match &write.payload {
            Some(payload) if !payload.is_empty() => {
                self.run(statements::insert_payload, params![id, &payload[..]])?;
            }
            Some(_) if write.before.is_some() => {
                self.run(statements::delete_payload, params![id])?;
            }
            _ => {}
        }
        for (attempt, result) in &write.results {
            let content_type = result.content_type.as_str();
            self.run(
                statements::insert_result,
                params![id, attempt, content_type, &result.bytes[..]],
            )?;
        }
        for attempt in &write.attempts {
            let record = encode_attempt(attempt)?;
            self.run(statements::insert_attempt, params![id, attempt.index, record])?;
        }
        for RowChange { key, bytes } in &write.rows {
            let (family, name) = (key.family.code(), &key.name[..]);
            match bytes {
                Some(body) => {
                    self.run(statements::put_beside, params![id, family, name, &body[..]])?
                }
                None => self.run(statements::delete_beside, params![id, family, name])?,
            };
        }
        Ok(())
    }

    /// A document and the rows beside it.
    fn document(&self, write: &DocumentWrite) -> Result<(), EngineError> {
        let id = write.id.to_string();
        if write.purge {
            self.run(statements::clear_document_rows, params![id])?;
            self.run(statements::clear_tally, params![id])?;
        }
        match &write.after {
            Some(after) => {
                self.run(statements::put_document, params![id, encode_document(after)?])?
            }
            None => self.run(statements::delete_document, params![id])?,
        };
        for RowChange { key, bytes } in &write.rows {
            let (family, name) = (key.family.code(), &key.name[..]);
            match bytes {
                Some(body) => {
                    let values = params![id, family, name, &body[..]];
                    self.run(statements::put_document_row, values)?
                }
                None => self.run(statements::delete_document_row, params![id, family, name])?,
            };
        }
        Ok(())
    }

    /// The rows that list a document.
    pub(crate) fn document_lists(&self, write: &DocumentWrite) -> Result<(), EngineError> {
        let id = write.id.to_string();
        let change = write.timer_change();
        if let Some(due) = change.out {
            self.run(statements::delete_document_timer, params![due.0, id])?;
        }
        if let Some(due) = change.into {
            self.run(statements::insert_document_timer, params![due.0, id])?;
        }
        let Relisted { out, into } = write.listing_change();
        let out = out.iter().map(|listing| (statements::delete_document_listing, listing));
        let into = into.iter().map(|listing| (statements::insert_document_listing, listing));
        for (statement, Listing { namespace, list, at, name }) in out.chain(into) {
            let values = params![namespace.as_str(), list.code(), at.0, name.as_bytes(), id];
            self.run(statement, values)?;
        }
        Ok(())
    }

    /// Output of an attempt: old frames go before new ones come.
    fn frames(&self, id: ExecutionId, change: &FrameChange) -> Result<(), EngineError> {
        let (id, attempt) = (id.to_bytes(), change.attempt_index);
        for ShelfChange { mode, drops, until, .. } in &change.shelves {
            let mode = mode.code();
            if *drops > 0 {
                self.run(statements::drop_frames, params![id, attempt, mode, drops])?;
            }
            if let Some(until) = until {
                self.run(statements::put_frame_expiry, params![id, attempt, mode, until.0])?;
            }
        }
        for frame in &change.frames {
            self.run(
                statements::insert_frame,
                params![
                    id,
                    attempt,
                    frame.mode.code(),
                    frame.id.packed(),
                    frame.frame_type,
                    frame.content.content_type.as_str(),
                    frame.correlation_id,
                    &frame.content.bytes[..]
                ],
            )?;
        }
        Ok(())
    }

    /// The rows that list an execution.
    pub(crate) fn lists(
        &self,
        queues: &mut Queues,
        write: &ExecutionWrite,
    ) -> Result<(), EngineError> {
        self.ready(queues, write)?;
        self.timer(write)?;
        self.listings(write)
    }

    fn ready(&self, queues: &mut Queues, write: &ExecutionWrite) -> Result<(), EngineError> {
        let id = write.id.to_bytes();
        let change = write.queue_change();
        if let Some(place) = change.out {
            let queue = queues.place(self.connection, &place)?;
            self.run(statements::delete_ready, params![queue, place.score, id])?;
        }
        if let Some(place) = change.into {
            let queue = queues.place(self.connection, &place)?;
            self.run(statements::insert_ready, params![queue, place.score, id])?;
        }
        Ok(())
    }

    fn listings(&self, write: &ExecutionWrite) -> Result<(), EngineError> {
        let change = write.listing_change();
        let out = change.out.iter().map(|listing| (statements::delete_listing, listing));
        let into = change.into.iter().map(|listing| (statements::insert_listing, listing));
        for (statement, Listing { namespace, list, at, name }) in out.chain(into) {
            let id = write.id.to_bytes();
            let values = params![namespace.as_str(), list.code(), at.0, name.as_bytes(), id];
            self.run(statement, values)?;
        }
        Ok(())
    }

    fn timer(&self, write: &ExecutionWrite) -> Result<(), EngineError> {
        let id = write.id.to_bytes();
        let change = write.timer_change();
        if let Some(due) = change.out {
            self.run(statements::delete_timer, params![due.0, id])?;
        }
        if let Some(due) = change.into {
            self.run(statements::insert_timer, params![due.0, id])?;
        }
        Ok(())
    }
}
