//! What a failed command tells: a sentence and a hint for a person, a document for a program, an exit
//! code for a script.

use std::path::Path;
use std::{fmt, io};

use ff_api::problem::Problem;
use ff_backend_sqlite::{FloorError, OpenError};
use ff_backend_valkey::OpenError as ValkeyOpenError;
use ff_core::error::{Code, EngineError};
use ff_server::BindError;

use crate::client::Refused;
use crate::config::Misconfigured;
use crate::stores::UnknownStore;

const UNEXPECTED: u8 = 1;
const CONFIGURATION: u8 = 2;
const UNAVAILABLE: u8 = 8;
/// A value that breaks a rule.
pub(crate) const INVALID: u8 = 5;
/// What was waited for did not succeed.
pub(crate) const UNSUCCESSFUL: u8 = 9;
/// The doctor found violations.
pub(crate) const VIOLATED: u8 = 10;

/// No authority that the system trusts has signed the server's certificate.
const UNTRUSTED: &str =
    "name the certificate of the authority that signed the server's, with --ca FILE or FF_CA";
/// The server shows the certificate of an authority as its own.
const AUTHORITY: &str = "the server's certificate is that of an authority, which no client takes: let it \
                         sign one for the server, or make one with basicConstraints=CA:FALSE";

/// A command that was not meant so, or that nobody said yes to.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl Usage {
    /// A file that was named and cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self(format!("cannot read {}: {error}", path.display()))
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// What a program is told: the problem document, as it came or as a server would have told it.
pub(crate) fn document_of(error: &anyhow::Error) -> Vec<u8> {
    if let Some(refused) = error.downcast_ref::<Refused>() {
        return refused.body().to_vec();
    }
    let problem = match (error.downcast_ref::<EngineError>(), code_of(error)) {
        (Some(error), _) => Problem::from(error),
        (None, _) if is_corruption(error) => Problem::new(Code::Corruption, text_of(error)),
        (None, CONFIGURATION | INVALID) => Problem::new(Code::InvalidInput, text_of(error)),
        (None, UNAVAILABLE) => Problem::new(Code::Unavailable, text_of(error)),
        (None, _) => Problem::new(Code::Internal, text_of(error)),
    };
    serde_json::to_vec(&problem).unwrap_or_default()
}

/// What a person may do about it, if there is something to try; `boots`: a process was to be started.
pub(crate) fn hint_of(error: &anyhow::Error, boots: bool) -> Option<&'static str> {
    if let Some(OpenError::Owned { .. }) = error.downcast_ref::<OpenError>() {
        return Some(match boots {
            true => "is another `ff dev` or `ff server` running here? --store names another file",
            false => "leave --store out to ask the server that has the file open",
        });
    }
    if let Some(BindError::Listen { source, .. }) = error.downcast_ref::<BindError>() {
        return (source.kind() == io::ErrorKind::AddrInUse).then_some(
            "is another `ff dev` or `ff server` running? --listen-addr names another address",
        );
    }
    let refused = error.downcast_ref::<Refused>()?;
    match refused.code() {
        "unavailable" => Some(of_absence(&refused.to_string())),
        code => of_code(code),
    }
}

/// What to try when there was no answer, by what the connection said.
fn of_absence(told: &str) -> &'static str {
    const HINTS: [(&str, &str); 7] = [
        ("UnknownIssuer", UNTRUSTED),
        ("CaUsedAsEndEntity", AUTHORITY),
        ("NotValidForName", "call the server by a name that its certificate is for"),
        ("InvalidContentType", "does the server speak TLS? write http:// for one that does not"),
        ("wrong version number", "does the server speak TLS? write http:// for one that does not"),
        ("connection closed before message", "does the server speak TLS? write https:// then"),
        ("invalid HTTP version", "does the server speak TLS? write https:// then"),
    ];
    let found = HINTS.iter().find(|(part, _)| told.contains(part));
    let nobody = "is a server there? `ff dev` starts one; --url or FF_URL names another";
    found.map_or(nobody, |found| found.1)
}

/// What to try when the server says no.
fn of_code(code: &str) -> Option<&'static str> {
    Some(match code {
        "unauthenticated" => "put a key into FF_API_TOKEN, or its file into FF_API_TOKEN_FILE",
        "forbidden" => {
            "the key lacks a scope, namespace or lane for this; see `ff key create --help`"
        }
        "execution_not_found" => "`ff ls` lists executions; --namespace names another namespace",
        "result_not_found" => "`ff get` tells its state, `ff explain` why it is there",
        "execution_not_terminal" => "`ff watch` waits for its end, `ff cancel` ends it",
        "execution_not_active" | "execution_not_eligible" | "execution_not_suspended" => {
            "`ff get` tells its state, `ff explain` what would change it"
        }
        "waitpoint_not_found" | "target_not_signalable" => "`ff waitpoint ls` lists who waits",
        "worker_not_found" => "`ff worker ls` lists workers",
        "budget_not_found" => "`ff budget ls` lists budgets",
        "quota_policy_not_found" => "`ff quota ls` lists quota policies",
        "flow_not_found" => "`ff flow ls` lists flows",
        "lane_not_found" => "`ff lane ls` lists lanes",
        "route_not_found" => {
            "the server is of another version: compare `ff version` with GET /version"
        }
        _ => return None,
    })
}

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
    if let Some(refused) = error.downcast_ref::<Refused>() {
        return refused.exit_code();
    }
    if error.is::<UnknownStore>()
        || error.is::<BindError>()
        || error.is::<Misconfigured>()
        || error.is::<Usage>()
    {
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

fn is_corruption(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(OpenError::is_corruption)
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
        let cases: [(anyhow::Error, u8); 9] = [
            (outside.into(), 2),
            (unread.into(), 8),
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
        assert_eq!(
            text_of(&error.context("no store")),
            "no store: ff.db cannot be opened or made: disk on fire"
        );
    }
}
