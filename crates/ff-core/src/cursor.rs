//! Cursors: opaque text that takes up a walk where it stopped. Each is bound to its question.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::error::{Code, Refusal};
use crate::limits;

const PREFIX: &str = "ffc1.";

/// Writes a position as a cursor of the question `scope`.
pub fn encode<T: Serialize>(scope: &str, position: &T) -> String {
    let bytes = postcard::to_stdvec(&(tag(scope), position)).unwrap_or_default();
    format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// Reads the position of a cursor that was made for the same question.
pub fn decode<T: DeserializeOwned>(scope: &str, text: &str) -> Result<T, Refusal> {
    decode_within(limits::CURSOR_BYTES, scope, text)
}

/// The same of a cursor that may be longer than others.
pub fn decode_within<T: DeserializeOwned>(
    bytes_most: usize,
    scope: &str,
    text: &str,
) -> Result<T, Refusal> {
    if text.len() > bytes_most {
        return Err(invalid("cursor is too long"));
    }
    let bytes = text
        .strip_prefix(PREFIX)
        .and_then(|body| BASE64_URL_SAFE_NO_PAD.decode(body).ok())
        .ok_or_else(|| invalid("cursor is malformed"))?;
    let ((found, position), rest): (([u8; 8], T), _) =
        postcard::take_from_bytes(&bytes).map_err(|_| invalid("cursor is malformed"))?;
    if !rest.is_empty() {
        return Err(invalid("cursor is malformed"));
    }
    if found != tag(scope) {
        return Err(invalid("cursor belongs to another query"));
    }
    Ok(position)
}

fn invalid(detail: &'static str) -> Refusal {
    Refusal::at(Code::InvalidCursor, "cursor", detail)
}

fn tag(scope: &str) -> [u8; 8] {
    let digest = Sha256::digest(scope.as_bytes());
    digest.first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_bound_to_its_question() {
        let cursor = encode("search lane=a", &(7_u64, 9_u64));
        assert_eq!(decode("search lane=a", &cursor), Ok((7_u64, 9_u64)));
        for (scope, text) in [
            ("search lane=b", cursor.as_str()),
            ("search lane=a", ""),
            ("search lane=a", "ffc1."),
            ("search lane=a", "ffc1.%%%"),
            ("search lane=a", &cursor[..cursor.len() - 3]),
            ("search lane=a", &"x".repeat(5000)),
        ] {
            let refusal = decode::<(u64, u64)>(scope, text).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidCursor, "{text}");
        }
    }
}
