//! Errors of opening, and Valkey's errors as faults of the engine.

use ff_core::error::{Code, EngineError};
use redis::{ErrorKind, RedisError, ServerError};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("store URL {url:?} is not usable: {detail}")]
    Url { url: String, detail: String },
    #[error("valkey at {address} cannot be reached: {detail}")]
    Unreachable { address: String, detail: String },
    #[error(
        "valkey at {address} does not let us in: {detail}; \
         check user and password in the URL, and the user's rights (ACL GETUSER)"
    )]
    Auth { address: String, detail: String },
    #[error("{found} is too old; use {needed}")]
    TooOld { found: String, needed: &'static str },
    /// One node where a cluster was expected, a cluster where one node was, or a replica.
    #[error("valkey at {address} cannot be used like this: {detail}")]
    Mode { address: String, detail: String },
    #[error(
        "maxmemory-policy is {policy}, which may throw stored work away; \
         run CONFIG SET maxmemory-policy noeviction, and write it into the server's configuration"
    )]
    Eviction { policy: String },
    #[error("functions cannot be used on this server: {detail}")]
    Scripting { detail: String },
    #[error("the durability in the URL cannot be kept: {detail}")]
    Durability { detail: String },
    #[error(
        "the server's function library has call version {found}, this build works with up to \
         {served}; use a newer build"
    )]
    LibraryTooNew { found: u32, served: u32 },
    #[error(transparent)]
    Refused(#[from] ff_core::error::Refusal),
    #[error("the store is damaged: {0}")]
    Damaged(String),
    #[error("valkey answered: {0}")]
    Server(String),
}

/// What a failed call means for the caller. `written`: the command may have reached the server.
///
/// A server that answers with an error has not carried the command out, except where a function
/// fails in its middle; that is a defect of the function.
pub(crate) fn fault(error: &RedisError, written: bool) -> EngineError {
    let Some(code) = error.code() else {
        let detail = match error.kind() {
            ErrorKind::Parse => format!("valkey's answer cannot be read: {error}"),
            _ if error.is_timeout() => format!("valkey did not answer in time: {error}"),
            _ if written => format!("the connection to valkey was lost: {error}"),
            _ => format!("valkey cannot be reached: {error}"),
        };
        return EngineError::Transport { outcome_unknown: written, detail };
    };
    let said = said(code, error.detail());
    if let Some(why) = no_writes(code) {
        return EngineError::unavailable(format!("{why}: {said}"));
    }
    match code {
        "NOPERM" => EngineError::unavailable(format!(
            "valkey does not allow this user the command (ACL SETUSER): {said}"
        )),
        "NOAUTH" | "WRONGPASS" => EngineError::unavailable(format!(
            "valkey refuses the login; check user and password in the URL: {said}"
        )),
        "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "READONLY" | "MASTERDOWN"
        | "BUSY" | "UNBLOCKED" => EngineError::unavailable(format!("valkey: {said}")),
        "WRONGTYPE" => EngineError::corruption(format!(
            "a key of this store holds what this store does not write: {said}"
        )),
        _ => EngineError::Bug { code: Code::Internal, detail: format!("valkey: {said}") },
    }
}

/// The error of a call that reads, or leaves nothing behind which anybody sees: its outcome is known,
/// whatever became of it.
pub(crate) fn without_effect(error: EngineError) -> EngineError {
    match error {
        EngineError::Transport { detail, .. } => EngineError::unavailable(detail),
        other => other,
    }
}

/// Answers of a server that takes no writes at the moment: their codes, why that is, and what helps.
const NO_WRITES: [(&str, &str); 3] = [
    ("OOM", "valkey is out of memory (maxmemory); raise it, or remove what is not needed"),
    (
        "NOREPLICAS",
        "valkey takes no writes while too few replicas are connected (min-replicas-to-write)",
    ),
    ("MISCONF", "valkey takes no writes because it cannot save to its disk"),
];

/// Why a server takes no writes at the moment, by the code of its answer.
pub(crate) fn no_writes(code: &str) -> Option<&'static str> {
    NO_WRITES.iter().find(|(known, _)| *known == code).map(|(_, why)| *why)
}

/// Whether a fault is such an answer. Others that are `unavailable`, such as missing rights, do not pass by
/// themselves.
pub(crate) fn is_of_no_writes(detail: &str) -> bool {
    NO_WRITES.iter().any(|(_, why)| detail.starts_with(why))
}

/// A server's error reply as the server wrote it.
pub(crate) fn reply_text(error: &ServerError) -> String {
    said(error.code(), error.details())
}

fn said(code: &str, detail: Option<&str>) -> String {
    detail.map_or_else(|| code.to_owned(), |detail| format!("{code} {detail}"))
}

#[cfg(test)]
mod tests {
    use std::io;

    use redis::{Value, parse_redis_value};

    use super::*;

    fn reply(line: &str) -> RedisError {
        match parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap() {
            Value::ServerError(error) => error.into(),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn error_replies_say_what_to_do() {
        let cases = [
            ("OOM command not allowed when used memory > 'maxmemory'.", "maxmemory"),
            ("NOPERM User x has no permissions", "ACL"),
            ("NOAUTH Authentication required.", "password"),
            ("WRONGPASS invalid username-password pair", "password"),
            ("NOREPLICAS Not enough good replicas to write.", "min-replicas-to-write"),
            ("MISCONF Errors writing to the AOF file", "disk"),
            ("LOADING Valkey is loading the dataset in memory", "LOADING Valkey is loading"),
        ];
        for (line, hint) in cases {
            for written in [false, true] {
                match fault(&reply(line), written) {
                    EngineError::Unavailable { detail } => {
                        assert!(detail.contains(hint), "{line}: {detail}");
                    }
                    other => panic!("{line}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn errors_of_functions_are_defects() {
        let broken = fault(&reply("ERR user_function:3: attempt to index a nil value"), true);
        assert_eq!(broken.code(), Code::Internal);
        assert!(broken.to_string().contains("ERR user_function:3"), "{broken}");
        let foreign = fault(&reply("WRONGTYPE Operation against a key"), true);
        assert_eq!(foreign.code(), Code::Corruption);
    }

    #[test]
    fn lost_connections_tell_whether_the_outcome_is_known() {
        for kind in [io::ErrorKind::BrokenPipe, io::ErrorKind::TimedOut] {
            let error = RedisError::from(io::Error::from(kind));
            for written in [false, true] {
                match fault(&error, written) {
                    EngineError::Transport { outcome_unknown, .. } => {
                        assert_eq!(outcome_unknown, written, "{kind}");
                    }
                    other => panic!("{kind}: {other:?}"),
                }
            }
        }
    }
}
