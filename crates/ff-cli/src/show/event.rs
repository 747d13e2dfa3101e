//! A line for an event.

use serde_json::Value;

use super::{shown, state, time_of_day};

/// Time, subject, event, lane, kind, outcome, and what else it tells.
pub(crate) fn event_line(event: &Value, colour: bool) -> String {
    let or_dash = |field: &str| match shown(&event[field]) {
        text if text.is_empty() => "-".to_owned(),
        text => text,
    };
    let (time, subject) = (time_of_day(&event["time"]), or_dash("subject"));
    let (name, lane, kind) = (or_dash("type"), or_dash("lane"), or_dash("kind"));
    let outcome = state(&event["outcome"], colour);
    let told = shown(&event["data"]);
    let line = format!("{time}  {subject:<44}  {name:<25}  {lane}  {kind}  {outcome}  {told}");
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_told_in_one_line() {
        let event = json!({
            "time": "2023-11-14T22:13:20.123Z", "subject": "s", "type": "execution.completed",
            "lane": "l", "kind": "k", "outcome": "success", "data": {},
        });
        let subject = format!("{:<44}", "s");
        let expected =
            format!("22:13:20.123Z  {subject}  execution.completed        l  k  success");
        assert_eq!(event_line(&event, false), expected);
    }
}
