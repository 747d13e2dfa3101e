//! What a server answered.

use bytes::Bytes;
use reqwest::header::HeaderMap;
use serde::de::DeserializeOwned;

use ff_api::problem::{Problem, code_of};

/// An answer with its body read.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// Whether what was asked for was done.
    pub fn is_well(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it had been done before: the answer tells of no other time.
    pub fn is_replayed(&self) -> bool {
        self.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
    }

    /// The body as a form.
    pub fn form<F: DeserializeOwned>(&self) -> serde_json::Result<F> {
        serde_json::from_slice(&self.body)
    }

    /// The problem that it tells of. What stands between may answer with something else than a problem
    /// document; then one is made of the status.
    pub fn problem(&self) -> Problem {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| {
            let status = self.status;
            let detail = format!("the answer is HTTP status {status} without a reason");
            Problem::new(code_of(status), detail).with_status(status)
        })
    }
}
