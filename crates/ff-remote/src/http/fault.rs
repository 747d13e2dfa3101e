//! What goes wrong between here and a server.

use ff_core::error::EngineError;

/// A request that got no answer, or only the beginning of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nobody is there: the request was not sent.
    #[error("no answer from {base}: {cause}")]
    Unreachable { base: String, cause: String },
    /// The connection broke after the request was sent, or the answer broke off.
    #[error("the connection to {base} broke: {cause}")]
    Broken { base: String, cause: String },
    #[error("{base} did not answer in time")]
    Late { base: String },
    /// The request cannot be put into HTTP.
    #[error("the request cannot be sent: {cause}")]
    Malformed { cause: String },
}

impl Fault {
    pub(super) fn of(base: &str, error: &reqwest::Error) -> Self {
        let base = base.to_owned();
        let cause = root(error);
        match (error.is_connect(), error.is_timeout()) {
            (true, _) => Self::Unreachable { base, cause },
            (false, true) => Self::Late { base },
            (false, false) if error.is_builder() => Self::Malformed { cause },
            (false, false) => Self::Broken { base, cause },
        }
    }

    /// The same as a fault of the store that stands behind the server. Of a request that changes
    /// something and got no answer nobody knows whether it was carried out.
    pub(crate) fn engine(self, changes: bool) -> EngineError {
        let detail = self.to_string();
        match self {
            Self::Unreachable { .. } => EngineError::Transport { outcome_unknown: false, detail },
            Self::Late { .. } if !changes => EngineError::Timeout { detail },
            Self::Broken { .. } | Self::Late { .. } => {
                EngineError::Transport { outcome_unknown: changes, detail }
            }
            Self::Malformed { .. } => EngineError::bug(detail),
        }
    }
}

/// The cause at the bottom: what stands above it says only that there is one.
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
