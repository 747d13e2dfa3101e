//! The summary of an attempt: one JSON document, changed by merge patches of RFC 7396.
//!
//! Owned here: what a patch does to a document, and how large and deep a document may be. Not owned:
//! versions, and who may patch.

mod node;

use crate::error::{Code, Refusal};
use crate::limits;
use node::{Members, Node, quoted};

/// As the value of an object's member in a patch, outside arrays: store a null. A plain null there
/// deletes the member.
pub const NULL_MARKER: &str = "__ff_null__";

/// A JSON document as compact text, within the limits. Numbers stand as they were written, members
/// in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary(String);

impl Default for Summary {
    fn default() -> Self {
        Self("{}".to_owned())
    }
}

impl Summary {
    /// Reads a document. Its nulls and markers are values like any other.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        Self::of(Node::parse(text)?)
    }

    /// A document that was stored.
    pub(crate) fn from_stored(bytes: &[u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Refusal::new(Code::Corruption, format!("a summary is not UTF-8: {error}"))
        })?;
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The document after `patch`.
    pub fn apply(&self, patch: &[u8]) -> Result<Self, Refusal> {
        let patch = std::str::from_utf8(patch)
            .map_err(|error| Refusal::invalid("payload", format!("not UTF-8: {error}")))?;
        let patch = Node::parse(patch)?;
        // No part sinks deeper by a merge, so the depth of both sides bounds that of the outcome.
        Self::of(merge(Node::parse(&self.0)?, patch, &quoted(NULL_MARKER.to_owned())))
    }

    fn of(document: Node) -> Result<Self, Refusal> {
        let mut text = String::new();
        document.write(&mut text);
        if text.len() <= limits::SUMMARY_BYTES {
            return Ok(Self(text));
        }
        let (bytes, limit) = (text.len(), limits::SUMMARY_BYTES);
        Err(Refusal::invalid("payload", format!("summary of {bytes} bytes, the limit is {limit}")))
    }
}

/// `MergePatch` of RFC 7396. An absent target is null, which like all that is no object counts as
/// an empty one.
fn merge(target: Node, patch: Node, marker: &str) -> Node {
    let Node::Object(patch) = patch else { return patch };
    let mut members = match target {
        Node::Object(members) => members,
        _ => Members::default(),
    };
    for (name, value) in patch.in_order() {
        match value {
            Node::Null => members.remove(&name),
            Node::Scalar(text) if text == marker => *members.slot(name) = Node::Null,
            value => {
                let slot = members.slot(name);
                *slot = merge(std::mem::replace(slot, Node::Null), value, marker);
            }
        }
    }
    Node::Object(members)
}

#[cfg(test)]
mod tests;
