//! Identifiers that are text: validated once, at construction, and cheap to clone.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Code, Refusal};
use crate::limits;

/// Why a text is not an identifier of its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("{what} is empty")]
    Empty { what: &'static str },
    #[error("{what} has {bytes} bytes, the limit is {limit}")]
    TooLong { what: &'static str, bytes: usize, limit: usize },
    #[error("{what} holds a character that is not allowed: {rule}")]
    BadCharacter { what: &'static str, rule: &'static str },
}

/// Why a text is not a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LaneIdError {
    #[error("lane is empty")]
    Empty,
    #[error("lane has more than {} bytes", limits::LANE_BYTES)]
    TooLong,
    #[error("lane holds a character outside printable ASCII")]
    NonPrintable,
}

fn check(
    what: &'static str,
    text: &str,
    limit: usize,
    allowed: impl Fn(char) -> bool,
    rule: &'static str,
) -> Result<(), TextError> {
    if text.is_empty() {
        Err(TextError::Empty { what })
    } else if text.len() > limit {
        Err(TextError::TooLong { what, bytes: text.len(), limit })
    } else if text.chars().all(allowed) {
        Ok(())
    } else {
        Err(TextError::BadCharacter { what, rule })
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $error:ty, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl AsRef<str>) -> Result<Self, $error> {
                let check: fn(&str) -> Result<(), $error> = $check;
                check(text.as_ref())?;
                Ok(Self(Arc::from(text.as_ref())))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Arc::<str>::deserialize(deserializer)?;
                let check: fn(&str) -> Result<(), $error> = $check;
                check(&text).map_err(serde::de::Error::custom)?;
                Ok(Self(text))
            }
        }
    };
}

text_id! {
    /// Tenant boundary: `[a-z0-9][a-z0-9._-]{0,62}`.
    Namespace, TextError, |text| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let rule = "lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit";
        check("namespace", text, limits::NAMESPACE_BYTES, |c| plain(c) || "._-".contains(c), rule)?;
        if text.starts_with(plain) {
            Ok(())
        } else {
            Err(TextError::BadCharacter { what: "namespace", rule })
        }
    }
}

text_id! {
    /// The public part of an API key: `[a-z0-9]{8,32}`.
    KeyId, TextError, |text| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let rule = "8 to 32 lower-case letters and digits";
        check("key id", text, limits::KEY_ID_BYTES, plain, rule)?;
        if text.len() < limits::KEY_ID_BYTES_LEAST {
            return Err(TextError::BadCharacter { what: "key id", rule });
        }
        Ok(())
    }
}

text_id! {
    /// A named queue inside a namespace; every valid name works without configuration.
    LaneId, LaneIdError, |text| {
        if text.is_empty() {
            Err(LaneIdError::Empty)
        } else if text.len() > limits::LANE_BYTES {
            Err(LaneIdError::TooLong)
        } else if text.bytes().all(|b| (0x20..=0x7e).contains(&b)) {
            Ok(())
        } else {
            Err(LaneIdError::NonPrintable)
        }
    }
}

text_id! {
    /// What a worker chooses its handler by.
    Kind, TextError, |text| {
        check("kind", text, limits::KIND_BYTES, |c| !c.is_control(), "no control characters")
    }
}

text_id! {
    /// Names a member inside its flow.
    MemberName, TextError, |text| {
        check("name", text, limits::MEMBER_NAME_BYTES, |c| !c.is_control(), "no control characters")
    }
}

text_id! {
    /// A pool of worker processes.
    WorkerId, TextError, |text| worker_text("worker_id", text)
}

text_id! {
    /// One worker process; the owner of leases.
    WorkerInstanceId, TextError, |text| worker_text("worker_instance_id", text)
}

text_id! {
    /// Names a submit so that repeating it makes nothing new.
    IdempotencyKey, TextError, |text| {
        let limit = limits::IDEMPOTENCY_KEY_BYTES;
        check("idempotency_key", text, limit, |c| !c.is_control(), "no control characters")
    }
}

text_id! {
    /// Media type of a body.
    ContentType, TextError, |text| {
        let limit = limits::CONTENT_TYPE_BYTES;
        check("content_type", text, limit, |c| !c.is_control(), "no control characters")
    }
}

