//! One thing, a field on a line.

use serde_json::Value;

use super::{age_of, shown, state};

/// What a person looks for first.
const FIRST: [&str; 14] = [
    "execution_id",
    "flow_id",
    "budget_id",
    "quota_policy_id",
    "worker_instance_id",
    "key_id",
    "public_state",
    "state",
    "status",
    "namespace",
    "lane",
    "kind",
    "cause",
    "summary",
];

/// Long, and only for programs.
const HIDDEN: [&str; 2] = ["state_vector", "policy"];

/// The fields of a reply that say something, aligned. Times come with their age.
pub(crate) fn fields(reply: &Value, colour: bool) -> Vec<String> {
    let Some(map) = reply.as_object() else { return vec![shown(reply)] };
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    let mut told: Vec<(&String, &Value)> = map
        .iter()
        .filter(|(name, value)| !is_empty(value) && !HIDDEN.contains(&name.as_str()))
        .collect();
    told.sort_by_key(|(name, _)| place(name));
    let width = told.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    told.into_iter()
        .map(|(name, value)| {
            let text = match name.as_str() {
                "public_state" | "state" | "status" => state(value, colour),
                name if name.ends_with("_at") || name.ends_with("_until") => {
                    let (at, age) = (shown(value), age_of(value));
                    if age.is_empty() || age == "0ms" { at } else { format!("{at} ({age} ago)") }
                }
                _ => shown(value),
            };
            format!("{name:<width$}  {text}")
        })
        .collect()
}

/// Whether a value says nothing to a person.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_says_nothing_is_left_out() {
        let reply = json!({ "age": 1, "lane": "mail", "tags": {}, "reason": null });
        assert_eq!(fields(&reply, false), ["lane  mail", "age   1"]);
    }
}
