//! What a store keeps of a token.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

use super::hex::push_hex;

/// SHA-256 of a token's text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    pub(super) fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// 16 hex digits that stand for the token in lists and logs.
    pub fn fingerprint(&self) -> String {
        let mut text = String::with_capacity(16);
        push_hex(&mut text, &self.0[..8]);
        text
    }
}

impl ConstantTimeEq for TokenHash {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenHash({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_the_first_16_digits() {
        // SHA-256 of "abc", from the standard's examples.
        let hash = TokenHash::of("abc");
        assert_eq!(hash.fingerprint(), "ba7816bf8f01cfea");
        assert_eq!(format!("{hash:?}"), "TokenHash(ba7816bf8f01cfea)");
    }

    #[test]
    fn stored_as_32_bytes() {
        let hash = TokenHash::of("abc");
        let bytes = postcard::to_stdvec(&hash).unwrap();
        assert_eq!(bytes, hash.0);
        assert_eq!(postcard::from_bytes::<TokenHash>(&bytes), Ok(hash));
    }
}
