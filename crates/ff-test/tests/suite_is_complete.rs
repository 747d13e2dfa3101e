//! The conformance suite leaves nothing out: no case that is written but not listed, no operation
//! or question that no case names, no code that the rules raise and no case expects.
//!
//! Source text is looked at, not behaviour: this finds what was forgotten, the cases find what is
//! wrong.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ff_core::error::{Class, Code};
use ff_core::operation::{Claim, Command};
use ff_core::read::Query;
use ff_core::state::{FrameMode, StreamEnd};
use ff_test::conformance::CASES;

/// Files and folders of ff-core that hold rules and checks, by the beginning of their names.
const RULES: &[&str] = &[
    "machine",
    "operation",
    "read",
    "id",
    "tags",
    "capability",
    "policy",
    "cursor",
    "check",
    "content",
    "backend",
    "summary",
];

fn source(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder).join("src")
}

/// All Rust files under a path, with their text.
fn files(path: &Path) -> Vec<(PathBuf, String)> {
    if path.is_file() {
        return vec![(path.to_owned(), fs::read_to_string(path).expect("a source file"))];
    }
    let entries = fs::read_dir(path).expect("a folder of sources").flatten();
    entries.flat_map(|entry| files(&entry.path())).collect()
}

/// The files that hold cases, by module.
fn modules() -> Vec<(String, String)> {
    let found = files(&source("ff-test").join("conformance"));
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let named = found.into_iter().map(|(path, text)| (name(&path), text));
    let modules: Vec<_> = named.filter(|(name, _)| name != "mod" && name != "suite").collect();
    assert!(!modules.is_empty(), "no module to look at: the check would pass without looking");
    modules
}

fn cases_text() -> String {
    modules().into_iter().map(|(_, text)| text).collect()
}

/// The cases, and the words that they are written in.
fn words() -> String {
    let folder = fs::read_dir(source("ff-test")).expect("the sources of ff-test").flatten();
    let beside = folder.map(|entry| entry.path()).filter(|path| path.is_file());
    let text: String = beside.flat_map(|path| files(&path)).map(|(_, text)| text).collect();
    text + &cases_text()
}

/// Names that follow `before` in the text.
fn names_after<'a>(text: &'a str, before: &str) -> BTreeSet<&'a str> {
    let name = |rest: &'a str| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    };
    text.split(before).skip(1).map(name).collect()
}

#[test]
fn every_case_is_listed() {
    let listed: BTreeSet<(&str, &str)> = CASES
        .iter()
        .flat_map(|(module, cases)| cases.iter().map(move |case| (*module, *case)))
        .collect();
    let modules = modules();
    let mut written = BTreeSet::new();
    for (module, text) in &modules {
        let cases = names_after(text, "\npub async fn ");
        assert!(!cases.is_empty(), "{module}.rs holds no case");
        written.extend(cases.into_iter().map(|case| (module.as_str(), case)));
    }
    assert_eq!(written, listed, "left: written, right: listed in conformance/mod.rs");
}

#[test]
fn every_operation_is_named_by_a_case() {
    let text = cases_text();
    for name in Command::NAMES {
        assert!(text.contains(&format!("\"{name}\"")), "no case names the operation {name}");
    }
    assert!(text.contains("Claim {"), "no case names {}", Claim::NAME);
}

#[test]
fn every_question_is_asked_by_a_case() {
    let words = words();
    for question in Query::TYPES {
        let asked = [format!("{question} {{"), format!("{question}::"), format!("ask({question})")];
        assert!(asked.iter().any(|asked| words.contains(asked)), "nobody asks {question}");
    }
}

#[test]
fn every_topic_is_followed_by_a_case() {
    let path = source("ff-core").join("read").join("subscription.rs");
    let text = fs::read_to_string(path).expect("the list of topics");
    let list = text.split("pub enum Topic {").nth(1).and_then(|rest| rest.split("\n}").next());
    let name = |line: &str| line.strip_prefix("    ").map(str::to_owned);
    let is_name = |line: &String| line.starts_with(char::is_uppercase);
    let topics: Vec<_> =
        list.expect("the list of topics").lines().filter_map(name).filter(is_name).collect();
    let short = |topic: &String| topic.split(['(', ' ']).next().unwrap_or_default().to_owned();
    let topics: BTreeSet<_> = topics.iter().map(short).collect();
    let followed = [("Events", ".events("), ("Frames", ".tail("), ("Timers", ".sooner_timer(")];
    assert_eq!(topics, followed.iter().map(|(topic, _)| (*topic).to_owned()).collect());
    let words = words();
    for (topic, call) in followed {
        assert!(words.contains(call), "nobody follows {topic}");
    }
}

#[test]
fn every_end_and_mode_of_a_stream_is_expected_by_a_case() {
    let text = cases_text();
    for end in StreamEnd::ALL {
        assert!(text.contains(&format!("StreamEnd::{end:?}")), "no case expects {end:?}");
    }
    for mode in FrameMode::ALL {
        assert!(text.contains(&format!("FrameMode::{mode:?}")), "no case names {mode:?}");
    }
}

#[test]
fn every_code_that_the_rules_raise_is_expected_by_a_case() {
    let is_rule = |path: &Path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        RULES.iter().any(|rule| name.strip_suffix(".rs").unwrap_or(&name) == *rule)
    };
    let folder = fs::read_dir(source("ff-core")).expect("the sources of ff-core").flatten();
    let rules = folder.map(|entry| entry.path()).filter(|path| is_rule(path));
    let text: String = rules
        .flat_map(|path| files(&path))
        .map(|(_, text)| text.split("\n#[cfg(test)]").next().unwrap_or_default().to_owned())
        .collect();
    // What `Refusal::invalid` raises stands nowhere by its code.
    let mut raised = names_after(&text, "Code::");
    raised.insert("InvalidInput");
    assert!(raised.len() > 10, "only {raised:?} found: the check would pass without looking");
    let expected_text = cases_text();
    let expected = names_after(&expected_text, "Code::");
    let missing: Vec<_> = Code::ALL
        .iter()
        .filter(|code| code.class() != Class::Bug)
        .map(|code| format!("{code:?}"))
        .filter(|code| raised.contains(code.as_str()) && !expected.contains(code.as_str()))
        .collect();
    assert_eq!(missing, [""; 0], "codes that no case expects");
}

#[test]
fn every_invariant_names_tests_that_there_are() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(here.join("../../docs/reference/invariants.md")).expect("a page");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| I"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let numbers: Vec<_> = rows.iter().map(|row| row[0].to_owned()).collect();
    assert_eq!(numbers, (1..=36).map(|n| format!("I{n}")).collect::<Vec<_>>());
    let of_module = |(module, names): &(&str, &[&str])| -> Vec<_> {
        names.iter().map(|name| format!("{module}::{name}")).collect()
    };
    let cases: BTreeSet<_> = CASES.iter().flat_map(of_module).collect();
    for row in rows {
        let named: Vec<_> = row[3].split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{} has no test", row[0]);
        for test in named {
            let is_there = cases.contains(test) || here.join("tests").join(test).is_file();
            assert!(is_there, "{}: there is no test {test}", row[0]);
        }
    }
}
