//! The text form of a partition: where an execution, a budget or a quota policy stands.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::execution::parse_partition;

/// `{fp:N}`, `{b:M}` or `{q:K}`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionKey {
    pub family: PartitionFamily,
    pub index: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PartitionFamily {
    /// Executions and flows.
    Flow,
    Budget,
    Quota,
}

/// Why a text is not a partition key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PartitionKeyParseError {
    #[error("a partition key stands in braces, as {{fp:7}}")]
    MissingBraces,
    #[error("a partition key is a family, a colon and a number")]
    MalformedBody,
    #[error("the family of a partition key is fp, b or q")]
    UnknownFamilyPrefix,
    #[error("the number of a partition key is not a canonical number up to 4095")]
    InvalidIndex,
}

impl PartitionFamily {
    pub const ALL: [Self; 3] = [Self::Flow, Self::Budget, Self::Quota];

    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Flow => "fp",
            Self::Budget => "b",
            Self::Quota => "q",
        }
    }
}

impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}:{}}}", self.family.prefix(), self.index)
    }
}

impl fmt::Debug for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PartitionKey {
    type Err = PartitionKeyParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let body = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let body = body.ok_or(PartitionKeyParseError::MissingBraces)?;
        let (prefix, number) = body.split_once(':').ok_or(PartitionKeyParseError::MalformedBody)?;
        let known = PartitionFamily::ALL.into_iter().find(|family| family.prefix() == prefix);
        let family = known.ok_or(PartitionKeyParseError::UnknownFamilyPrefix)?;
        let index = parse_partition(number).ok_or(PartitionKeyParseError::InvalidIndex)?;
        Ok(Self { family, index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_keys_name_what_is_wrong() {
        use PartitionKeyParseError::{
            InvalidIndex, MalformedBody, MissingBraces, UnknownFamilyPrefix,
        };
        for (text, expected) in [
            ("", MissingBraces),
            ("fp:7", MissingBraces),
            ("{fp:7", MissingBraces),
            ("{fp:7}:x", MissingBraces),
            ("{}", MalformedBody),
            ("{fp7}", MalformedBody),
            ("{x:7}", UnknownFamilyPrefix),
            ("{:7}", UnknownFamilyPrefix),
            ("{fp:}", InvalidIndex),
            ("{b:07}", InvalidIndex),
            ("{q:+7}", InvalidIndex),
            ("{fp:4096}", InvalidIndex),
        ] {
            assert_eq!(text.parse::<PartitionKey>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_key_reads_as_it_is_written() {
        for text in ["{fp:0}", "{fp:4095}", "{b:15}", "{q:3}"] {
            assert_eq!(text.parse::<PartitionKey>().unwrap().to_string(), text);
        }
    }
}
