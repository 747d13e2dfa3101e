//! Texts of others on a terminal.

use serde_json::Value;

/// Without control characters: what somebody put into a reason or a tag must not drive the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A value of a reply on one line; nothing for what is absent or empty.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => plain(text),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            let pair = |(name, value): (&String, &Value)| match value {
                Value::Object(_) => format!("{}: ({})", plain(name), shown(value)),
                _ => format!("{}={}", plain(name), shown(value)),
            };
            map.iter().map(pair).collect::<Vec<_>>().join(" ")
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_on_one_line() {
        let cases = [
            (json!(null), ""),
            (json!("a\u{1b}[2Jb"), "a\u{fffd}[2Jb"),
            (json!(["a", 2]), "a, 2"),
            (json!({ "waiting": 3, "active": 1 }), "active=1 waiting=3"),
            (json!({ "tokens": { "hard": 9 } }), "tokens: (hard=9)"),
        ];
        for (value, text) in cases {
            assert_eq!(shown(&value), text);
        }
    }
}
