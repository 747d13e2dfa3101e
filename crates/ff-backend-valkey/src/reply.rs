//! Reads the replies of functions.

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Home, Subject};
use ff_core::time::TimestampMs;
use redis::Value;
use uuid::Uuid;

use crate::subject;

/// A reply that does not have the form its function promises.
fn malformed(wanted: &str, found: &Value) -> EngineError {
    EngineError::bug(format!("valkey answered {found:?} where {wanted} was expected"))
}

pub(crate) fn array(value: Value) -> Result<Vec<Value>, EngineError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(malformed("a list", &other)),
    }
}

/// Bytes, or none where there is nothing.
pub(crate) fn bytes(value: Value) -> Result<Option<Bytes>, EngineError> {
    match value {
        Value::BulkString(bytes) => Ok(Some(bytes.into())),
        Value::SimpleString(text) => Ok(Some(text.into_bytes().into())),
        Value::Nil | Value::Boolean(false) => Ok(None),
        other => Err(malformed("bytes", &other)),
    }
}

pub(crate) fn some_bytes(value: Value) -> Result<Bytes, EngineError> {
    bytes(value)?.ok_or_else(|| EngineError::bug("valkey answered nothing where bytes were due"))
}

pub(crate) fn text(value: Value) -> Result<String, EngineError> {
    let bytes = some_bytes(value)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| EngineError::bug("valkey answered broken text"))
}

/// A number, also one that came as text.
pub(crate) fn number(value: &Value) -> Result<i64, EngineError> {
    let parsed = match value {
        Value::Int(number) => Some(*number),
        Value::BulkString(text) => std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()),
        Value::SimpleString(text) => text.parse().ok(),
        #[expect(clippy::cast_possible_truncation, reason = "scores are integers below 2^53")]
        Value::Double(number) if number.fract() == 0.0 => Some(*number as i64),
        _ => None,
    };
    parsed.ok_or_else(|| malformed("a number", value))
}

pub(crate) fn instant(value: &Value) -> Result<TimestampMs, EngineError> {
    number(value).map(TimestampMs)
}

/// An execution of `partition` by the 16 bytes of its uuid.
pub(crate) fn execution_id(partition: u16, value: Value) -> Result<ExecutionId, EngineError> {
    let raw = some_bytes(value)?;
    let uuid = Uuid::from_slice(&raw)
        .map_err(|_| EngineError::corruption(format!("an index of {partition} holds {raw:?}")))?;
    Ok(ExecutionId::new(partition, uuid))
}

/// An entry of a queue of `partition`. One that is no id is told as the last there can be: whoever takes
/// it makes the function meet it, which moves it aside.
pub(crate) fn entry(partition: u16, value: &Value) -> ExecutionId {
    let uuid = match value {
        Value::BulkString(raw) => Uuid::from_slice(raw).ok(),
        _ => None,
    };
    ExecutionId::new(partition, uuid.unwrap_or(Uuid::max()))
}

/// An execution or document of `home` by its short form.
pub(crate) fn subject(home: &Home, value: Value) -> Result<Subject, EngineError> {
    let short = some_bytes(value)?;
    subject::parse(home, &short)
        .ok_or_else(|| EngineError::corruption(format!("an index of {home} holds {short:?}")))
}

/// A home by its tag.
pub(crate) fn home(value: Value) -> Result<Home, EngineError> {
    let tag = text(value)?;
    tag.parse().map_err(|_| EngineError::bug(format!("valkey answered {tag:?} for a home")))
}

pub(crate) fn partition(value: &Value) -> Result<u16, EngineError> {
    u16::try_from(number(value)?).map_err(|_| malformed("a partition", value))
}

/// The next item of a reply.
pub(crate) fn next(items: &mut impl Iterator<Item = Value>) -> Result<Value, EngineError> {
    items.next().ok_or_else(|| EngineError::bug("valkey's answer is too short"))
}

/// Names and values in turn, also where the protocol has a map.
pub(crate) fn flat(value: Value) -> Result<Vec<Value>, EngineError> {
    match value {
        Value::Map(pairs) => Ok(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect()),
        other => array(other),
    }
}

/// Pairs one after the other, also where the protocol has a list of each.
pub(crate) fn pairs(value: Value) -> Result<Vec<Value>, EngineError> {
    let mut flat = Vec::new();
    for item in array(value)? {
        match item {
            Value::Array(pair) => flat.extend(pair),
            other => flat.push(other),
        }
    }
    Ok(flat)
}
