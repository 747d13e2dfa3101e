//! Bodies are opaque bytes with a media type: what goes in comes out byte for byte.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::error::{Code, Refusal};
use crate::id::ContentType;
use crate::limits;

/// Bytes and what they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Content {
    pub content_type: ContentType,
    pub bytes: Bytes,
}

impl Content {
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { content_type: ContentType::default(), bytes: bytes.into() }
    }

    pub fn json(bytes: impl Into<Bytes>) -> Self {
        Self { content_type: ContentType::json(), bytes: bytes.into() }
    }
}

/// Refuses a payload or result over the limit.
pub(crate) fn check_size(what: &'static str, bytes: &Bytes) -> Result<(), Refusal> {
    if bytes.len() <= limits::PAYLOAD_BYTES {
        return Ok(());
    }
    Err(Refusal::at(
        Code::PayloadTooLarge,
        what,
        format!("{what} has {} bytes, the limit is {}", bytes.len(), limits::PAYLOAD_BYTES),
    ))
}
