//! Lengths of time on the command line.

use ff_core::limits;

/// Milliseconds: `500`, `500ms`, `2s`, `1.5s`, `5m`, `1h`.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit_ms: u64 = match unit {
        "" | "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("{unit:?} is no unit; there are ms, s, m and h")),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || !is_number(whole)
        || !is_number(fraction)
        || number.ends_with('.')
        || (unit.is_empty() && !fraction.is_empty())
    {
        return Err("write milliseconds as 500, or a length as 500ms, 2s, 5m or 1h".to_owned());
    }
    let too_long = || format!("at most {} ms", limits::DURATION_MAX_MS);
    let whole: u64 = whole.parse().map_err(|_| too_long())?;
    // Nine digits say more than a millisecond of any unit has.
    let digits = &fraction[..fraction.len().min(9)];
    let scale = 10u64.pow(u32::try_from(digits.len()).unwrap_or(0));
    let part = digits.parse::<u64>().unwrap_or(0) * unit_ms / scale;
    let ms = whole.checked_mul(unit_ms).and_then(|ms| ms.checked_add(part));
    ms.filter(|ms| *ms <= limits::DURATION_MAX_MS).ok_or_else(too_long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read() {
        let cases = [
            ("0", 0),
            ("500", 500),
            ("500ms", 500),
            ("2s", 2_000),
            ("1.5s", 1_500),
            ("0.0005s", 0),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("1.123456789123h", 4_044_444),
        ];
        for (text, ms) in cases {
            assert_eq!(parse(text), Ok(ms), "{text}");
        }
        for bad in ["", "s", "-1s", "1d", "1 s", "1.5", "1.s", ".5s", "1e3", "9999999999h", "1h2m"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
