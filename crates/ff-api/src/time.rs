//! Points in time: RFC 3339 in UTC with milliseconds; integers of Unix milliseconds are read too.

use std::fmt;

use ff_core::time::TimestampMs;
use jiff::Timestamp;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

/// A point in time as the wire shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub TimestampMs);

impl From<TimestampMs> for Time {
    fn from(at: TimestampMs) -> Self {
        Self(at)
    }
}

impl From<Time> for TimestampMs {
    fn from(time: Time) -> Self {
        time.0
    }
}

/// The same of a field that may be absent.
pub fn some(at: Option<TimestampMs>) -> Option<Time> {
    at.map(Time)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_millisecond(self.0.0) {
            Ok(at) => write!(f, "{at:.3}"),
            // Only a clock that shows no year of four digits comes here; the number is still true.
            Err(_) => self.0.fmt(f),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time as RFC 3339 or as integer of Unix milliseconds")
    }

    fn visit_i64<E: Error>(self, ms: i64) -> Result<Time, E> {
        Ok(Time(TimestampMs(ms)))
    }

    fn visit_u64<E: Error>(self, ms: u64) -> Result<Time, E> {
        i64::try_from(ms).map(|ms| Time(TimestampMs(ms))).map_err(|_| E::custom("time is too far"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
        if let Ok(ms) = text.parse() {
            return self.visit_i64(ms);
        }
        match text.parse::<Timestamp>() {
            Ok(at) => self.visit_i64(at.as_millisecond()),
            Err(_) => Err(E::custom(format!("{text:?} is not a time in RFC 3339"))),
        }
    }
}

impl ToSchema for Time {}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let schema = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 in UTC with milliseconds; Unix milliseconds are read too"));
        RefOr::T(schema.build().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_and_print() {
        let at = |text: &str| serde_json::from_str::<Time>(text).map(|time| time.0.0).ok();
        assert_eq!(at("1800000000123"), Some(1_800_000_000_123));
        assert_eq!(at("\"1800000000123\""), Some(1_800_000_000_123));
        assert_eq!(at("\"2027-01-15T08:00:00.123Z\""), Some(1_800_000_000_123));
        assert_eq!(at("\"2027-01-15T09:00:00.123+01:00\""), Some(1_800_000_000_123));
        for bad in ["\"tomorrow\"", "\"2027-01-15\"", "1.5", "null", "99999999999999999999"] {
            assert_eq!(at(bad), None, "{bad}");
        }
        let time = Time(TimestampMs(1_800_000_000_000));
        assert_eq!(time.to_string(), "2027-01-15T08:00:00.000Z");
    }

    #[test]
    fn times_in_sentences_are_printed_alike() {
        let days = |day: i64| TimestampMs(day * 86_400_000 + day.rem_euclid(86_399_999));
        for at in (-719_528..2_932_895).step_by(13).map(days) {
            assert_eq!(at.rfc3339(), Time(at).to_string());
        }
    }
}
