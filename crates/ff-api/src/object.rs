//! A request's fields, taken apart by name before any form reads them.
//!
//! A body is a JSON object; the fields of a query string stand for the same object in text. Fields
//! that every route shares are taken out first, and what is left must be exactly the form's: an
//! unknown field is refused.

use std::fmt;

use ff_core::error::Code;
use serde::de::value::{Error as TextError, MapDeserializer};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_path_to_error::{Path, Segment};

use crate::problem::FieldError;
use crate::text::Text;

/// Deepest nesting of a document.
pub const DEPTH: usize = 64;

/// What is wrong with a request, field by field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(pub Vec<FieldError>);

/// The fields of a request by name.
#[derive(Debug, Clone)]
pub enum Object {
    /// Of a body: each value is the exact text sent.
    Body(Vec<(String, Box<RawValue>)>),
    /// Of a query string: each name with its values in order.
    Query(Vec<(String, Vec<String>)>),
}

impl Invalid {
    /// `invalid_input` of one field, by its name.
    pub fn at(field: &str, message: impl fmt::Display) -> Self {
        Self(vec![FieldError::new(format!("/{field}"), Code::InvalidInput, message)])
    }

    /// The whole document is wrong.
    pub fn document(message: impl fmt::Display) -> Self {
        Self(vec![FieldError::new(String::new(), Code::InvalidInput, message)])
    }
}

impl Object {
    /// Reads a body. An empty one is an object without fields.
    pub fn from_body(body: &[u8]) -> Result<Self, Invalid> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::Body(Vec::new()));
        }
        check_depth(body)?;
        let fields: Fields = serde_json::from_slice(body).map_err(Invalid::document)?;
        let mut names: Vec<_> = fields.0.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Invalid::at(&escaped(pair[0]), "the field is given twice")),
            None => Ok(Self::Body(fields.0)),
        }
    }

    /// Takes the pairs of a query string.
    pub fn from_query(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut fields: Vec<(String, Vec<String>)> = Vec::new();
        for (name, value) in pairs {
            match fields.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => fields.push((name, vec![value])),
            }
        }
        Self::Query(fields)
    }

    /// Takes one field out and reads it.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Invalid> {
        match self {
            Self::Body(fields) => {
                let Some(at) = fields.iter().position(|(known, _)| known == name) else {
                    return Ok(None);
                };
                let (_, value) = fields.remove(at);
                serde_path_to_error::deserialize::<_, Option<T>>(&*value)
                    .map_err(|error| invalid(name, error.path(), error.inner(), true))
            }
            Self::Query(fields) => {
                let Some(at) = fields.iter().position(|(known, _)| known == name) else {
                    return Ok(None);
                };
                let (_, values) = fields.remove(at);
                T::deserialize(Text(&values))
                    .map(Some)
                    .map_err(|error| Invalid(vec![FieldError::parameter(name, error)]))
            }
        }
    }

    /// Another name of a field becomes its name; both together are refused.
    pub fn rename(&mut self, alias: &str, name: &str) -> Result<(), Invalid> {
        match self {
            Self::Body(fields) => rename(fields, alias, name),
            Self::Query(fields) => rename(fields, alias, name),
        }
    }

    /// Whether a field is there.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::Body(fields) => fields.iter().any(|(known, _)| known == name),
            Self::Query(fields) => fields.iter().any(|(known, _)| known == name),
        }
    }

    /// Reads all that is left as one form.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Invalid> {
        match self {
            Self::Body(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.as_str(), &**value));
                serde_path_to_error::deserialize(MapDeserializer::new(fields)).map_err(|error| {
                    let error: serde_path_to_error::Error<serde_json::Error> = error;
                    invalid("", error.path(), error.inner(), true)
                })
            }
            Self::Query(fields) => {
                let fields = fields.iter().map(|(name, values)| (name.as_str(), Text(values)));
                serde_path_to_error::deserialize(MapDeserializer::new(fields)).map_err(|error| {
                    let error: serde_path_to_error::Error<TextError> = error;
                    invalid("", error.path(), error.inner(), false)
                })
            }
        }
    }
}

