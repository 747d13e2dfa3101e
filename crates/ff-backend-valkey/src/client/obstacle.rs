//! Why a node cannot be used, and whether waiting may help.

use std::fmt;
use std::io;

use ff_core::error::EngineError;
use redis::{ErrorKind, RedisError, ServerError};
use tokio_rustls::rustls;

use super::address::Address;
use super::connection::Failure;
use crate::error::{OpenError, no_writes};

#[derive(Debug)]
pub(crate) enum Obstacle {
    /// The server is not there, or not ready: the same may work in a moment.
    Later(String),
    /// Somebody has to change something.
    Final(OpenError),
}

impl Obstacle {
    /// A connection that could not be made.
    pub(super) fn of_network(address: &Address, error: &io::Error) -> Self {
        let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if of_tls.is_some() {
            let detail = format!("TLS: {error}; does the server speak it, and is `ca` right?");
            return Self::Final(OpenError::Unreachable { address: address.to_string(), detail });
        }
        Self::Later(error.to_string())
    }

    /// A server that was reached and did not become a partner.
    pub(super) fn of_greeting(address: &Address, error: &RedisError) -> Self {
        if let Some(code) = error.code() {
            return Self::of_answer(address, code, error.detail().unwrap_or_default());
        }
        let address = address.to_string();
        match error.kind() {
            ErrorKind::AuthenticationFailed => {
                Self::Final(OpenError::Auth { address, detail: error.to_string() })
            }
            ErrorKind::RESP3NotSupported => Self::Final(OpenError::TooOld {
                found: "a server without HELLO".to_owned(),
                needed: "Valkey 7.2 or Redis 7.0, or a newer one",
            }),
            ErrorKind::Io | ErrorKind::Parse => Self::Later(error.to_string()),
            _ => Self::Final(OpenError::Unreachable { address, detail: error.to_string() }),
        }
    }

    /// An error reply to a command that prepares a connection.
    pub(crate) fn of_reply(address: &Address, error: &ServerError) -> Self {
        Self::of_answer(address, error.code(), error.details().unwrap_or_default())
    }

    fn of_answer(address: &Address, code: &str, detail: &str) -> Self {
        let said = format!("{code} {detail}");
        if let Some(why) = no_writes(code) {
            return Self::Later(format!("{why}: {said}"));
        }
        match code {
            "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "READONLY" => {
                Self::Later(said)
            }
            "ERR" if detail.starts_with("max number of clients") => Self::Later(said),
            "WRONGPASS" | "NOAUTH" | "NOPERM" => {
                Self::Final(OpenError::Auth { address: address.to_string(), detail: said })
            }
            _ => Self::Final(OpenError::Server(said)),
        }
    }

    /// For opening a store whose patience is over.
    pub(super) fn into_open_error(self, address: &Address) -> OpenError {
        match self {
            Self::Later(detail) => OpenError::Unreachable { address: address.to_string(), detail },
            Self::Final(error) => error,
        }
    }
}

/// Commands that prepare a connection may be repeated, so a lost answer is no special case.
impl From<Failure> for Obstacle {
    fn from(failure: Failure) -> Self {
        Self::Later(EngineError::from(failure).to_string())
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Later(detail) => out.write_str(detail),
            Self::Final(error) => error.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_helps_against_some_answers() {
        let address = Address::new("h", 1);
        let cases = [
            ("OOM", "command not allowed when used memory > 'maxmemory'.", true),
            ("NOREPLICAS", "Not enough good replicas to write.", true),
            ("MISCONF", "Errors writing to the AOF file", true),
            ("LOADING", "Valkey is loading the dataset in memory", true),
            ("ERR", "max number of clients reached", true),
            ("CLUSTERDOWN", "The cluster is down", true),
            ("WRONGPASS", "invalid username-password pair", false),
            ("NOPERM", "User x has no permissions", false),
            ("ERR", "DB index is out of range", false),
        ];
        for (code, detail, later) in cases {
            let obstacle = Obstacle::of_answer(&address, code, detail);
            assert_eq!(matches!(obstacle, Obstacle::Later(_)), later, "{code}: {obstacle}");
        }
    }

    #[test]
    fn waiting_helps_against_the_network_and_not_against_a_certificate() {
        let address = Address::new("h", 1);
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let refused = Obstacle::of_network(&address, &refused);
        assert!(matches!(refused, Obstacle::Later(_)), "{refused}");
        let tls = io::Error::new(io::ErrorKind::InvalidData, rustls::Error::DecryptError);
        let tls = Obstacle::of_network(&address, &tls);
        assert!(matches!(tls, Obstacle::Final(_)), "{tls}");
    }
}
