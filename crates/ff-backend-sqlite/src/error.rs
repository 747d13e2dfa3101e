//! Errors of opening, and SQLite's errors as faults of the engine.

use std::path::PathBuf;

use ff_core::error::{Code, EngineError};
use rusqlite::ErrorCode;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("store URL {url:?} is not usable: {detail}")]
    Url { url: String, detail: String },
    #[error(
        "{} is in use by process {owner}; one process owns a SQLite store, \
         others talk to its server", path.display()
    )]
    Owned { path: PathBuf, owner: String },
    #[error("{} cannot be opened or made: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error(
        "{} is a database of another application: it has tables, and they are not those of a \
         store; name another file", path.display()
    )]
    Foreign { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
    #[error(
        "the store has schema version {found}, this build knows up to {known}; \
         use a newer build"
    )]
    TooNew { found: u32, known: u32 },
    #[error(
        "the store was made by an unreleased build, whose records this build cannot read; \
         begin with a new file"
    )]
    Unreleased,
    #[error("the system gave no random bytes: {0}")]
    Random(String),
    #[error(transparent)]
    Refused(#[from] ff_core::error::Refusal),
    #[error("the writer thread could not be started: {0}")]
    Thread(std::io::Error),
    #[error("the store is damaged: {0}")]
    Damaged(String),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl OpenError {
    /// With the file that it is about, where it does not name one.
    pub(crate) fn of_file(self, path: Option<PathBuf>) -> Self {
        match (self, path) {
            (Self::Sqlite(source), Some(path)) => Self::Database { path, source },
            (error, _) => error,
        }
    }

    /// Whether the file is damaged, or no database at all.
    pub fn is_corruption(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            Self::Sqlite(source) | Self::Database { source, .. } => is_corrupt(source),
            _ => false,
        }
    }
}

fn is_corrupt(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// What a failed statement means for the caller. Its transaction is rolled back: nothing was
/// written.
pub(crate) fn fault(error: &rusqlite::Error) -> EngineError {
    let detail = format!("sqlite: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            EngineError::Bug { code: Code::Corruption, detail }
        }
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::ApiMisuse) => {
            EngineError::Bug { code: Code::InvariantViolation, detail }
        }
        _ => EngineError::Unavailable { detail },
    }
}

/// A failed commit: the disk may or may not have it.
pub(crate) fn commit_fault(error: &rusqlite::Error) -> EngineError {
    EngineError::Transport { outcome_unknown: true, detail: format!("sqlite commit: {error}") }
}
