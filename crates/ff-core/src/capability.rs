//! Capabilities: tokens that an execution requires and a worker offers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::error::{Code, Refusal};
use crate::limits;

/// A sorted set of tokens. An execution's class is the set it requires.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Capabilities(Arc<str>);

impl Capabilities {
    /// Sorts, removes repetitions and checks every token and the limits of the whole.
    pub fn new<T: AsRef<str>>(tokens: impl IntoIterator<Item = T>) -> Result<Self, Refusal> {
        let tokens: Vec<T> = tokens.into_iter().collect();
        let mut sorted: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        for token in &sorted {
            check_token(token)?;
        }
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() > limits::CAPS_MAX_TOKENS {
            return Err(invalid("too_many_tokens"));
        }
        let csv = sorted.join(",");
        if csv.len() > limits::CAPS_MAX_BYTES {
            return Err(invalid("too_many_bytes"));
        }
        Ok(Self(csv.into()))
    }

    /// Reads a list of tokens.
    pub fn from_json(json: &Value) -> Result<Self, Refusal> {
        let tokens = json.as_array().ok_or_else(|| invalid("required:not_array"))?;
        let tokens: Option<Vec<&str>> = tokens.iter().map(Value::as_str).collect();
        Self::new(tokens.ok_or_else(|| invalid("non_string_token"))?)
    }

    /// Reads what [`Capabilities::as_csv`] wrote.
    pub fn from_csv(csv: &str) -> Result<Self, Refusal> {
        if csv.is_empty() { Ok(Self::default()) } else { Self::new(csv.split(',')) }
    }

    pub fn as_csv(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn tokens(&self) -> impl Iterator<Item = &str> {
        self.0.split(',').filter(|token| !token.is_empty())
    }

    /// Whether a worker with this set can run what requires `required`.
    pub fn covers(&self, required: &Self) -> bool {
        self.missing(required).next().is_none()
    }

    /// The tokens of `required` that this set lacks. Both are sorted, so one walk answers.
    pub fn missing<'a>(&'a self, required: &'a Self) -> impl Iterator<Item = &'a str> {
        let mut offered = self.tokens().peekable();
        required.tokens().filter(move |token| {
            while offered.next_if(|have| have < token).is_some() {}
            offered.next_if(|have| have == token).is_none()
        })
    }

    /// The same as a set.
    #[must_use]
    pub fn lacking(&self, required: &Self) -> Self {
        Self(self.missing(required).collect::<Vec<_>>().join(",").into())
    }

    /// Eight hex digits (FNV-1a) that stand for the set in logs.
    pub fn digest(&self) -> String {
        let hash = self
            .0
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, b| (hash ^ u32::from(b)).wrapping_mul(0x0100_0193));
        format!("{hash:08x}")
    }
}

fn check_token(token: &str) -> Result<(), Refusal> {
    if token.is_empty() {
        Err(invalid("empty_token"))
    } else if token.contains(',') {
        Err(invalid("comma_in_token"))
    } else if token.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Err(invalid("control_or_whitespace"))
    } else {
        Ok(())
    }
}

fn invalid(detail: &'static str) -> Refusal {
    Refusal::at(Code::InvalidCapabilities, "capabilities", detail)
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.0)
    }
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_seq(self.tokens())
        } else {
            serializer.serialize_str(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        if deserializer.is_human_readable() {
            let tokens = Vec::<String>::deserialize(deserializer)?;
            Self::new(tokens).map_err(D::Error::custom)
        } else {
            Self::from_csv(&String::deserialize(deserializer)?).map_err(D::Error::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(tokens: &[&str]) -> Capabilities {
        Capabilities::new(tokens).unwrap()
    }

    #[test]
    fn covers_is_superset() {
        let offered = set(&["gpu", "cuda12", "eu"]);
        assert!(offered.covers(&set(&[])));
        assert!(offered.covers(&set(&["eu", "gpu"])));
        assert!(!offered.covers(&set(&["gpu", "us"])));
        assert_eq!(offered.missing(&set(&["arm", "gpu", "us"])).collect::<Vec<_>>(), ["arm", "us"]);
        assert!(!set(&[]).covers(&set(&["x"])));
    }

    #[test]
    fn bad_sets_are_named() {
        let detail = |tokens: Vec<String>| Capabilities::new(tokens).unwrap_err().detail;
        assert_eq!(detail(vec![String::new()]), "empty_token");
        assert_eq!(detail(vec!["a,b".into()]), "comma_in_token");
        assert_eq!(detail(vec!["a b".into()]), "control_or_whitespace");
        assert_eq!(detail(vec!["a\u{7}".into()]), "control_or_whitespace");
        assert_eq!(detail((0..257).map(|n| n.to_string()).collect()), "too_many_tokens");
        assert_eq!(
            detail((0..5).map(|n| format!("{n}{}", "x".repeat(900))).collect()),
            "too_many_bytes"
        );
    }

    #[test]
    fn repetitions_do_not_count() {
        assert_eq!(set(&["b", "a", "b"]).as_csv(), "a,b");
        assert!(Capabilities::new(vec!["same"; 1000]).is_ok());
    }
}
