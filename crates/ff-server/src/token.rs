//! Keys as text: the token of the configuration, and `ffk_<key_id>_<secret>`.

use std::fmt::{self, Write as _};

use ff_core::error::EngineError;
use ff_core::id::KeyId;
use ff_core::state::SecretHash;
use zeroize::Zeroizing;

const PREFIX: &str = "ffk_";
/// Bytes of randomness in an id, so that no two keys meet.
const ID_BYTES: usize = 10;
/// Bytes of randomness in a secret, two hex digits each.
const SECRET_BYTES: usize = 32;
/// Shortest token of the configuration.
pub(crate) const API_TOKEN_BYTES: usize = 16;

/// The token of the configuration: one key with every scope, namespace and lane. Only its hash is kept,
/// so nothing can print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiToken(SecretHash);

/// Why a text is no token. It does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApiTokenError {
    #[error("api_token has fewer than {API_TOKEN_BYTES} bytes")]
    TooShort,
    #[error("api_token holds something else than printable ASCII without spaces")]
    NotText,
}

impl ApiToken {
    /// A token travels in a header, so it is what may stand there.
    pub fn new(text: &str) -> Result<Self, ApiTokenError> {
        if text.len() < API_TOKEN_BYTES {
            return Err(ApiTokenError::TooShort);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ApiTokenError::NotText);
        }
        Ok(Self(SecretHash::of(text.as_bytes())))
    }

    pub(crate) fn is(&self, shown: &str) -> bool {
        self.0.is_of(shown.as_bytes())
    }
}

/// A key as a caller shows it. What does not have its form is none, and is looked for nowhere.
pub(crate) struct ShownKey<'a> {
    pub(crate) key_id: KeyId,
    secret: &'a str,
}

impl<'a> ShownKey<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let digits = secret.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if secret.len() != 2 * SECRET_BYTES || !digits {
            return None;
        }
        Some(Self { key_id: KeyId::new(id).ok()?, secret })
    }

    pub(crate) fn opens(&self, hash: &SecretHash) -> bool {
        hash.is_of(self.secret.as_bytes())
    }
}

/// A new key, before anybody has it.
pub(crate) struct NewKey {
    pub(crate) key_id: KeyId,
    secret: Zeroizing<String>,
}

impl NewKey {
    /// Made of the operating system's randomness.
    pub(crate) fn mint() -> Result<Self, EngineError> {
        let id = hex_of_random(ID_BYTES)?;
        let key_id = KeyId::new(&*id).map_err(|error| EngineError::bug(error.to_string()))?;
        Ok(Self { key_id, secret: hex_of_random(SECRET_BYTES)? })
    }

    pub(crate) fn hash(&self) -> SecretHash {
        SecretHash::of(self.secret.as_bytes())
    }

    /// The whole key, for the one answer that shows it.
    pub(crate) fn text(&self) -> String {
        format!("{PREFIX}{}_{}", self.key_id, *self.secret)
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

fn hex_of_random(bytes: usize) -> Result<Zeroizing<String>, EngineError> {
    let mut random = Zeroizing::new(vec![0; bytes]);
    getrandom::fill(&mut random)
        .map_err(|error| EngineError::unavailable(format!("no randomness: {error}")))?;
    // With the whole capacity at once, no copy is left behind by growing.
    let mut text = Zeroizing::new(String::with_capacity(2 * bytes));
    for byte in random.iter() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_is_read_back_and_no_two_are_alike() {
        let (made, other) = (NewKey::mint().unwrap(), NewKey::mint().unwrap());
        let text = made.text();
        let shown = ShownKey::parse(&text).unwrap();
        assert_eq!(shown.key_id, made.key_id);
        assert!(shown.opens(&made.hash()) && !shown.opens(&other.hash()));
        assert_ne!(made.key_id, other.key_id);
        assert!(!format!("{made:?}").contains(&**made.secret), "its secret is not printed");
    }

    #[test]
    fn what_is_no_key_is_told_by_its_form() {
        let secret = "0".repeat(64);
        for text in [
            "",
            "ffk_",
            "ffk_abcdefgh",
            &format!("ffk_abcdefgh_{}", "0".repeat(63)),
            &format!("ffk_abcdefgh_{}", "G".repeat(64)),
            &format!("ffk_abc_{secret}"),
            &format!("ffk_ABCDEFGH_{secret}"),
            &format!("FFK_abcdefgh_{secret}"),
            &format!("ffk_abcdefgh_{secret}_"),
        ] {
            assert!(ShownKey::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_token_is_long_enough_and_never_printed() {
        assert_eq!(ApiToken::new("0123456789abcde").unwrap_err(), ApiTokenError::TooShort);
        assert_eq!(ApiToken::new("0123456789 abcdef").unwrap_err(), ApiTokenError::NotText);
        let token = ApiToken::new("0123456789abcdef").unwrap();
        assert!(token.is("0123456789abcdef") && !token.is("0123456789abcdeF"));
        assert_eq!(format!("{token:?}"), "ApiToken(SecretHash(..))");
    }
}
