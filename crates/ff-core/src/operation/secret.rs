//! The keys that sign waitpoint tokens.

use super::command::Shape;
use crate::check::check_range;
use crate::error::{Code, Refusal};
use crate::id::{ExecutionId, Kid};
use crate::limits;
use crate::token::Secret;

/// Fills a keyring that is empty.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedSecret {
    pub kid: Kid,
    pub secret: Secret,
}

/// Makes another key the one that signs; the one before is accepted for a while.
#[derive(Debug, Clone, PartialEq)]
pub struct RotateSecret {
    pub kid: Kid,
    pub secret: Secret,
    pub grace_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    pub current_kid: Kid,
    /// False when it was so already.
    pub rotated: bool,
}

impl Shape for SeedSecret {
    fn target(&self) -> Option<ExecutionId> {
        None
    }
}

impl Shape for RotateSecret {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_range("grace_ms", self.grace_ms, 0, limits::GRACE_MAX_MS)
            .map_err(|refusal| Refusal { code: Code::InvalidGraceMs, ..refusal })
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }
}
