//! A request, before it is known who answers it.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use ff_core::id::Namespace;
use reqwest::Method;
use serde::Serialize;

/// How long the cancel of a flow may wait for its members.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// What the answer is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// A JSON document.
    Json,
    /// The bytes of a payload or a result, as they are.
    Octets,
    /// Server-sent events, as they happen.
    Events,
}

impl Accept {
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Octets => "application/octet-stream",
            Self::Events => "text/event-stream",
        }
    }
}

/// A call of the API.
#[derive(Debug, Clone)]
pub struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) body: Option<Bytes>,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) accept: Accept,
    /// How long the server may take to answer, by what was asked.
    pub(super) wait: Duration,
    /// Asks only, whatever its method says.
    asks: bool,
}

/// A text that cannot be one part of a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id")]
pub struct NoPart(String);

/// A path under `/v1`, of parts that are encoded here: whatever a person types as an id stays one
/// part.
pub fn at(parts: &[&str]) -> Result<String, NoPart> {
    let mut path = "/v1".to_owned();
    for part in parts {
        if matches!(*part, "" | "." | "..") {
            return Err(NoPart((*part).to_owned()));
        }
        path.push('/');
        for byte in part.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    path.push(char::from(byte));
                }
                other => {
                    let _ = write!(path, "%{other:02X}");
                }
            }
        }
    }
    Ok(path)
}

impl Request {
    fn new(method: Method, path: String) -> Self {
        Self {
            asks: method == Method::GET,
            method,
            path,
            query: Vec::new(),
            body: None,
            content_type: "application/json",
            headers: Vec::new(),
            accept: Accept::Json,
            wait: Duration::ZERO,
        }
    }

    /// A question.
    pub fn get(path: String) -> Self {
        Self::new(Method::GET, path)
    }

    /// An act, with a form.
    pub fn post(path: String, body: &impl Serialize) -> Self {
        Self::new(Method::POST, path).body(body)
    }

    /// A thing that is to be so.
    pub fn put(path: String, body: &impl Serialize) -> Self {
        Self::new(Method::PUT, path).body(body)
    }

    /// A change of a thing.
    pub fn patch(path: String, body: &impl Serialize) -> Self {
        Self::new(Method::PATCH, path).body(body)
    }

    /// The removal of a thing.
    pub fn delete(path: String) -> Self {
        Self::new(Method::DELETE, path)
    }

    fn body(mut self, body: &impl Serialize) -> Self {
        // What is sent are forms and maps of texts and numbers, which always have a form in JSON.
        self.body = Some(serde_json::to_vec(body).unwrap_or_default().into());
        self
    }

    /// Bytes that are JSON already.
    pub fn post_text(path: String, body: Vec<u8>, content_type: &'static str) -> Self {
        Self { body: Some(body.into()), content_type, ..Self::new(Method::POST, path) }
    }

    /// With a parameter.
    pub fn query(mut self, name: &'static str, value: &(impl ToString + ?Sized)) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// A parameter that may be absent, or there several times.
    pub fn each<T: ToString>(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        values.into_iter().fold(self, |request, value| request.query(name, &value))
    }

    /// With a header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// In this namespace; without one in the caller's own.
    pub fn namespace(self, namespace: Option<&Namespace>) -> Self {
        match namespace {
            Some(namespace) => self.header("ff-namespace", namespace.as_str()),
            None => self,
        }
    }

    /// Only if the thing is still of this revision.
    pub fn if_match(self, revision: Option<u64>) -> Self {
        match revision {
            Some(revision) => self.header("if-match", format!("\"{revision}\"")),
            None => self,
        }
    }

    /// Asks for the bytes themselves.
    pub fn octets(self) -> Self {
        Self { accept: Accept::Octets, ..self }
    }

    /// Asks to be told as it happens.
    pub fn events(self) -> Self {
        Self { accept: Accept::Events, ..self }
    }

    /// It changes nothing, so it may be sent again.
    #[must_use]
    pub fn asking(self) -> Self {
        Self { asks: true, ..self }
    }

    /// Whether it may change something.
    pub fn changes(&self) -> bool {
        !self.asks
    }

    /// The answer may come as late as the longest wait there is.
    pub fn patient(self, is_patient: bool) -> Self {
        let wait = if is_patient { LONGEST_WAIT } else { self.wait };
        Self { wait, ..self }
    }

    /// Waits for what is asked for.
    pub fn wait_ms(self, ms: u64) -> Self {
        Self { wait: Duration::from_millis(ms), ..self }.query("wait_ms", &ms)
    }

    /// The server may take so much longer than with others.
    #[must_use]
    pub fn lasting(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_one_part_of_the_path() {
        let path = at(&["executions", "{fp:7}:0199/../x?y=1#z", "state"]);
        let expected = "/v1/executions/%7Bfp%3A7%7D%3A0199%2F..%2Fx%3Fy%3D1%23z/state";
        assert_eq!(path.as_deref(), Ok(expected));
        for bad in ["", ".", ".."] {
            assert_eq!(at(&["executions", bad]), Err(NoPart(bad.to_owned())), "{bad:?}");
        }
    }
}
