//! Takes out of reports what looks like a secret. Types that hold one print none; this is the net
//! under texts that come from elsewhere, as an error of a library that repeats an address.

const REDACTED: &str = "[redacted]";

/// Parts of names whose values are not told.
const SECRET_NAMES: [&str; 8] =
    ["authorization", "cookie", "credential", "dsn", "hmac", "password", "secret", "token"];

/// How long a run of letters and digits may be before it is taken for a key; ids have hyphens.
const KEY_LENGTH: usize = 40;

/// The value of a field, unless its name says that it is none to tell.
pub(super) fn field(name: &str, value: &str) -> String {
    let name = name.to_ascii_lowercase();
    if SECRET_NAMES.iter().any(|part| name.contains(part)) {
        return REDACTED.to_owned();
    }
    text(value)
}

/// The same text without users and passwords of URLs, and without what looks like a key or a token.
pub(super) fn text(text: &str) -> String {
    let words = text.split_inclusive(char::is_whitespace);
    words.map(word_of).collect()
}

fn word_of(word: &str) -> String {
    let bare = without_user(word);
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '/' | '=');
    let mut told = String::with_capacity(bare.len());
    let mut rest = bare.as_str();
    while let Some(begin) = rest.find(is_of_key) {
        let (before, from) = rest.split_at(begin);
        let end = from.find(|c| !is_of_key(c)).unwrap_or(from.len());
        let (run, behind) = from.split_at(end);
        told.push_str(before);
        // A path is long as well, and is told: a key has no several slashes.
        let is_key = run.len() >= KEY_LENGTH && run.matches('/').count() < 2;
        told.push_str(if is_key { REDACTED } else { run });
        rest = behind;
    }
    told.push_str(rest);
    told
}

/// `scheme://user:password@host` without what stands before the host.
fn without_user(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{REDACTED}{}", &rest[at..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_and_the_rest_is_told() {
        let key = "a1".repeat(24);
        for (given, told) in [
            ("valkey://me:hunter2@h:6379/0 is gone", "valkey://[redacted]@h:6379/0 is gone"),
            ("no secrets here", "no secrets here"),
            (
                "{fp:7}:0199a1b2-0000-7000-8000-000000000001",
                "{fp:7}:0199a1b2-0000-7000-8000-000000000001",
            ),
            (&format!("bearer {key}, please"), "bearer [redacted], please"),
            (
                "/var/lib/flowfabric/some/rather/long/path/ff.db",
                "/var/lib/flowfabric/some/rather/long/path/ff.db",
            ),
        ] {
            assert_eq!(text(given), told);
        }
        assert_eq!(field("api_token", "short"), "[redacted]");
        assert_eq!(field("error", "short"), "short");
    }
}