fn rename<V>(fields: &mut [(String, V)], alias: &str, name: &str) -> Result<(), Invalid> {
    let known = fields.iter().any(|(known, _)| known == name);
    match fields.iter_mut().find(|(known, _)| known == alias) {
        None => Ok(()),
        Some(_) if known => Err(Invalid::at(alias, format!("{alias} is another name of {name}"))),
        Some((field, _)) => {
            name.clone_into(field);
            Ok(())
        }
    }
}

/// An error of a form, with the place of the field at fault. Serde tells of fields that are missing
/// or unknown at their parent, and by name in the message only.
fn invalid(field: &str, path: &Path, error: &dyn fmt::Display, pointer: bool) -> Invalid {
    let message = error.to_string();
    let mut place: Vec<String> = path.iter().filter_map(segment).collect();
    if !field.is_empty() {
        place.insert(0, field.to_owned());
    }
    if let Some(name) = named(&message)
        && place.last().map(String::as_str) != Some(name)
    {
        place.push(name.to_owned());
    }
    let message = message.split(" at line ").next().unwrap_or(&message);
    let place: Vec<String> = place.iter().map(|name| escaped(name)).collect();
    let place = place.join("/");
    let place = if pointer && !place.is_empty() { format!("/{place}") } else { place };
    Invalid(vec![FieldError::new(place, Code::InvalidInput, message)])
}

fn segment(segment: &Segment) -> Option<String> {
    match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    }
}

fn named(message: &str) -> Option<&str> {
    let rest = ["missing field `", "unknown field `"]
        .into_iter()
        .find_map(|words| message.strip_prefix(words))?;
    rest.split('`').next()
}

/// A name inside a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Refuses what is nested too deep before anything walks down it.
pub fn check_depth(document: &[u8]) -> Result<(), Invalid> {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in document {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH {
            return Err(Invalid::document(format!("the document is nested over {DEPTH} deep")));
        }
    }
    Ok(())
}

/// The fields of an object in their order.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Form {
        #[serde(rename = "lane")]
        _lane: String,
        #[serde(rename = "items", default)]
        _items: Vec<u32>,
    }

    fn pointer(body: &str) -> String {
        let read = Object::from_body(body.as_bytes()).and_then(|object| object.read::<Form>());
        read.unwrap_err().0.remove(0).pointer
    }

    #[test]
    fn errors_point_at_the_field() {
        for (body, expected) in [
            ("{}", "/lane"),
            (r#"{"lane":1}"#, "/lane"),
            (r#"{"lane":"a","other":1}"#, "/other"),
            (r#"{"lane":"a","items":[1,"x"]}"#, "/items/1"),
            (r#"{"lane":"a","lane":"b"}"#, "/lane"),
            ("[]", ""),
            ("{", ""),
        ] {
            assert_eq!(pointer(body), expected, "{body}");
        }
    }

    #[test]
    fn parameters_are_named_without_a_slash() {
        let query = |text: &str| {
            let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
            let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
            Object::from_query(pairs).read::<Form>()
        };
        assert!(query("lane=a&items=1&items=2").is_ok());
        for (text, expected) in
            [("items=1", "lane"), ("lane=a&x=1", "x"), ("lane=a&lane=b", "lane")]
        {
            assert_eq!(query(text).unwrap_err().0[0].pointer, expected, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded_and_counts_outside_of_texts() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check_depth(nested(DEPTH).as_bytes()).is_ok());
        assert!(check_depth(nested(DEPTH + 1).as_bytes()).is_err());
        let text = format!("\"\\\"{}\"", "[".repeat(1000));
        assert!(check_depth(text.as_bytes()).is_ok());
    }
}
