//! A JSON document as a tree that forgets nothing but spelling: numbers keep their text, members
//! their order.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::Refusal;
use crate::limits;

/// A JSON value.
pub(super) enum Node {
    Null,
    /// JSON text of a string, a number or a boolean. Equal strings have equal texts.
    Scalar(String),
    Array(Vec<Self>),
    Object(Members),
}

/// The members of an object. Names are JSON text, as strings are.
#[derive(Default)]
pub(super) struct Members {
    by_name: BTreeMap<String, Member>,
    /// Rank of the next new member. Ranks rise and are not given again.
    next: usize,
}

struct Member {
    rank: usize,
    value: Node,
}

impl Members {
    /// The value of a member, to be written; a new member stands at the end and is null.
    pub(super) fn slot(&mut self, name: String) -> &mut Node {
        let rank = self.next;
        self.next += 1;
        &mut self.by_name.entry(name).or_insert(Member { rank, value: Node::Null }).value
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// Names and values in the order of the document.
    pub(super) fn in_order(self) -> impl Iterator<Item = (String, Node)> {
        let mut members: Vec<_> = self.by_name.into_iter().collect();
        members.sort_unstable_by_key(|(_, member)| member.rank);
        members.into_iter().map(|(name, member)| (name, member.value))
    }
}

impl Node {
    /// Reads JSON text. Of two members with one name the last wins.
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        // This looks at the whole text, without recursion, so that errors name their true place
        // and only strings can still be at fault below.
        let raw: &RawValue = serde_json::from_str(text)
            .map_err(|error| Refusal::invalid("payload", format!("not JSON: {error}")))?;
        Self::read(raw, 0)
    }

    /// Reads a value that stands inside `above` objects and arrays.
    fn read(raw: &RawValue, above: usize) -> Result<Self, Refusal> {
        let text = raw.get();
        // Recursion ends here, however deep the text is.
        if text.starts_with(['{', '[']) && above == limits::SUMMARY_DEPTH {
            let detail = format!("nested deeper than the limit of {}", limits::SUMMARY_DEPTH);
            return Err(Refusal::invalid("payload", detail));
        }
        match text.as_bytes().first() {
            Some(b'{') => {
                let Pairs(pairs) = parse_valid(text)?;
                let mut members = Members::default();
                for (name, value) in pairs {
                    *members.slot(quoted(name)) = Self::read(value, above + 1)?;
                }
                Ok(Self::Object(members))
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = parse_valid(text)?;
                let read = items.into_iter().map(|item| Self::read(item, above + 1));
                read.collect::<Result<_, _>>().map(Self::Array)
            }
            Some(b'"') => Ok(Self::Scalar(quoted(parse_valid(text)?))),
            Some(b'n') => Ok(Self::Null),
            _ => Ok(Self::Scalar(text.to_owned())),
        }
    }

    /// Appends the value as compact JSON.
    pub(super) fn write(self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Scalar(text) => out.push_str(&text),
            Self::Array(items) => {
                out.push('[');
                for (index, item) in items.into_iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (name, value)) in members.in_order().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    out.push_str(&name);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// JSON text of a string; the one spelling used here.
pub(super) fn quoted(text: String) -> String {
    Value::String(text).to_string()
}

/// Reads text whose grammar is known to be right. What can be wrong still: JSON can write half of
/// a surrogate pair, which no Unicode string holds.
fn parse_valid<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Refusal> {
    serde_json::from_str(text)
        .map_err(|_| Refusal::invalid("payload", "a string has an unpaired surrogate"))
}

/// The members of an object as they are written, repeated names included.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;

        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(PairsVisitor)
    }
}
