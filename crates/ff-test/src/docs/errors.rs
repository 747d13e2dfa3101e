//! The page of error codes.

use std::fmt::Write as _;

use ff_core::error::{Class, Code};

const INTRODUCTION: &str = "# Error codes

Three kinds of failure are kept apart. A *refusal* is a legal negative answer: the operation was
understood and not carried out. A *fault* is store or network. A *bug* is ours. Codes are stable and
the same in Rust (`EngineError::code()`), HTTP, CLI and metrics. Some are reserved for operations to
come.

| class | what a caller does |
| --- | --- |
| terminal | gives up or changes the request: the same again gives the same answer |
| retryable | tries again later, or another way |
| cooperative | holds back: a limit on spending was met |
| informational | goes on: what was asked for is already so, or no longer possible |
| precondition | reads again: the thing changed meanwhile |
| bug | reports it |

This page is made from the table in `crates/ff-core/src/error/code.rs`; a test compares it.
";

/// The page `docs/reference/errors.md`.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut group = "";
    for &code in Code::ALL {
        if code.group() != group {
            group = code.group();
            let _ = write!(
                page,
                "\n## {}\n\nClass {}, HTTP {}, exit code {}.\n\n",
                capitalized(group),
                class(code.class()),
                code.http_status(),
                code.exit_code()
            );
        }
        let _ = writeln!(page, "- `{code}`");
    }
    page
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Terminal => "terminal",
        Class::Retryable => "retryable",
        Class::Cooperative => "cooperative",
        Class::Informational => "informational",
        Class::Precondition => "precondition",
        Class::Bug => "bug",
    }
}
