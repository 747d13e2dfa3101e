//! `name=value` on the command line.

use std::collections::BTreeMap;

use ff_core::error::Code;
use serde_json::{Map, Value, json};

use crate::client::Refused;

/// A pair of texts.
pub(crate) fn text(argument: &str) -> Result<(String, String), String> {
    match argument.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as name=value".to_owned()),
    }
}

/// A name and an amount.
pub(crate) fn amount(argument: &str) -> Result<(String, u64), String> {
    let (name, value) = text(argument)?;
    let amount = value.parse().map_err(|_| format!("{value:?} is no whole number"))?;
    Ok((name, amount))
}

/// Every name once.
pub(crate) fn map<T>(pairs: &[(String, T)]) -> Result<BTreeMap<&str, &T>, Refused> {
    let mut map = BTreeMap::new();
    for (name, value) in pairs {
        if map.insert(name.as_str(), value).is_some() {
            return Err(Refused::new(Code::InvalidInput, format!("{name} is given twice")));
        }
    }
    Ok(map)
}

/// A body of the fields that were given.
pub(crate) fn body<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let given = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(given.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// Limits by dimension, as a budget takes them.
pub(crate) fn dimensions(hard: &[(String, u64)], soft: &[(String, u64)]) -> Result<Value, Refused> {
    let (hard, soft) = (map(hard)?, map(soft)?);
    let mut dimensions = Map::new();
    for (field, limits) in [("hard", hard), ("soft", soft)] {
        for (name, limit) in limits {
            let of = dimensions.entry(name).or_insert_with(|| json!({}));
            of[field] = json!(limit);
        }
    }
    Ok(if dimensions.is_empty() { Value::Null } else { Value::Object(dimensions) })
}
