//! A refusal: a legal negative answer of the machine.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Code;
use crate::capability::Capabilities;
use crate::id::AttemptId;
use crate::state::{LifecyclePhase, Outcome};

/// What is true now, told to a caller whose lease is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Current {
    pub terminal_outcome: Option<Outcome>,
    pub lease_epoch: u64,
    pub phase: LifecyclePhase,
    pub attempt_id: Option<AttemptId>,
}

/// Why an operation was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: Code,
    /// One sentence for a person.
    pub detail: Cow<'static, str>,
    /// The input field at fault, where one is.
    pub field: Option<Cow<'static, str>>,
    pub current: Option<Current>,
    /// What the worker would have to be able to do besides.
    pub missing_capabilities: Option<Capabilities>,
    /// How long to wait before it is worth trying again, where that is known.
    pub retry_after_ms: Option<u64>,
}

impl Refusal {
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = detail.into();
        let (field, current, missing_capabilities) = (None, None, None);
        Self { code, detail, field, current, missing_capabilities, retry_after_ms: None }
    }

    /// A refusal that points at an input field.
    pub fn at(code: Code, field: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { field: Some(field.into()), ..Self::new(code, detail) }
    }

    /// `invalid_input` of one field.
    pub fn invalid(field: &'static str, detail: impl fmt::Display) -> Self {
        Self::at(Code::InvalidInput, field, detail.to_string())
    }

    #[must_use]
    pub fn with_current(self, current: Current) -> Self {
        Self { current: Some(current), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Refusal {}
