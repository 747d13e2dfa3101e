//! One report, as it travels: an envelope with one event.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::scrub;

/// What is reported.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// An error is logged, a panic is fatal.
    pub(super) panicked: bool,
    pub(super) message: String,
    /// The module that said it, or the place in the source.
    pub(super) place: String,
    pub(super) fields: Vec<(String, String)>,
}

impl Report {
    /// The envelope: a line about it, a line about the event, the event.
    pub(super) fn envelope(&self) -> Vec<u8> {
        let id = Uuid::now_v7().simple().to_string();
        let event = self.event(&id).to_string();
        let head = json!({ "event_id": id });
        let item = json!({ "type": "event", "length": event.len() });
        format!("{head}\n{item}\n{event}\n").into_bytes()
    }

    fn event(&self, id: &str) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let message = scrub::text(&self.message);
        let told = |(name, value): &(String, String)| {
            (name.clone(), Value::String(scrub::field(name, value)))
        };
        let mut event = json!({
            "event_id": id,
            "timestamp": now.as_secs_f64(),
            "platform": "other",
            "level": if self.panicked { "fatal" } else { "error" },
            "logger": self.place,
            "release": concat!("flowfabric@", env!("CARGO_PKG_VERSION")),
            "message": { "formatted": message },
            "extra": self.fields.iter().map(told).collect::<Map<_, _>>(),
        });
        if self.panicked {
            let mechanism = json!({ "type": "panic", "handled": false });
            let value = json!({ "type": "panic", "value": message, "mechanism": mechanism });
            event["exception"] = json!({ "values": [value] });
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_says_how_long_its_event_is() {
        let fields = vec![("error".to_owned(), "no\nluck".to_owned())];
        let report = Report { panicked: true, message: "gone".into(), place: "a".into(), fields };
        let text = String::from_utf8(report.envelope()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let [head, item, event] = lines[..] else { panic!("{text}") };
        let item: Value = serde_json::from_str(item).unwrap();
        assert_eq!(item, json!({ "type": "event", "length": event.len() }));
        let (head, event): (Value, Value) =
            (serde_json::from_str(head).unwrap(), serde_json::from_str(event).unwrap());
        assert_eq!(head["event_id"], event["event_id"]);
        assert_eq!(event["exception"]["values"][0]["value"], "gone");
        assert_eq!(
            (&event["level"], &event["extra"]["error"]),
            (&json!("fatal"), &json!("no\nluck"))
        );
    }
}
