//! Tags: a small map of text that users search by.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Code, Refusal};
use crate::limits;

/// Tags of an execution. Shared, since most operations leave them alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tags(Arc<BTreeMap<String, String>>);

impl Tags {
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, Refusal> {
        let map: BTreeMap<_, _> = pairs.into_iter().collect();
        for (key, value) in &map {
            check_pair(key, value)?;
        }
        check_count(map.len())?;
        Ok(Self(Arc::new(map)))
    }

    /// These tags with `pairs` put over them.
    pub fn merged(&self, pairs: &Self) -> Result<Self, Refusal> {
        let mut map = BTreeMap::clone(&self.0);
        map.extend(pairs.0.iter().map(|(key, value)| (key.clone(), value.clone())));
        check_count(map.len())?;
        Ok(Self(Arc::new(map)))
    }

    /// Point writes on existing things need the form `<caller>.<field>`, so that callers do not
    /// overwrite each other.
    pub(crate) fn check_point_write(&self) -> Result<(), Refusal> {
        if self.is_empty() {
            return Err(Refusal::invalid("tags", "no tag is given"));
        }
        match self.0.keys().find(|key| !is_owned_key(key)) {
            None => Ok(()),
            Some(key) => Err(Refusal::at(
                Code::InvalidTagKey,
                "tags",
                format!("tag key {key:?} must have the form <caller>.<field> in lower case"),
            )),
        }
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn check_pair(key: &str, value: &str) -> Result<(), Refusal> {
    if key.is_empty() || key.len() > limits::TAG_KEY_BYTES || key.chars().any(char::is_control) {
        return Err(Refusal::invalid(
            "tags",
            format!("tag keys have 1 to {} bytes and no control characters", limits::TAG_KEY_BYTES),
        ));
    }
    if value.len() > limits::TAG_VALUE_BYTES {
        return Err(Refusal::invalid(
            "tags",
            format!("value of tag {key:?} has over {} bytes", limits::TAG_VALUE_BYTES),
        ));
    }
    Ok(())
}

fn check_count(count: usize) -> Result<(), Refusal> {
    if count <= limits::TAGS {
        Ok(())
    } else {
        Err(Refusal::invalid("tags", format!("{count} tags, the limit is {}", limits::TAGS)))
    }
}

/// `^[a-z][a-z0-9_]*\.[a-z0-9_][a-z0-9_.]*$`
fn is_owned_key(key: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let Some((caller, field)) = key.split_once('.') else { return false };
    caller.starts_with(|c: char| c.is_ascii_lowercase())
        && caller.chars().all(word)
        && field.starts_with(word)
        && field.chars().all(|c| word(c) || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_keys_follow_their_pattern() {
        for good in ["a.b", "billing.cost_centre", "a1_.0.x", "a.b.", "a._"] {
            assert!(is_owned_key(good), "{good}");
        }
        for bad in ["", "a", "a.", ".b", "A.b", "1a.b", "a.B", "a-b.c", "a..b", "a.b c"] {
            assert!(!is_owned_key(bad), "{bad}");
        }
    }

    #[test]
    fn limits_hold() {
        let pair = |key: &str, value: &str| Tags::new([(key.to_owned(), value.to_owned())]);
        assert!(pair("k", &"v".repeat(1024)).is_ok());
        assert!(pair("k", &"v".repeat(1025)).is_err());
        assert!(pair("", "v").is_err());
        assert!(pair("a\nb", "v").is_err());
        assert!(pair(&"k".repeat(129), "v").is_err());
        let many = |n: usize| Tags::new((0..n).map(|n| (n.to_string(), String::new())));
        assert!(many(64).is_ok());
        assert!(many(65).is_err());
        assert!(many(64).unwrap().merged(&many(1).unwrap()).is_ok());
        assert!(many(64).unwrap().merged(&pair("x", "").unwrap()).is_err());
    }
}
