//! The one place where a failure becomes an answer.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use ff_api::object::Invalid;
use ff_api::problem::{Failure, Problem};
use ff_core::error::{Class, Code, EngineError, Refusal};
use ff_core::id::IdempotencyKey;

use crate::trace::Trace;

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// How a caller without a key may come in.
const BEARER: HeaderValue = HeaderValue::from_static("Bearer");

/// Why a request is not carried out.
#[derive(Debug)]
pub(crate) enum Failed {
    Problem(Failure),
    /// Kept whole: what it says of a bug belongs in the log and not on the wire.
    Engine(EngineError),
    /// The path is served, but not so.
    Method {
        allow: String,
        problem: Failure,
    },
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self::Problem(failure)
    }
}

impl From<Invalid> for Failed {
    fn from(invalid: Invalid) -> Self {
        Self::Problem(invalid.into())
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::Problem(refusal.into())
    }
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl Failed {
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Problem(problem) | Self::Method { problem, .. } => problem.code,
            Self::Engine(error) => error.code(),
        }
    }
}

/// A thing that an idempotency key names was made with other content: that is told in the words of
/// keys, not of the id that follows from it.
pub(crate) fn of_key(
    error: EngineError,
    key: Option<&IdempotencyKey>,
    conflict: Code,
) -> EngineError {
    if key.is_none() || error.code() != conflict {
        return error;
    }
    let detail = "the key was used with other content";
    Refusal::new(Code::IdempotencyMismatch, detail).into()
}

/// The problem that a call on the store ended in; a bug is logged under the request's trace.
pub(crate) fn problem_of(error: &EngineError, trace: &Trace) -> Problem {
    if error.code().class() == Class::Bug {
        tracing::error!(trace_id = %trace.id, %error, "a request met a bug");
    }
    let mut problem = Problem::from(error);
    problem.trace_id = Some(trace.id.clone());
    problem
}

/// The answer.
pub(crate) fn response(failed: Failed, trace: &Trace) -> Response {
    let (mut problem, allow) = match failed {
        Failed::Problem(problem) => (problem, None),
        Failed::Engine(error) => (Failure::new(problem_of(&error, trace)), None),
        Failed::Method { allow, problem } => (problem, Some(allow)),
    };
    problem.trace_id = Some(trace.id.clone());
    problem.instance = Some(trace.path.clone());
    if trace.by_parameter {
        for error in &mut problem.errors {
            let name = error.pointer.trim_start_matches('/').split('/').next().unwrap_or("");
            error.pointer = name.to_owned();
        }
    }
    let mut response = Response::new(Body::from(body(&problem)));
    *response.status_mut() =
        StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, PROBLEM);
    if problem.code == Code::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, BEARER);
    }
    if let Some(ms) = problem.retry_after_ms {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000).max(1)));
    }
    if let Some(allow) = allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
        headers.insert(header::ALLOW, allow);
    }
    response
}

/// The document as it travels.
pub(crate) fn body(problem: &Problem) -> Vec<u8> {
    serde_json::to_vec(problem).unwrap_or_default()
}
