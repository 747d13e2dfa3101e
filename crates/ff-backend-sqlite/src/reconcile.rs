//! Compares some records with what lists and counts them. It runs where everything is written, in one
//! transaction, so nothing changes meanwhile.

use std::sync::Arc;

use ff_core::cursor;
use ff_core::error::{Code, EngineError};
use ff_core::id::{DocumentKind, ExecutionId};
use ff_core::limits;
use ff_core::machine::Settings;
use ff_core::operation::{Part, Reconcile, Reconciled};
use ff_core::read::{Answer, ListEntry, ListFlowMembers, Query};
use ff_core::state::{Document, Execution, Listing, MemberCounts, Recounted};
use ff_core::time::TimestampMs;
use ff_relational::{DocumentWrite, ExecutionWrite, decode_document, decode_execution};
use rusqlite::{Connection, Params, TransactionBehavior, params};

use crate::audit::{check_columns, check_ready, check_timers, entry_of};
use crate::error::fault;
use crate::load;
use crate::query::{self, blob_at};
use crate::queues::Queues;
use crate::repair::mend_columns;
use crate::write::Rows;
use crate::{stale, statements};

/// A page under way.
pub(crate) struct Visit<'a> {
    pub(crate) rows: Rows<'a>,
    pub(crate) page: &'a Reconcile,
    pub(crate) done: Reconciled,
    queues: &'a mut Queues,
    settings: &'a Arc<Settings>,
    now: TimestampMs,
    /// Members that may still be counted.
    members_left: u32,
}

pub(crate) fn reconcile(
    connection: &mut Connection,
    queues: &mut Queues,
    (settings, now): (&Arc<Settings>, TimestampMs),
    page: &Reconcile,
) -> Result<Reconciled, EngineError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| fault(&error))?;
    let rows = Rows { connection: &transaction };
    let (done, members_left) = (Reconciled::default(), limits::RECONCILE_MEMBERS);
    let mut visit = Visit { rows, page, done, queues, settings, now, members_left };
    match page.part {
        Part::Executions => visit.executions()?,
        Part::Documents(kind) => visit.documents(kind)?,
        Part::Entries => stale::reconcile(&mut visit)?,
    }
    let done = visit.done;
    transaction.commit().map_err(|error| fault(&error))?;
    Ok(done)
}

