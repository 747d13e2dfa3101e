//! Colours of states, on a terminal only.

use std::io::IsTerminal as _;

use serde_json::Value;

use super::shown;

/// Whether standard output takes colours: a terminal that is not dumb, and nobody has said no
/// (<https://no-color.org>).
pub(super) fn wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    std::io::stdout().is_terminal()
        && set("NO_COLOR").is_none()
        && set("TERM").is_none_or(|term| term != "dumb")
}

/// Green is well, red is not, yellow waits for somebody, blue is at work.
fn code(state: &str) -> &'static str {
    match state {
        "completed" | "success" | "done" | "live" | "satisfied" => "32",
        "failed" | "expired" | "dead" | "impossible" | "disabled" | "aborted" => "31",
        "suspended" | "paused" | "draining" | "rate_limited" | "resumable" => "33",
        "active" | "running" | "waiting_children" => "34",
        _ => "2",
    }
}

/// A state, as a cell of a table or within a line.
pub(crate) fn state(value: &Value, colour: bool) -> String {
    let text = shown(value);
    if colour && !text.is_empty() {
        return format!("\u{1b}[{}m{text}\u{1b}[0m", code(&text));
    }
    text
}
