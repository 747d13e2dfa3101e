//! Lists: pages with a cursor, and fields that take one value or several.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use ff_core::id::Namespace;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Ref, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::object::Invalid;

/// A page of a list. With a `next_cursor` there is more, also when the page is short or empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<String>,
    /// On demand: how many there are in all, as far as was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Of events: retention removed some before the first item.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gap: bool,
}

impl<T> Page<T> {
    pub fn new(items: Vec<T>, next_cursor: Option<String>) -> Self {
        Self { items, next_cursor, count: None, gap: false }
    }
}

/// Described by hand: each page is named after what is on it, so that no two share a description.
impl<T: ToSchema> PartialSchema for Page<T> {
    fn schema() -> RefOr<Schema> {
        let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
        let or_null = |kind: Type| SchemaType::from_iter([kind, Type::Null]);
        let cursor = ObjectBuilder::new().schema_type(or_null(Type::String));
        let count = ObjectBuilder::new()
            .schema_type(or_null(Type::Integer))
            .description(Some("On demand: how many there are in all, as far as was counted."));
        let gap = ObjectBuilder::new()
            .schema_type(Type::Boolean)
            .description(Some("Of events: retention removed some before the first item."));
        let about = "A page of a list. With a `next_cursor` there is more, also when it is short.";
        ObjectBuilder::new()
            .description(Some(about))
            .property("items", items)
            .property("next_cursor", cursor)
            .property("count", count)
            .property("gap", gap)
            .required("items")
            .required("next_cursor")
            .into()
    }
}

impl<T: ToSchema> ToSchema for Page<T> {
    fn name() -> Cow<'static, str> {
        format!("{}Page", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

/// Where a page begins and how long it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// 1 to 500; 50 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl Paging {
    pub fn limit(&self) -> u32 {
        self.limit.unwrap_or(ff_core::limits::PAGE)
    }
}

/// The same, where the number of all of them may be asked for too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Counted {
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// 1 to 500; 50 when absent.
    pub limit: Option<u32>,
    /// `estimate`: how many there are in all, counted up to a bound.
    pub count: Option<String>,
}

impl Counted {
    pub fn limit(&self) -> u32 {
        self.limit.unwrap_or(ff_core::limits::PAGE)
    }

    /// Whether the number of all of them is asked for.
    pub fn counts(&self) -> Result<bool, Invalid> {
        counts(self.count.as_deref())
    }
}

/// Reads `count`.
pub(crate) fn counts(count: Option<&str>) -> Result<bool, Invalid> {
    match count {
        None => Ok(false),
        Some("estimate") => Ok(true),
        Some(_) => Err(Invalid::at("count", "count is estimate")),
    }
}

/// The id of a new thing: the given one, or the one that an idempotency key names.
pub(crate) fn named<T: PartialEq>(
    field: &str,
    given: Option<T>,
    named: Option<T>,
) -> Result<Option<T>, Invalid> {
    match (given, named) {
        (Some(given), Some(named)) if given != named => {
            Err(Invalid::at(field, "with an idempotency key the id follows from the key"))
        }
        (given, named) => Ok(named.or(given)),
    }
}

/// One value, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<T> From<OneOrMany<T>> for Vec<T> {
    fn from(values: OneOrMany<T>) -> Self {
        match values {
            OneOrMany::One(value) => vec![value],
            OneOrMany::Many(values) => values,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// Tells by the first look which it is, so that an error speaks of the value and not of the choice.
struct Either<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OneOrMany<T>, E> {
        T::deserialize(text.into_deserializer()).map(OneOrMany::One)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<OneOrMany<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(OneOrMany::Many)
    }
}

/// What a cursor of a list that the server numbers itself is bound to.
pub fn scope(list: &str, namespace: &Namespace, of: impl fmt::Display) -> String {
    format!("{list} {namespace} {of}")
}