impl Visit<'_> {
    pub(crate) fn has(&self, statement: &str, values: impl Params) -> Result<bool, EngineError> {
        let prepared = self.rows.connection.prepare_cached(statement);
        prepared.and_then(|mut statement| statement.exists(values)).map_err(|error| fault(&error))
    }

    fn executions(&mut self) -> Result<(), EngineError> {
        let found = self.page_of_executions()?;
        for (execution, is_sound) in &found {
            if self.page.filter.admits_execution(execution) {
                self.execution(execution, *is_sound)?;
            }
        }
        Ok(())
    }

    /// The next executions, and whether their columns say what they are.
    fn page_of_executions(&mut self) -> Result<Vec<(Execution, bool)>, EngineError> {
        let (scope, limit) = (self.page.scope(), self.page.limit);
        let after: Option<Vec<u8>> =
            self.page.cursor.as_deref().map(|text| cursor::decode(&scope, text)).transpose()?;
        let read = |visit: &mut Self| {
            let prepared = visit.rows.connection.prepare_cached(statements::page_of_executions);
            let mut statement = prepared?;
            let mut rows = statement.query(params![after.unwrap_or_default(), limit])?;
            let (mut found, mut looked) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                looked += 1;
                let id: Vec<u8> = row.get(0)?;
                visit.done.next_cursor = (looked == limit).then(|| cursor::encode(&scope, &id));
                let audited = &mut visit.done.found;
                match decode_execution(blob_at(row, 6)?) {
                    Ok(execution) => {
                        let before = audited.violations.len();
                        check_columns(audited, &execution, row)?;
                        found.push((execution, audited.violations.len() == before));
                    }
                    // What cannot be read holds up nothing behind it.
                    Err(error) => {
                        let id = ExecutionId::from_bytes(&id);
                        audited.report("I8", id, format!("its record cannot be read: {error}"));
                    }
                }
            }
            Ok(found)
        };
        read(self).map_err(|error: rusqlite::Error| fault(&error))
    }

    fn execution(&mut self, execution: &Execution, is_sound: bool) -> Result<(), EngineError> {
        let id = execution.id.to_bytes();
        let mut ready = Vec::new();
        if let (Some(place), Some(entry)) = (execution.queue_place(), entry_of(execution)) {
            let queue = self.queues.place(self.rows.connection, &place)?;
            if self.has(statements::has_ready, params![queue, place.score, id])? {
                ready.push(entry);
            }
        }
        let mut timers = Vec::new();
        if let Some(due) = execution.due() {
            let is_there = self.has(statements::has_timer, params![due.at.0, id])?;
            timers.extend(is_there.then_some(due.at.0));
        }
        let mut listings = Vec::new();
        for listing in execution.listings() {
            let (namespace, list) = (listing.namespace.as_str(), listing.list.code());
            let values = params![namespace, list, listing.at.0, listing.name.as_bytes(), id];
            let is_there = self.has(statements::has_listing, values)?;
            listings.extend(is_there.then(|| entry(&listing)));
        }
        let audited = &mut self.done.found;
        audited.checked += 1;
        let before = audited.violations.len();
        check_ready(audited, execution, &ready);
        check_timers(audited, execution, &timers);
        audited.check_listings(execution, listings);
        if audited.violations.len() > before || !is_sound {
            self.done.mended += 1;
            mend_columns(&self.rows, execution)?;
            // What is there of it goes first: an entry is written once.
            self.rows.lists(self.queues, &ExecutionWrite::unlisting(execution.clone()))?;
            self.rows.lists(self.queues, &ExecutionWrite::listing(execution.clone()))?;
        }
        self.done.found.check_waits(execution);
        self.done.found.check_counts(execution);
        Ok(())
    }

    fn documents(&mut self, kind: DocumentKind) -> Result<(), EngineError> {
        for document in self.page_of_documents(kind)? {
            if self.page.filter.admits_document(&document) {
                self.document(&document)?;
            }
        }
        Ok(())
    }

    fn page_of_documents(&mut self, kind: DocumentKind) -> Result<Vec<Document>, EngineError> {
        let (scope, limit) = (self.page.scope(), self.page.limit);
        let after: Option<String> =
            self.page.cursor.as_deref().map(|text| cursor::decode(&scope, text)).transpose()?;
        // The names of a kind stand between these.
        let after = after.unwrap_or_else(|| format!("{}:", kind.as_str()));
        let end = format!("{};", kind.as_str());
        let read = |visit: &mut Self| {
            let prepared = visit.rows.connection.prepare_cached(statements::page_of_documents);
            let mut statement = prepared?;
            let mut rows = statement.query(params![after, end, limit])?;
            let (mut found, mut looked) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                looked += 1;
                let id: String = row.get(0)?;
                visit.done.next_cursor = (looked == limit).then(|| cursor::encode(&scope, &id));
                match decode_document(blob_at(row, 1)?) {
                    Ok(document) => found.push(document),
                    Err(error) => {
                        let detail = format!("its record cannot be read: {error}");
                        visit.done.found.report("I8", Some(id), detail);
                    }
                }
            }
            Ok(found)
        };
        read(self).map_err(|error: rusqlite::Error| fault(&error))
    }

    fn document(&mut self, document: &Document) -> Result<(), EngineError> {
        let id = document.id.to_string();
        let mut timers = Vec::new();
        if let Some(due) = document.due() {
            let is_there = self.has(statements::has_document_timer, params![due.at.0, id])?;
            timers.extend(is_there.then_some(due.at.0));
        }
        let mut listings = Vec::new();
        for listing in document.listings() {
            let (namespace, list) = (listing.namespace.as_str(), listing.list.code());
            let values = params![namespace, list, listing.at.0, listing.name.as_bytes(), id];
            let is_there = self.has(statements::has_document_listing, values)?;
            listings.extend(is_there.then(|| entry(&listing)));
        }
        let kept = load::tally(self.rows.connection, &document.id)?;
        let counted = self.counted(document)?.unwrap_or_else(|| kept.clone());
        let audited = &mut self.done.found;
        audited.checked += 1;
        let before = audited.violations.len();
        audited.check_document(document, (&timers, &listings), (&kept, &counted));
        if audited.violations.len() == before {
            return Ok(());
        }
        self.done.mended += 1;
        self.rows.document_lists(&DocumentWrite::unlisting(document.clone()))?;
        self.rows.document_lists(&DocumentWrite::listing(document.clone()))?;
        if kept != counted {
            self.rows.run(statements::clear_tally, params![id])?;
            for (field, count) in counted.fields() {
                self.rows.run(statements::add_tally, params![id, field, count])?;
            }
        }
        Ok(())
    }

    /// What the members of a flow say; none if it is no flow, or too large to be counted here.
    fn counted(&mut self, document: &Document) -> Result<Option<MemberCounts>, EngineError> {
        let flow = document.flow().filter(|flow| flow.members <= self.members_left);
        let Some(flow) = flow else { return Ok(None) };
        self.members_left -= flow.members;
        let mut counts = MemberCounts::default();
        let mut next = Some(0);
        while let Some(from) = next {
            let limit = limits::PAGE_MAX;
            let list = Query::ListFlowMembers(ListFlowMembers { flow_id: flow.id, from, limit });
            let members = match query::answer(self.rows.connection, self.settings, &list, self.now)
            {
                Ok(Answer::ListFlowMembers(members)) => members,
                Ok(_) => return Err(EngineError::bug("members of a flow were asked for")),
                // It is out of sight: still being made, or about to go.
                Err(error) if error.code() == Code::FlowNotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            for member in &members.items {
                let execution = load::execution(self.rows.connection, member.execution_id)?;
                if let Some(counted) = Recounted::between(None, execution.as_ref()) {
                    counted.deltas().into_iter().for_each(|(field, n)| counts.add(field, n));
                }
            }
            next = members.next;
        }
        Ok(Some(counts))
    }
}

fn entry(listing: &Listing<'_>) -> ListEntry {
    (listing.list.code(), listing.namespace.to_string(), listing.at.0, listing.name)
}