text_id! {
    /// Name of a waitpoint inside its execution.
    WaitpointKey, TextError, |text| {
        let limit = limits::WAITPOINT_KEY_BYTES;
        check("waitpoint_key", text, limit, |c| !c.is_control(), "no control characters")
    }
}

text_id! {
    /// What a signal is about; conditions match it.
    SignalName, TextError, |text| {
        let limit = limits::SIGNAL_NAME_BYTES;
        check("name", text, limit, |c| !c.is_control(), "no control characters")
    }
}

text_id! {
    /// What a budget counts: `[a-z][a-z0-9_.]{0,63}`.
    Dimension, TextError, |text| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
        let rule = "lower-case letters, digits, '_' and '.', beginning with a letter";
        check("dimension", text, limits::DIMENSION_BYTES, allowed, rule)?;
        if text.starts_with(|c: char| c.is_ascii_lowercase()) {
            Ok(())
        } else {
            Err(TextError::BadCharacter { what: "dimension", rule })
        }
    }
}

text_id! {
    /// Names a key of the keyring that signs waitpoint tokens: `[A-Za-z0-9_-]{1,64}`. It holds no
    /// `:`, so a token's text has one reading.
    Kid, TextError, |text| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        check("kid", text, limits::KID_BYTES, allowed, "letters, digits, '_' and '-'")
    }
}

fn worker_text(what: &'static str, text: &str) -> Result<(), TextError> {
    let allowed = |c: char| !c.is_whitespace() && !c.is_control();
    check(what, text, limits::WORKER_BYTES, allowed, "no whitespace or control characters")
}

impl Namespace {
    /// The default one, for what is of no namespace.
    pub(crate) fn any() -> &'static Self {
        static DEFAULT: LazyLock<Namespace> = LazyLock::new(Namespace::default);
        &DEFAULT
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self(Arc::from("default"))
    }
}

impl Default for ContentType {
    fn default() -> Self {
        Self(Arc::from("application/octet-stream"))
    }
}

impl ContentType {
    pub fn json() -> Self {
        Self(Arc::from("application/json"))
    }
}

impl Kid {
    /// The kid of the secret that a store's first boot writes.
    pub fn first() -> Self {
        Self(Arc::from("k1"))
    }

    /// A caller's kid, or `invalid_kid`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        Self::new(text).map_err(|error| Refusal::at(Code::InvalidKid, "kid", error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_follow_their_pattern() {
        for good in ["a", "default", "0-x_y.z", &"a".repeat(63)] {
            assert!(Namespace::new(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "-a", ".a", "a b", "a{b}", "ä", &"a".repeat(64)] {
            assert!(Namespace::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lanes_are_printable_ascii() {
        assert!(LaneId::new("a lane/with {braces}:~").is_ok());
        assert_eq!(LaneId::new(""), Err(LaneIdError::Empty));
        assert_eq!(LaneId::new("x".repeat(65)), Err(LaneIdError::TooLong));
        assert_eq!(LaneId::new("a\nb"), Err(LaneIdError::NonPrintable));
        assert_eq!(LaneId::new("é"), Err(LaneIdError::NonPrintable));
    }

    #[test]
    fn worker_names_hold_no_space() {
        assert!(WorkerId::new("gpu-pool/ü:1").is_ok());
        for bad in ["", "a b", "a\tb", "a\u{0}b", &"x".repeat(257)] {
            assert!(WorkerInstanceId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn dimensions_follow_their_pattern() {
        for good in ["a", "input_tokens", "usd.cents", "a1", &"x".repeat(64)] {
            assert!(Dimension::new(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "1a", "_a", ".a", "a-b", "a b", "ä", &"x".repeat(65)] {
            assert!(Dimension::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn kids_follow_their_pattern() {
        for good in ["k1", "K_2-b", "-", &"x".repeat(64)] {
            assert_eq!(Kid::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a:b", "a b", "a.b", "ä", "k1\n", &"x".repeat(65)] {
            assert_eq!(Kid::parse(bad).unwrap_err().code, Code::InvalidKid, "{bad:?}");
        }
        assert_eq!(Kid::parse(&Kid::first()), Ok(Kid::first()));
    }
}
