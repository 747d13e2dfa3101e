//! A request, before it is known who answers it.

use std::fmt::Write as _;
use std::time::Duration;

use ff_core::error::Code;
use reqwest::Method;
use serde::Serialize;

use super::Refused;

/// How long the cancel of a flow may wait for its members.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// What the answer is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accept {
    Json,
    Octets,
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
pub(crate) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) accept: Accept,
    /// How long the server may take to answer, by what was asked.
    pub(super) wait: Duration,
}

/// A path under `/v1`, of parts that are encoded here: whatever a person types as an id stays one
/// part.
pub(crate) fn at(parts: &[&str]) -> Result<String, Refused> {
    let mut path = "/v1".to_owned();
    for part in parts {
        if matches!(*part, "" | "." | "..") {
            let detail = format!("{part:?} is no id");
            return Err(Refused::new(Code::InvalidInput, detail));
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

    pub(crate) fn get(path: String) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: String, body: &impl Serialize) -> Self {
        Self::new(Method::POST, path).body(body)
    }

    pub(crate) fn put(path: String, body: &impl Serialize) -> Self {
        Self::new(Method::PUT, path).body(body)
    }

    pub(crate) fn patch(path: String, body: &impl Serialize) -> Self {
        Self::new(Method::PATCH, path).body(body)
    }

    pub(crate) fn delete(path: String) -> Self {
        Self::new(Method::DELETE, path)
    }

    fn body(mut self, body: &impl Serialize) -> Self {
        // What verbs send are maps of texts and numbers, which always have a form in JSON.
        self.body = Some(serde_json::to_vec(body).unwrap_or_default());
        self
    }

    /// Bytes that are JSON already.
    pub(crate) fn post_text(path: String, body: Vec<u8>, content_type: &'static str) -> Self {
        Self { body: Some(body), content_type, ..Self::new(Method::POST, path) }
    }

    pub(crate) fn query(mut self, name: &'static str, value: &(impl ToString + ?Sized)) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// A parameter that may be absent, or there several times.
    pub(crate) fn each<T: ToString>(
        self,
        name: &'static str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        values.into_iter().fold(self, |request, value| request.query(name, &value))
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Asks for the bytes themselves.
    pub(crate) fn octets(self) -> Self {
        Self { accept: Accept::Octets, ..self }
    }

    /// Asks to be told as it happens.
    pub(crate) fn events(self) -> Self {
        Self { accept: Accept::Events, ..self }
    }

    /// The answer may come as late as the longest wait there is.
    pub(crate) fn patient(self, is_patient: bool) -> Self {
        let wait = if is_patient { LONGEST_WAIT } else { self.wait };
        Self { wait, ..self }
    }

    /// Waits for an end of what is asked for.
    pub(crate) fn wait_ms(self, ms: u64) -> Self {
        Self { wait: Duration::from_millis(ms), ..self }.query("wait_ms", &ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_one_part_of_the_path() {
        let path = at(&["executions", "{fp:7}:0199/../x?y=1#z", "state"]).unwrap();
        assert_eq!(path, "/v1/executions/%7Bfp%3A7%7D%3A0199%2F..%2Fx%3Fy%3D1%23z/state");
        for bad in ["", ".", ".."] {
            assert_eq!(at(&["executions", bad]).unwrap_err().exit_code(), 5, "{bad:?}");
        }
    }
}
