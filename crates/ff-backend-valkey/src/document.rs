//! The stored form of a document: a head that functions read, then a body only for us. The head is
//! the beginning of an execution's: number of the newest event 6, revision 6, event seq 4.

use ff_core::error::EngineError;
use ff_core::id::DocumentId;
use ff_core::state::Document;

use crate::record::{self, push_uint, uint};

/// Raised whenever the form changes.
const VERSION: u8 = 7;

const HEAD_BYTES: usize = 16;

/// The whole record. With an event the store fills in the first bytes.
pub(crate) fn encode(document: &Document) -> Result<Vec<u8>, EngineError> {
    let mut record = Vec::with_capacity(256);
    push_uint(&mut record, document.last_event, 6);
    push_uint(&mut record, document.revision, 6);
    push_uint(&mut record, document.event_seq, 4);
    record.push(VERSION);
    postcard::to_extend(&document.body, record)
        .map_err(|error| EngineError::bug(format!("document does not encode: {error}")))
}

pub(crate) fn decode(id: &DocumentId, record: &[u8]) -> Result<Document, EngineError> {
    let broken = |detail: &str| EngineError::corruption(format!("record of {id}: {detail}"));
    let Some((head, rest)) = record.split_at_checked(HEAD_BYTES) else {
        return Err(broken("it is too short"));
    };
    let body = match rest.split_first() {
        Some((&VERSION, body)) => body,
        other => {
            let found = other.map(|(version, _)| *version);
            return Err(broken(&format!("version {found:?}, this build reads {VERSION}")));
        }
    };
    Ok(Document {
        id: id.clone(),
        last_event: uint(&head[..6]),
        revision: uint(&head[6..12]),
        event_seq: uint(&head[12..16]),
        body: postcard::from_bytes(body)
            .map_err(|error| broken(&format!("it does not decode: {error}")))?,
    })
}

/// The bytes by which a commit finds that nothing has changed.
pub(crate) fn stand(document: &Document) -> Vec<u8> {
    record::stand(document.last_event, document.revision)
}

/// For tests of what holds documents.
#[cfg(test)]
pub(crate) mod samples {
    use std::sync::Arc;

    use ff_core::id::{BudgetId, Namespace};
    use ff_core::partition::PartitionConfig;
    use ff_core::state::{Body, QuotaPolicy};
    use uuid::Uuid;

    use super::*;

    pub(crate) fn document(revision: u64) -> Arc<Document> {
        let uuid = Uuid::from_u128(1);
        let policy = QuotaPolicy {
            id: ff_core::id::QuotaPolicyId::new(uuid),
            namespace: Namespace::default(),
            spec: Default::default(),
            created_as: Default::default(),
            definition: 1,
            created_at: Default::default(),
            window: Default::default(),
            slots: 0,
            pending: Default::default(),
            overdue: Vec::new(),
            ask_at: None,
            patrol: 0,
            patrol_at: None,
            waiting: 0,
            resuming: 0,
            wake_at: None,
            resting: Vec::new(),
            waking: Vec::new(),
            tell_at: None,
        };
        let id = DocumentId::budget(BudgetId::new(uuid), &PartitionConfig::default());
        let (event_seq, last_event, body) = (0, 0, Body::QuotaPolicy(Box::new(policy)));
        Arc::new(Document { id, revision, event_seq, last_event, body })
    }
}
