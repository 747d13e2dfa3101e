//! API keys: made and taken away.

use super::command::Shape;
use crate::check::{check_bytes, check_time};
use crate::error::Refusal;
use crate::id::{DocumentId, ExecutionId, KeyId};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::state::{Access, SecretHash};
use crate::time::TimestampMs;

/// Makes an API key.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateKey {
    pub key_id: KeyId,
    pub name: String,
    pub secret: SecretHash,
    pub access: Access,
    pub expires_at: Option<TimestampMs>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyCreated {
    Created,
    AlreadySatisfied,
}

/// Takes an API key away.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteKey {
    pub key_id: KeyId,
}

impl Access {
    fn check(&self) -> Result<(), Refusal> {
        if self.scopes.is_empty() || !self.scopes.is_sorted_by(|a, b| a < b) {
            return Err(Refusal::invalid("scopes", "at least one, in order, and each once"));
        }
        let most = limits::KEY_NAMES;
        for (field, count) in [
            ("namespaces", self.namespaces.as_ref().map(Vec::len)),
            ("lanes", self.lanes.as_ref().map(Vec::len)),
        ] {
            if count.is_some_and(|count| count == 0 || count > most) {
                return Err(Refusal::invalid(field, format!("1 to {most}, or none for all")));
            }
        }
        Ok(())
    }
}

impl Shape for CreateKey {
    fn check_shape(&self) -> Result<(), Refusal> {
        if self.name.is_empty() || self.name.chars().any(char::is_control) {
            return Err(Refusal::invalid("name", "text without control characters"));
        }
        check_bytes("name", &self.name, limits::CREATOR_BYTES)?;
        self.expires_at.map_or(Ok(()), |at| check_time("expires_at", at))?;
        self.access.check()
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::key(&self.key_id))
    }
}

impl Shape for DeleteKey {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::key(&self.key_id))
    }
}
