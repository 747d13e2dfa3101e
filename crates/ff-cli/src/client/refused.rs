//! A request that did not do what it asked for: the problem document, as the server sent it.

use std::fmt;

use bytes::Bytes;
use ff_api::problem::{Problem, code_of};
use ff_core::error::Code;
use serde_json::Value;

use crate::show::plain;

/// A problem document.
#[derive(Debug)]
pub(crate) struct Refused {
    status: u16,
    body: Bytes,
    document: Value,
}

impl Refused {
    /// Of an answer that is not well. What stands between may answer with something else than a
    /// problem document; then one is made of the status.
    pub(crate) fn of(status: u16, body: Bytes) -> Self {
        match serde_json::from_slice::<Value>(&body) {
            Ok(document) if document.is_object() => Self { status, body, document },
            _ => {
                let detail = format!("the answer is HTTP status {status} without a reason");
                Self::made(&Problem::new(code_of(status), detail).with_status(status))
            }
        }
    }

    /// A refusal that this command decides itself, told as a server would.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self::made(&Problem::new(code, detail))
    }

    /// With one more field, so that a program knows what it is about.
    pub(crate) fn with(mut self, field: &str, value: &str) -> Self {
        self.document[field] = value.into();
        self.body = self.document.to_string().into();
        self
    }

    /// Whether the same may go well later: who is asked is away, or says when to come again.
    pub(crate) fn may_pass(&self) -> bool {
        let away = [Code::Unavailable, Code::Timeout];
        self.retry_after_ms().is_some() || away.iter().any(|code| self.code() == code.as_str())
    }

    fn made(problem: &Problem) -> Self {
        let document = serde_json::to_value(problem).unwrap_or_default();
        Self { status: problem.status, body: document.to_string().into(), document }
    }

    /// The document as it was sent.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    fn text(&self, field: &str) -> &str {
        self.document[field].as_str().unwrap_or_default()
    }

    /// Its code, as text: a newer server may have codes that are not known here.
    pub(crate) fn code(&self) -> &str {
        self.text("code")
    }

    /// What tells a script what to do.
    pub(crate) fn exit_code(&self) -> u8 {
        self.code().parse().unwrap_or_else(|()| code_of(self.status)).exit_code()
    }

    /// How long to wait before trying again, if that may help.
    pub(crate) fn retry_after_ms(&self) -> Option<u64> {
        self.document["retry_after_ms"].as_u64()
    }
}

/// A path under `/v1`, of parts that are encoded here: whatever a person types as an id stays one
/// part.
pub(crate) fn at(parts: &[&str]) -> Result<String, Refused> {
    ff_remote::http::at(parts).map_err(|error| Refused::new(Code::InvalidInput, error.to_string()))
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, detail) = (self.code(), self.text("detail"));
        let title = if code.is_empty() { self.text("title") } else { code };
        if detail.is_empty() || detail == title {
            return f.write_str(&plain(title));
        }
        write!(f, "{} ({})", plain(detail), plain(title))
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_follow_the_code_and_else_the_status() {
        let cases = [
            (409, r#"{"code":"budget_exceeded"}"#, 7),
            (409, r#"{"code":"token_expired"}"#, 6),
            (404, r#"{"code":"execution_not_found"}"#, 3),
            (429, r#"{"code":"a_code_of_later"}"#, 7),
            (400, "{}", 5),
            (401, "<html>", 6),
            (403, "", 6),
            (404, "", 3),
            (412, "", 4),
            (422, "", 4),
            (431, "", 5),
            (500, "", 1),
            (502, "", 8),
            (504, "", 8),
        ];
        for (status, body, code) in cases {
            assert_eq!(Refused::of(status, body.into()).exit_code(), code, "{status} {body}");
        }
    }

    #[test]
    fn what_is_no_id_is_bad_input() {
        assert_eq!(at(&["executions", ".."]).unwrap_err().exit_code(), 5);
    }

    #[test]
    fn a_document_is_told_in_a_line_without_control_characters() {
        let body = "{\"code\":\"x\",\"detail\":\"red \\u001b[31m line\\nnext\"}";
        let told = Refused::of(400, body.into()).to_string();
        assert_eq!(told, "red \u{fffd}[31m line\u{fffd}next (x)");
    }
}
