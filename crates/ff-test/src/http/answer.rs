//! What a server answered.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// An answer with its body read.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct SseEvent {
    pub id: Option<String>,
    pub event: String,
    pub data: Value,
}

pub fn base64_of(bytes: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// The bytes of a field in base64.
#[track_caller]
pub fn bytes_of(value: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(value.as_str().expect("base64 text")).expect("base64")
}

/// A body with fields put over those that it has.
pub fn merged(mut body: Value, fields: Value) -> Value {
    if let (Value::Object(body), Value::Object(fields)) = (&mut body, fields) {
        body.extend(fields);
    }
    body
}

impl Answer {
    /// Reads the body of an answer whose head is here.
    pub async fn of(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.expect("a whole body").to_vec();
        Self { status, headers, bytes }
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// The body of an answer that must have this status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        let text = String::from_utf8_lossy(&self.bytes);
        assert_eq!(self.status, status, "{text}");
        self.json()
    }

    /// The problem of an answer that must be one.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        let problem = self.expect(status);
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("/problems/{code}"));
        for field in ["title", "detail", "class", "trace_id"] {
            assert!(problem[field].is_string(), "{field} in {problem}");
        }
        assert!(problem["retryable"].is_boolean(), "{problem}");
        if status == 400 {
            let first = &problem["errors"][0];
            assert!(first["pointer"].is_string() && first["message"].is_string(), "{problem}");
        }
        if matches!(status, 429 | 503) {
            assert!(!self.header("retry-after").is_empty(), "{problem}");
        }
        problem
    }

    /// `invalid_input` that points at a place.
    #[track_caller]
    pub fn invalid(&self, pointer: &str) {
        let problem = self.problem(400, "invalid_input");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
}
