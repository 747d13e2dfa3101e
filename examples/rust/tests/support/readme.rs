//! The README of an example shows what it prints; here it is held to that.

use std::fs;
use std::path::{Path, PathBuf};

fn bin() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin")
}

/// The names of all examples.
pub(crate) fn every_example() -> Vec<String> {
    let folders = fs::read_dir(bin()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = folders.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    assert!(!names.is_empty(), "no example was found");
    names
}

/// Every line of the README's last `text` block was printed. `…` stands for whatever differs from
/// run to run; lines may come in another order, since several workers print.
pub(crate) fn says_what_its_readme_says(name: &str, printed: &str) {
    let readme = fs::read_to_string(bin().join(name).join("README.md")).unwrap();
    let block = readme.split("```text\n").last().and_then(|rest| rest.split("```").next()).unwrap();
    assert!(!block.trim().is_empty(), "the README of {name} shows nothing");
    for pattern in block.lines() {
        let is_there = printed.lines().any(|line| matches(pattern, line));
        assert!(is_there, "{name} did not print {pattern:?}:\n{printed}");
    }
}

fn matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[test]
fn patterns_match_what_they_say() {
    let cases = [
        ("a", "a", true),
        ("a", "ab", false),
        ("a … c", "a b c", true),
        ("a … c", "a b d", false),
        ("… c", "a b c", true),
        ("a …", "a b", true),
        ("a … c … e", "a b c d e", true),
        ("a … x … e", "a b c d e", false),
    ];
    for (pattern, line, expected) in cases {
        assert_eq!(matches(pattern, line), expected, "{pattern} {line}");
    }
}
