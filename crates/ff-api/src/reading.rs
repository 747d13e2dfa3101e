//! The way back: what a client makes of an answer.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error as TextError;

/// An answer that says something for which this side has no word: it is of a later version, or not of
/// this API at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} of the answer cannot be read: {detail}")]
pub struct Unreadable {
    pub field: &'static str,
    pub detail: String,
}

impl Unreadable {
    pub fn new(field: &'static str, detail: impl fmt::Display) -> Self {
        Self { field, detail: detail.to_string() }
    }

    /// A field that this status of an answer comes with is absent.
    pub(crate) fn missing(field: &'static str) -> Self {
        Self::new(field, "it is absent")
    }
}

/// A word that stands for one of several things.
pub(crate) fn word<'de, T: Deserialize<'de>>(
    field: &'static str,
    text: &'de str,
) -> Result<T, Unreadable> {
    T::deserialize(text.into_deserializer())
        .map_err(|error: TextError| Unreadable::new(field, error))
}

/// The same of a type that lists what it may be, each with its name.
pub(crate) fn among<T: Copy>(
    field: &'static str,
    text: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, Unreadable> {
    let found = all.iter().copied().find(|value| name(*value) == text);
    found.ok_or_else(|| Unreadable::new(field, format!("{text:?} is not known")))
}

/// A text that has a form of its own.
pub(crate) fn parsed<T: FromStr<Err: fmt::Display>>(
    field: &'static str,
    text: &str,
) -> Result<T, Unreadable> {
    text.parse().map_err(|error| Unreadable::new(field, error))
}

/// A field that must be there.
pub(crate) fn present<T>(field: &'static str, value: Option<T>) -> Result<T, Unreadable> {
    value.ok_or_else(|| Unreadable::missing(field))
}

/// Each of a list.
pub(crate) fn each<F, T>(items: Vec<F>) -> Result<Vec<T>, Unreadable>
where
    T: TryFrom<F, Error: Into<Unreadable>>,
{
    items.into_iter().map(|item| item.try_into().map_err(Into::into)).collect()
}

impl From<std::convert::Infallible> for Unreadable {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
