//! What an answer means for the call: done, failed, or certainly not carried out.

use std::fmt;

use ff_core::error::EngineError;
use redis::{RedisError, ServerError, Value};

use super::connection::Failure;
use super::load;
use crate::error::{fault, reply_text};

#[derive(Debug)]
pub(super) enum Verdict {
    Done(Value),
    Failed(EngineError),
    /// Nothing was done; the same call may be sent again once the reason is out of the way.
    Again(Again),
}

/// Why a call was not carried out. Texts are for people, and those of redirections for
/// [`Redirection`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Again {
    /// There was no connection.
    NotSent(String),
    /// Another node owns the slot.
    Moved(String),
    /// Another node owns the slot for this call only.
    Ask(String),
    /// The same node serves it in a moment.
    Later(String),
    /// The node is none that serves it; which one does has to be found out.
    Elsewhere(String),
    /// The server's function library is missing.
    NoLibrary,
    /// The server's function library does not serve our call version.
    OtherLibrary(String),
}

impl fmt::Display for Again {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(text) => out.write_str(text),
            Self::Moved(text)
            | Self::Ask(text)
            | Self::Later(text)
            | Self::Elsewhere(text)
            | Self::OtherLibrary(text) => write!(out, "valkey: {text}"),
            Self::NoLibrary => out.write_str("valkey has no function library"),
        }
    }
}

pub(super) fn judge(outcome: Result<Value, Failure>) -> Verdict {
    match outcome {
        Ok(Value::ServerError(error)) => judge_error(error),
        Ok(value) => Verdict::Done(value),
        Err(Failure::NotSent(detail)) => Verdict::Again(Again::NotSent(detail)),
        Err(failure) => Verdict::Failed(failure.into()),
    }
}

fn judge_error(error: ServerError) -> Verdict {
    let text = reply_text(&error);
    Verdict::Again(match error.code() {
        "MOVED" => Again::Moved(text),
        "ASK" => Again::Ask(text),
        "TRYAGAIN" | "LOADING" | "BUSY" => Again::Later(text),
        "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" => Again::Elsewhere(text),
        "FFCALLVERSION" => Again::OtherLibrary(text),
        _ if load::is_missing(&error) => Again::NoLibrary,
        // A slot is on its way to another node. Functions read, or name as keys, all that they
        // write before they write anything, so nothing was done.
        _ if text.contains("non local key") => Again::Elsewhere(text),
        _ => return Verdict::Failed(fault(&RedisError::from(error), true)),
    })
}

/// `MOVED 3999 10.0.0.1:6381`, or the same with `ASK`.
#[derive(Debug, PartialEq)]
pub(super) struct Redirection<'a> {
    pub(super) slot: u16,
    pub(super) target: &'a str,
}

impl<'a> Redirection<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().skip(1);
        Some(Self { slot: words.next()?.parse().ok()?, target: words.next()? })
    }
}

/// Whether a call came to a node that has lost its part to another.
pub(super) fn is_demoted(outcome: &Result<Value, Failure>) -> bool {
    matches!(outcome, Ok(Value::ServerError(error)) if error.code() == "READONLY")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(line: &str) -> Verdict {
        judge(Ok(redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap()))
    }

    #[test]
    fn answers_that_carried_nothing_out_are_sent_again() {
        let cases = [
            ("MOVED 3999 10.0.0.1:6381", "Moved"),
            ("ASK 3999 10.0.0.1:6381", "Ask"),
            ("TRYAGAIN Multiple keys request during rehashing of slot", "Later"),
            ("LOADING Valkey is loading the dataset in memory", "Later"),
            ("BUSY Valkey is busy running a script.", "Later"),
            ("CLUSTERDOWN The cluster is down", "Elsewhere"),
            ("READONLY You can't write against a read only replica.", "Elsewhere"),
            ("MASTERDOWN Link with MASTER is down", "Elsewhere"),
            ("FFCALLVERSION library serves 2", "OtherLibrary"),
        ];
        for (line, kind) in cases {
            match verdict(line) {
                Verdict::Again(again) => {
                    assert_eq!(format!("{again:?}"), format!("{kind}({line:?})"));
                }
                other => panic!("{line}: {other:?}"),
            }
        }
        let missing = verdict("ERR Function not found");
        assert!(matches!(missing, Verdict::Again(Again::NoLibrary)), "{missing:?}");
    }

    #[test]
    fn other_error_answers_are_final() {
        for line in ["OOM command not allowed", "ERR no such thing", "WRONGTYPE x", "NOPERM x"] {
            assert!(matches!(verdict(line), Verdict::Failed(_)), "{line}");
        }
    }

    #[test]
    fn only_what_was_not_sent_is_sent_again() {
        let not_sent = judge(Err(Failure::NotSent("no connection".to_owned())));
        assert!(matches!(not_sent, Verdict::Again(Again::NotSent(_))), "{not_sent:?}");
        let lost = judge(Err(Failure::unknown("lost")));
        let unknown =
            matches!(lost, Verdict::Failed(EngineError::Transport { outcome_unknown: true, .. }));
        assert!(unknown, "{lost:?}");
    }

    #[test]
    fn redirections_are_read() {
        let expected = Redirection { slot: 3999, target: "10.0.0.1:6381" };
        assert_eq!(Redirection::read("MOVED 3999 10.0.0.1:6381"), Some(expected));
        for bad in ["MOVED", "MOVED x 10.0.0.1:6381", "MOVED 3999", "MOVED 70000 h:1"] {
            assert_eq!(Redirection::read(bad), None, "{bad}");
        }
    }
}
