//! Values of a query string: each is text, and the form that reads it says what it stands for.

use std::fmt::Display;

use serde::de::value::{Error, SeqDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

/// All values given under one name.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(pub(crate) &'a [String]);

impl<'a> Text<'a> {
    fn one(self) -> Result<&'a str, Error> {
        match self.0 {
            [text] => Ok(text),
            _ => Err(Error::custom("the parameter is given more than once")),
        }
    }

    fn parsed<T: std::str::FromStr<Err: Display>>(self, what: &str) -> Result<T, Error> {
        let text = self.one()?;
        text.parse().map_err(|error| Error::custom(format!("{text:?} is not {what}: {error}")))
    }

    /// The text as the JSON that it then has to be.
    fn json(self) -> Result<&'a RawValue, Error> {
        serde_json::from_str(self.one()?).map_err(Error::custom)
    }
}

impl<'de> IntoDeserializer<'de, Error> for Text<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $number:ty,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.parsed::<$number>("a number")?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            [text] => visitor.visit_borrowed_str(text),
            many => visitor.visit_seq(SeqDeserializer::new(many.iter().map(String::as_str))),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.parsed("true or false")?)
    }

    numbers! {
        deserialize_i8 visit_i64 i64,
        deserialize_i16 visit_i64 i64,
        deserialize_i32 visit_i64 i64,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u64 u64,
        deserialize_u16 visit_u64 u64,
        deserialize_u32 visit_u64 u64,
        deserialize_u64 visit_u64 u64,
        deserialize_f32 visit_f64 f64,
        deserialize_f64 visit_f64 f64,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        // The one newtype that is no text: a JSON value kept as it was sent.
        if name.ends_with("RawValue") {
            return self.json()?.deserialize_newtype_struct(name, visitor).map_err(Error::custom);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::new(self.0.chunks(1).map(Text)))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.json()?.deserialize_map(visitor).map_err(Error::custom)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.json()?.deserialize_struct(name, fields, visitor).map_err(Error::custom)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text: serde::de::value::StrDeserializer<'_, Error> = self.one()?.into_deserializer();
        text.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct tuple tuple_struct identifier
        ignored_any
    }
}
