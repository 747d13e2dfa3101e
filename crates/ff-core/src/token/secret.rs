//! The secret bytes of a key.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::hex::byte_of_hex;
use crate::error::{Code, Refusal};
use crate::limits::{SECRET_BYTES_MAX, SECRET_BYTES_MIN};

/// 32 to 128 bytes that sign tokens. Serialized in clear: only for the stored keyring.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Refusal> {
        Self::checked(Zeroizing::new(bytes))
    }

    /// Two digits a byte, in either case.
    pub fn from_hex(text: &str) -> Result<Self, Refusal> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if !rest.is_empty() {
            return Err(invalid("the secret has an odd number of hex digits"));
        }
        check_length(pairs.len())?;
        // With the whole capacity at once, no copy is left behind by growing.
        let mut bytes = Zeroizing::new(Vec::with_capacity(pairs.len()));
        for &[high, low] in pairs {
            let byte = byte_of_hex(high, low);
            bytes.push(byte.ok_or_else(|| invalid("the secret holds more than hex digits"))?);
        }
        Self::checked(bytes)
    }

    fn checked(bytes: Zeroizing<Vec<u8>>) -> Result<Self, Refusal> {
        check_length(bytes.len())?;
        Ok(Self(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

fn check_length(bytes: usize) -> Result<(), Refusal> {
    if (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    Err(Refusal::at(
        Code::InvalidSecretHex,
        "secret_hex",
        format!(
            "the secret has {bytes} bytes, allowed are {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX}"
        ),
    ))
}

fn invalid(detail: &'static str) -> Refusal {
    Refusal::at(Code::InvalidSecretHex, "secret_hex", detail)
}

/// In constant time for secrets of one length.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_slice().ct_eq(other.0.as_slice()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Zeroizing::new(Vec::deserialize(deserializer)?);
        Self::checked(bytes).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_of_32_to_128_bytes_is_a_secret() {
        for bytes in [32, 33, 64, 128] {
            let secret = Secret::from_hex(&"aB".repeat(bytes)).unwrap();
            assert_eq!(secret, Secret::from_bytes(vec![0xab; bytes]).unwrap());
        }
    }

    #[test]
    fn other_text_is_refused_and_not_told() {
        let cases = [
            String::new(),
            "ab".repeat(31),
            "ab".repeat(129),
            "ab".repeat(32) + "c",
            "ab".repeat(31) + "xy",
            "ab".repeat(32) + "\n",
            "é".repeat(32),
            format!("0x{}", "ab".repeat(32)),
        ];
        for text in cases {
            let refusal = Secret::from_hex(&text).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidSecretHex, "{text:?}");
            assert!(!refusal.detail.contains("abab"), "{refusal}");
        }
    }

    #[test]
    fn secrets_of_other_bytes_or_length_differ() {
        let secret = Secret::from_bytes(vec![7; 32]).unwrap();
        assert_eq!(secret, secret.clone());
        let mut other = vec![7; 32];
        other[31] = 8;
        assert_ne!(secret, Secret::from_bytes(other).unwrap());
        assert_ne!(secret, Secret::from_bytes(vec![7; 33]).unwrap());
    }

    #[test]
    fn the_stored_form_is_checked_when_read() {
        let secret = Secret::from_bytes((0..40).collect()).unwrap();
        let bytes = postcard::to_stdvec(&secret).unwrap();
        assert_eq!(bytes.len(), 41, "length and bytes, nothing else");
        assert_eq!(postcard::from_bytes::<Secret>(&bytes), Ok(secret));
        let short = postcard::to_stdvec(&vec![1_u8; 31]).unwrap();
        assert!(postcard::from_bytes::<Secret>(&short).is_err());
    }

    #[test]
    fn debug_tells_nothing() {
        let secret = Secret::from_hex(&"5e".repeat(32)).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(redacted)");
    }
}
