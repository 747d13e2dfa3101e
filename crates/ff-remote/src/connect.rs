//! The first request: who is there.

use ff_api::system::Capabilities;
use ff_core::backend::Identity;
use ff_core::error::{Code, EngineError};
use ff_core::machine::Settings;
use ff_core::partition::PartitionConfig;

use crate::http::{Answer, BadEnd, Fault, Request, Transport};

/// Kinds of stores whose handles this side can read.
const STORES: [&str; 3] = ["sqlite", "valkey", "postgres"];

/// Why there is no connection to a server. None of these tells a key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConnectError {
    /// The URL, the key or a certificate cannot be used.
    #[error(transparent)]
    BadEnd(#[from] BadEnd),
    /// Nobody answers. Trying again later may help.
    #[error("{0}; is the server running, and is this its address?")]
    Unreachable(Fault),
    /// The server does not let the key in.
    #[error(
        "{base} refuses the key: {error}; make one with `ff key create` and give it as the key"
    )]
    Refused { base: String, error: EngineError },
    /// The server answers, but cannot serve now. Trying again later may help.
    #[error("{base} cannot serve: {error}")]
    Failed { base: String, error: EngineError },
    /// Somebody else answers under this URL.
    #[error("{base} is not a FlowFabric server: {detail}; give the URL that the server listens on")]
    NotFlowFabric { base: String, detail: String },
    /// The server stands before a kind of store that is not known here.
    #[error("{base} stands before a store of kind {store:?}, which this version does not know")]
    UnknownStore { base: String, store: String },
}

impl ConnectError {
    /// Whether trying again later may help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Failed { error, .. } => error.is_retryable(),
            _ => false,
        }
    }
}

/// Asks the server for what holds as long as it runs.
pub(crate) async fn ask(transport: &Transport) -> Result<(Settings, Identity), ConnectError> {
    let request = Request::get("/v1/capabilities".to_owned());
    let answer = transport.send(&request).await.map_err(ConnectError::Unreachable)?;
    let base = transport.base().to_owned();
    let not_ours = |detail: String| ConnectError::NotFlowFabric { base: base.clone(), detail };
    if !answer.is_well() {
        return Err(refused(&base, &answer));
    }
    let found: Capabilities =
        answer.form().map_err(|_| not_ours("its answer has another form".to_owned()))?;
    let Some(store) = STORES.into_iter().find(|known| *known == found.backend) else {
        return Err(ConnectError::UnknownStore { base, store: found.backend });
    };
    let ff_api::system::Partitions { flow, budget, quota } = found.partitions;
    let partitions = PartitionConfig { flow, budget, quota };
    partitions.check().map_err(|refusal| not_ours(refusal.to_string()))?;
    let settings =
        Settings { retention: found.retention.into(), ..Settings::new(store, partitions) };
    let (version, durability) = (found.version, found.durability);
    Ok((settings, Identity { backend: store, version, durability }))
}

fn refused(base: &str, answer: &Answer) -> ConnectError {
    let base = base.to_owned();
    let is_problem = answer.headers.get("content-type").is_some_and(|kind| {
        kind.to_str().is_ok_and(|kind| kind.starts_with("application/problem+json"))
    });
    if !is_problem {
        let detail = format!("it answers with HTTP status {}", answer.status);
        return ConnectError::NotFlowFabric { base, detail };
    }
    let problem = answer.problem();
    if problem.code == Code::RouteNotFound {
        let detail = "it serves nothing under /v1/capabilities".to_owned();
        return ConnectError::NotFlowFabric { base, detail };
    }
    let status = answer.status;
    let error = EngineError::from(problem);
    match status {
        401 | 403 => ConnectError::Refused { base, error },
        _ => ConnectError::Failed { base, error },
    }
}
