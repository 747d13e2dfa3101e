//! The rules of API keys.

use super::Facts;
use super::document::DocumentDraft;
use super::draft::Halt;
use super::step::Step;
use crate::error::{Code, Refusal};
use crate::id::{DocumentId, Namespace};
use crate::operation::{CreateKey, DeleteKey, KeyCreated, Settled};
use crate::state::{ApiKey, Part};
use crate::time::TimestampMs;

pub(super) fn create(
    facts: &impl Facts,
    op: &CreateKey,
    now: TimestampMs,
) -> Result<Step<KeyCreated>, Halt> {
    let id = DocumentId::key(&op.key_id);
    let mut key = ApiKey {
        key_id: op.key_id.clone(),
        namespace: Namespace::default(),
        name: op.name.clone(),
        secret: op.secret,
        access: op.access.clone(),
        created_at: now,
        expires_at: op.expires_at,
    };
    if let Some(document) = facts.document(&id)? {
        let known = ApiKey::of(&document.body);
        key.created_at = known.map_or(now, |known| known.created_at);
        if known == Some(&key) {
            return Ok(Step::unchanged(KeyCreated::AlreadySatisfied));
        }
        let detail = format!("key {} is another one", op.key_id);
        return Err(Refusal::at(Code::IdempotencyMismatch, "key_id", detail).into());
    }
    Ok(DocumentDraft::new(id, key, now).answer(KeyCreated::Created))
}

pub(super) fn delete(
    facts: &impl Facts,
    op: &DeleteKey,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let missing = || Refusal::at(Code::KeyNotFound, "key_id", format!("no key {}", op.key_id));
    let document = facts.document(&DocumentId::key(&op.key_id))?.ok_or_else(missing)?;
    let mut draft = DocumentDraft::<ApiKey>::of(document, now)?;
    draft.removed = true;
    Ok(draft.answer(Settled::Done))
}
