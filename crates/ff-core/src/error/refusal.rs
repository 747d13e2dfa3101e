//! A refusal: a legal negative answer of the machine.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU64;

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
    /// What of the input the field stands in (RFC 6901); none: it stands in nothing.
    pub place: Option<Box<str>>,
    pub current: Option<Box<Current>>,
    /// What the worker would have to be able to do besides.
    pub missing_capabilities: Option<Capabilities>,
    /// How long to wait before it is worth trying again, where that is known.
    pub retry_after_ms: Option<NonZeroU64>,
}

impl Refusal {
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            detail: detail.into(),
            field: None,
            place: None,
            current: None,
            missing_capabilities: None,
            retry_after_ms: None,
        }
    }

    /// A refusal that points at an input field.
    pub fn at(code: Code, field: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { field: Some(field.into()), ..Self::new(code, detail) }
    }

    /// `invalid_input` of one field.
    pub fn invalid(field: &'static str, detail: impl fmt::Display) -> Self {
        Self::at(Code::InvalidInput, field, detail.to_string())
    }

    /// The same of a part of the input: what is at fault stands under this name, or number in a list.
    #[must_use]
    pub fn under(self, name: impl fmt::Display) -> Self {
        let name = name.to_string().replace('~', "~0").replace('/', "~1");
        let place = format!("/{name}{}", self.place.as_deref().unwrap_or(""));
        Self { place: Some(place.into()), ..self }
    }

    /// Where in the input the fault is (RFC 6901); empty: in the whole of it.
    pub fn pointer(&self) -> String {
        let place = self.place.as_deref().unwrap_or("");
        self.field.as_ref().map_or_else(|| place.to_owned(), |field| format!("{place}/{field}"))
    }

    /// A refusal that holds for so long.
    #[must_use]
    pub fn for_ms(self, ms: u64) -> Self {
        Self { retry_after_ms: NonZeroU64::new(ms), ..self }
    }

    #[must_use]
    pub fn with_current(self, current: Current) -> Self {
        Self { current: Some(Box::new(current)), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_a_part_is_told_by_its_place_in_the_whole() {
        let whole = Refusal::new(Code::InvalidInput, "no");
        assert_eq!(whole.pointer(), "");
        assert_eq!(whole.under("policy").pointer(), "/policy");
        let field = Refusal::invalid("weight", "no");
        assert_eq!(field.pointer(), "/weight");
        assert_eq!(field.clone().under(1).under("lanes").pointer(), "/lanes/1/weight");
        assert_eq!(field.under("a.b/c~d").pointer(), "/a.b~1c~0d/weight");
    }
}
