//! How every failure is told: `application/problem+json`.

use std::fmt;
use std::num::NonZeroU64;

use ff_core::capability::Capabilities;
use ff_core::error::{Class, Code, Current, EngineError, Refusal};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::object::Invalid;

/// How long a caller waits before it tries again when nothing says better.
const RETRY_AFTER_MS: u64 = 1_000;

/// A failure on its way to a caller. Boxed, since most calls do well.
pub type Failure = Box<Problem>;

/// One field at fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// Where in the body it stands (RFC 6901), or the name of the parameter.
    pub pointer: String,
    pub code: String,
    pub message: String,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Problem {
    /// Page that explains the code.
    #[serde(rename = "type")]
    pub type_: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    /// The request's path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    pub code: Code,
    pub class: Class,
    pub retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Names the request in logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// What is true now, for a caller whose lease is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub current: Option<Current>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub missing_capabilities: Option<Capabilities>,
    /// Of a body that is too large: what the route takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
}

impl FieldError {
    pub fn new(pointer: String, code: Code, message: impl fmt::Display) -> Self {
        Self { pointer, code: code.to_string(), message: message.to_string() }
    }

    /// Of a parameter, by its name.
    pub fn parameter(name: &str, message: impl fmt::Display) -> Self {
        Self::new(name.to_owned(), Code::InvalidInput, message)
    }
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let status = code.http_status();
        let waits = matches!(status, 429 | 503);
        Self {
            type_: format!("/problems/{code}"),
            title: code.as_str().replace('_', " "),
            status,
            detail: detail.into(),
            instance: None,
            code,
            class: code.class(),
            retryable: code.is_retryable(),
            retry_after_ms: waits.then_some(RETRY_AFTER_MS),
            trace_id: None,
            errors: Vec::new(),
            current: None,
            missing_capabilities: None,
            limit_bytes: None,
            route: None,
        }
    }

    /// A body over what the route takes.
    pub fn too_large(limit_bytes: usize, route: &str) -> Self {
        let detail = format!("the body is over {limit_bytes} bytes");
        Self {
            limit_bytes: Some(limit_bytes as u64),
            route: Some(route.to_owned()),
            ..Self::new(Code::PayloadTooLarge, detail)
        }
    }

    /// The same of a part: what is wrong stands under this place of the whole.
    #[must_use]
    pub fn under(self, place: &str) -> Box<Self> {
        let detail = format!("{place}: {}", self.detail);
        Box::new(Self { detail, ..self.placed(place) })
    }

    /// The same, told as the part's own problem.
    #[must_use]
    pub fn placed(mut self, place: &str) -> Self {
        for error in &mut self.errors {
            error.pointer = format!("{place}{}", error.pointer);
        }
        self
    }

    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        let code = refusal.code;
        let mut problem = Self::new(code, refusal.detail.clone());
        if problem.status == 400 {
            problem.errors.push(FieldError::new(refusal.pointer(), code, &refusal.detail));
        }
        problem.current = refusal.current.as_deref().copied();
        problem.missing_capabilities.clone_from(&refusal.missing_capabilities);
        let known = refusal.retry_after_ms.map(NonZeroU64::get);
        problem.retry_after_ms = known.or(problem.retry_after_ms);
        problem
    }
}

impl From<&EngineError> for Problem {
    fn from(error: &EngineError) -> Self {
        match error.refusal() {
            Some(refusal) => refusal.into(),
            // What went wrong inside is for the log; the caller gets the code and the trace id.
            None if error.code().class() == Class::Bug => {
                Self::new(error.code(), "something went wrong here; the log knows more")
            }
            None => Self::new(error.code(), error.to_string()),
        }
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        let first = invalid.0.first().map(|error| match error.pointer.as_str() {
            "" => error.message.clone(),
            pointer => format!("{pointer}: {}", error.message),
        });
        let detail = first.unwrap_or_else(|| "the request is malformed".to_owned());
        Self { errors: invalid.0, ..Self::new(Code::InvalidInput, detail) }
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::new(invalid.into())
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::new((&refusal).into())
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::new((&error).into())
    }
}

/// A problem document as it is sent. Its code is text: a later version may have codes that are not
/// known here.
#[derive(Deserialize)]
struct Told {
    #[serde(rename = "type", default)]
    type_: String,
    #[serde(default)]
    title: String,
    status: u16,
    #[serde(default)]
    detail: String,
    instance: Option<String>,
    code: String,
    retry_after_ms: Option<u64>,
    trace_id: Option<String>,
    #[serde(default)]
    errors: Vec<FieldError>,
    current: Option<Current>,
    missing_capabilities: Option<Capabilities>,
    limit_bytes: Option<u64>,
    route: Option<String>,
}

/// An unknown code is read as one of the class that its status stands for, and says so.
impl<'de> Deserialize<'de> for Problem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let told = Told::deserialize(deserializer)?;
        let (code, detail) = match told.code.parse() {
            Ok(code) => (code, told.detail),
            Err(()) => (code_of(told.status), format!("{}: {}", told.code, told.detail)),
        };
        Ok(Self {
            type_: told.type_,
            title: told.title,
            status: told.status,
            instance: told.instance,
            retry_after_ms: told.retry_after_ms,
            trace_id: told.trace_id,
            errors: told.errors,
            current: told.current,
            missing_capabilities: told.missing_capabilities,
            limit_bytes: told.limit_bytes,
            route: told.route,
            ..Self::new(code, detail)
        })
    }
}

/// A code of the class that a status stands for.
pub fn code_of(status: u16) -> Code {
    match status {
        401 => Code::Unauthenticated,
        403 => Code::Forbidden,
        404 => Code::RouteNotFound,
        409 => Code::LeaseConflict,
        412 => Code::PreconditionFailed,
        413 => Code::PayloadTooLarge,
        422 => Code::IdempotencyMismatch,
        429 => Code::RateLimited,
        502 | 503 => Code::Unavailable,
        504 => Code::Timeout,
        400..=499 => Code::InvalidInput,
        _ => Code::Internal,
    }
}

impl From<Problem> for EngineError {
    /// The failure that the server's call on its store ended in.
    fn from(problem: Problem) -> Self {
        let code = problem.code;
        // A fault is told as it prints, with its code before it.
        let told = problem.detail.strip_prefix(code.as_str()).and_then(|it| it.strip_prefix(": "));
        let detail = told.unwrap_or(&problem.detail).to_owned();
        match code {
            Code::Unavailable => Self::Unavailable { detail },
            Code::Timeout => Self::Timeout { detail },
            Code::OutcomeUnknown => Self::Transport { outcome_unknown: true, detail },
            _ if code.class() == Class::Bug => Self::Bug { code, detail },
            _ => problem.refusal().into(),
        }
    }
}

impl Problem {
    /// The refusal that it tells of.
    fn refusal(self) -> Refusal {
        let pointer = self.errors.into_iter().next().map(|error| error.pointer);
        let pointer = pointer.unwrap_or_default();
        let (place, field) = pointer.rsplit_once('/').unwrap_or(("", &pointer));
        Refusal {
            code: self.code,
            detail: self.detail.into(),
            field: Some(field.to_owned().into()).filter(|_| !field.is_empty()),
            place: Some(place.into()).filter(|_| !place.is_empty()),
            current: self.current.map(Box::new),
            missing_capabilities: self.missing_capabilities,
            retry_after_ms: self.retry_after_ms.and_then(NonZeroU64::new),
        }
    }
}
