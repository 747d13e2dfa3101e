//! What a failed command tells: a sentence for a person, an exit code for a script.

use ff_backend_sqlite::{FloorError, OpenError};
use ff_backend_valkey::OpenError as ValkeyOpenError;
use ff_core::error::EngineError;
use ff_server::{ApiTokenError, BindError};

use crate::stores::UnknownStore;

const UNEXPECTED: u8 = 1;
const CONFIGURATION: u8 = 2;
const UNAVAILABLE: u8 = 8;
/// The doctor found violations.
pub(crate) const VIOLATED: u8 = 10;

/// What went wrong and why. A cause that the text before it names already is not repeated.
pub(crate) fn text_of(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// The exit code that tells a script what to do about `error`. Codes of the engine bring their
/// own; wrong usage never comes here, clap ends the process with 2.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    if let Some(error) = error.downcast_ref::<OpenError>() {
        return of_open(error);
    }
    if let Some(error) = error.downcast_ref::<ValkeyOpenError>() {
        return of_valkey_open(error);
    }
    if let Some(BindError::Keys { source, .. }) = error.downcast_ref() {
        return source.code().exit_code();
    }
    if error.is::<UnknownStore>() || error.is::<BindError>() || error.is::<ApiTokenError>() {
        return CONFIGURATION;
    }
    if let Some(error) = error.downcast_ref::<EngineError>() {
        return error.code().exit_code();
    }
    match error.downcast_ref::<FloorError>() {
        Some(FloorError::Open(error)) => of_open(error),
        Some(FloorError::Engine(error)) => error.code().exit_code(),
        Some(FloorError::Sqlite(_)) => UNAVAILABLE,
        None => UNEXPECTED,
    }
}

/// A store that another process has may be free later; every other refusal at boot stays.
fn of_open(error: &OpenError) -> u8 {
    match error {
        OpenError::Owned { .. } => UNAVAILABLE,
        _ => CONFIGURATION,
    }
}

/// A server that is not there may come; what it refuses somebody has to change.
fn of_valkey_open(error: &ValkeyOpenError) -> u8 {
    match error {
        ValkeyOpenError::Unreachable { .. } => UNAVAILABLE,
        _ => CONFIGURATION,
    }
}

#[cfg(test)]
mod tests {
    use ff_core::error::Refusal;

    use super::*;

    #[test]
    fn failures_have_the_codes_that_scripts_rely_on() {
        let owned = OpenError::Owned { path: "ff.db".into(), owner: "7".to_owned() };
        let away =
            ValkeyOpenError::Unreachable { address: "h:1".to_owned(), detail: "no".to_owned() };
        let outside = BindError::NotLoopback { addr: ([10, 0, 0, 1], 7171).into() };
        let addr = ([10, 0, 0, 1], 7171).into();
        let unread = BindError::Keys { addr, source: EngineError::unavailable("closed") };
        let cases: [(anyhow::Error, u8); 10] = [
            (outside.into(), 2),
            (unread.into(), 8),
            (ApiTokenError::TooShort.into(), 2),
            (owned.into(), 8),
            (away.into(), 8),
            (ValkeyOpenError::Eviction { policy: "allkeys-lru".to_owned() }.into(), 2),
            (OpenError::TooNew { found: 9, known: 1 }.into(), 2),
            (EngineError::from(Refusal::invalid("max", "too many")).into(), 5),
            (EngineError::unavailable("closed").into(), 8),
            (anyhow::anyhow!("a bug"), 1),
        ];
        for (error, code) in cases {
            assert_eq!(code_of(&error.context("while testing")), code);
        }
    }

    #[test]
    fn causes_are_told_once() {
        let source = std::io::Error::other("disk on fire");
        let error = anyhow::Error::from(OpenError::File { path: "ff.db".into(), source });
        assert_eq!(text_of(&error.context("no store")), "no store: ff.db: disk on fire");
    }
}
