//! Commands on one document, one after the other, as a store with nothing else in it carries them
//! out. Shows the rows that it would hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::rows::{Family, RowKey};
use super::step::{ChangedDocument, Changes};
use super::{Need, Needs, Overlay, Settings, apply};
use crate::error::Refusal;
use crate::id::{DocumentId, ExecutionId};
use crate::operation::{Command, Operation, Reply, Tick, Ticked};
use crate::partition::PartitionConfig;
use crate::state::Document;
use crate::time::TimestampMs;

pub(super) struct Trial {
    overlay: Overlay,
    pub(super) now: TimestampMs,
    pub(super) document: Option<Arc<Document>>,
    pub(super) rows: BTreeMap<RowKey, Bytes>,
}

impl Trial {
    pub(super) fn new(id: impl FnOnce(&PartitionConfig) -> DocumentId) -> Self {
        let partitions = PartitionConfig::default();
        let mut overlay = Overlay::new(Arc::new(Settings::new("trial", partitions)));
        let id = id(&partitions);
        overlay.supply_document(id.clone(), None);
        overlay.supply_due(None, vec![id.into()], true);
        Self { overlay, now: TimestampMs(1_000_000), document: None, rows: BTreeMap::new() }
    }

    pub(super) fn call<O: Operation>(&mut self, operation: O) -> O::Reply {
        O::reply(self.command(&operation.into())).expect("its own reply")
    }

    fn command(&mut self, command: &Command) -> Reply {
        let step = apply(&self.overlay, command, self.now).expect("nothing is lacking");
        self.overlay.absorb(&step.changes);
        for changed in step.changes.documents {
            self.document = changed.after;
            for row in changed.rows {
                match row.bytes {
                    Some(bytes) => self.rows.insert(row.key, bytes),
                    None => self.rows.remove(&row.key),
                };
            }
        }
        step.reply.expect("no refusal")
    }

    pub(super) const fn facts(&self) -> &Overlay {
        &self.overlay
    }

    /// A command that is refused and changes nothing. Whatever else it asks for is not there.
    pub(super) fn refusal(&mut self, command: &Command) -> Refusal {
        loop {
            let Needs(needs) = match apply(&self.overlay, command, self.now) {
                Ok(step) => {
                    let Changes { executions, documents, .. } = step.changes;
                    assert!(executions.is_empty() && documents.is_empty(), "it changes something");
                    return step.reply.expect_err("a refusal");
                }
                Err(needs) => needs,
            };
            for need in needs {
                match need {
                    Need::Execution(id) => self.overlay.supply_execution(id, None),
                    Need::Document(id) => self.overlay.supply_document(id, None),
                    Need::Dedup(key) => self.overlay.supply_dedup(key, None),
                    other => panic!("it asks for {other:?}"),
                }
            }
        }
    }

    /// Makes the record something that no rule has made of it.
    pub(super) fn spoil(&mut self, change: impl FnOnce(&mut Document)) {
        let mut document = Document::clone(self.document.as_ref().expect("a document"));
        change(&mut document);
        let (id, after) = (document.id.clone(), Some(Arc::new(document)));
        let before = std::mem::replace(&mut self.document, after.clone());
        let changed = ChangedDocument { id, before, after, events: Vec::new(), rows: Vec::new() };
        self.overlay.absorb(&changed.into());
    }

    /// Moves the clock without letting the timer come by.
    pub(super) fn advance(&mut self, ms: u64) {
        self.now = self.now.after(ms);
    }

    /// Carries out all that is due: in how many steps.
    pub(super) fn settle(&mut self) -> u32 {
        let mut steps = 0;
        loop {
            let Ticked { fired, more, .. } = self.call(Tick { home: None, most: 1 });
            steps += u32::from(!fired.is_empty());
            if !more {
                return steps;
            }
        }
    }

    pub(super) fn rows_of(&self, family: Family) -> usize {
        self.rows.keys().filter(|key| key.family == family).count()
    }
}

pub(super) fn execution(number: u128) -> ExecutionId {
    ExecutionId::new(7, Uuid::from_u128(number))
}
