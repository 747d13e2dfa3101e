//! Times of replies, as a person reads them.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use ff_api::time::Time;
use serde::Deserialize as _;
use serde_json::Value;

/// A length of time in its largest unit: `3s`, `5m`, `2h`, `4d`.
pub(crate) struct Ago(pub(crate) i64);

impl fmt::Display for Ago {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.max(0) / 1000;
        match seconds {
            0 => write!(f, "{}ms", self.0.max(0)),
            1..=119 => write!(f, "{seconds}s"),
            120..=7_199 => write!(f, "{}m", seconds / 60),
            7_200..=172_799 => write!(f, "{}h", seconds / 3_600),
            _ => write!(f, "{}d", seconds / 86_400),
        }
    }
}

/// Milliseconds since 1970, by the clock of this machine.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn ms_of(value: &Value) -> Option<i64> {
    Time::deserialize(value).ok().map(|time| time.0.0)
}

/// How long ago a time of a reply was; nothing where there is none.
pub(crate) fn age_of(value: &Value) -> String {
    ms_of(value).map(|ms| Ago(now_ms() - ms).to_string()).unwrap_or_default()
}

/// As 13:37:00.042Z.
pub(crate) fn time_of_day(value: &Value) -> String {
    let ms = ms_of(value).unwrap_or_default().rem_euclid(86_400_000);
    let (seconds, ms) = (ms / 1000, ms % 1000);
    format!("{:02}:{:02}:{:02}.{ms:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let cases = [
            (-5, "0ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (119_999, "119s"),
            (120_000, "2m"),
            (7_200_000, "2h"),
            (172_800_000, "2d"),
        ];
        for (ms, text) in cases {
            assert_eq!(Ago(ms).to_string(), text);
        }
    }

    #[test]
    fn times_are_of_the_day_in_utc() {
        assert_eq!(time_of_day(&json!("2023-11-14T22:13:20.123Z")), "22:13:20.123Z");
        assert_eq!(age_of(&json!(null)), "");
    }
}
