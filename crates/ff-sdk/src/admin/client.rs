//! The client of schedulers and operators.

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::{EngineError, Refusal};
use ff_core::id::{ExecutionId, Kid, Namespace};
use ff_core::operation::{
    ClaimForWorker, ClaimGrant, IssueReclaimGrant, IssueToken, IssuedReclaimGrant, Operation,
    RotateSecret, Rotated, WaitpointRef,
};
use ff_core::token::Secret;

use super::over_http::OverHttp;
use crate::config::parse;
use crate::connection::Connection;
use crate::error::SdkError;
use crate::patience::within_time;
use crate::presence::millis;
use crate::task::WaitpointTicket;

/// How long one call may take: a rotation alone may take two minutes.
const CALL: Duration = Duration::from_secs(130);
/// How long tokens of the key before are accepted, as servers have it.
const GRACE: Duration = Duration::from_secs(86_400);

/// A client with the rights of an operator. Cheap to clone.
///
/// ```
/// use ff_sdk::FlowFabricAdminClient;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ff_sdk::SdkError> {
/// let admin = FlowFabricAdminClient::new("sqlite::memory:").await?;
/// let secret = "5e".repeat(32);
/// let rotated = admin.rotate_waitpoint_secret("k2", &secret, None).await?;
/// assert_eq!((rotated.current_kid.as_str(), rotated.rotated), ("k2", true));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FlowFabricAdminClient {
    connection: Connection,
    namespace: Namespace,
    /// Where a server was named by its URL.
    http: Option<Arc<OverHttp>>,
}

impl FlowFabricAdminClient {
    /// Connects by the same URLs as [`crate::Client::connect`], and runs no engine. What a server
    /// refuses is then [`SdkError::AdminApi`], and a server that cannot be talked to
    /// [`SdkError::Http`].
    pub async fn new(url: &str) -> Result<Self, SdkError> {
        Self::open(url, None).await
    }

    /// The same for a server that wants to see an API key.
    pub async fn with_token(url: &str, token: &str) -> Result<Self, SdkError> {
        Self::open(url, Some(token)).await
    }

    /// Over a backend that is open already.
    pub fn connect_with(backend: Arc<dyn Backend>) -> Self {
        let connection = Connection::over(backend);
        Self { connection, namespace: Namespace::default(), http: None }
    }

    async fn open(url: &str, token: Option<&str>) -> Result<Self, SdkError> {
        let connection = Connection::open(url, token, Some(false)).await?;
        let is_server = url.starts_with("http://") || url.starts_with("https://");
        let http = is_server.then(|| OverHttp::new(url, token, CALL)).transpose()?;
        Ok(Self { connection, namespace: Namespace::default(), http: http.map(Arc::new) })
    }

    /// The same connection, in another namespace than `default`.
    pub fn in_namespace(&self, namespace: &str) -> Result<Self, SdkError> {
        let namespace = parse("namespace", namespace)?;
        Ok(Self { namespace, ..self.clone() })
    }

    /// The namespace in which workers are given work.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What carries out the calls.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        self.connection.backend()
    }

    async fn call<O: Operation>(&self, operation: O) -> Result<O::Reply, SdkError> {
        operation.check().map_err(SdkError::unsent)?;
        self.within(O::NAME, self.backend().call(operation)).await
    }

    async fn within<T>(
        &self,
        name: &str,
        pending: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, SdkError> {
        Ok(within_time(CALL, name, pending).await?)
    }

    /// Sets the next execution that a worker may run aside for it. None: there is nothing for it.
    /// The worker takes it up by [`crate::FlowFabricWorker::claim_from_grant`].
    pub async fn claim_for_worker(
        &self,
        claim: ClaimForWorker,
    ) -> Result<Option<ClaimGrant>, SdkError> {
        if let Some(http) = &self.http {
            return http.claim_for_worker(claim).await;
        }
        self.within("claim_for_worker", self.backend().claim_for_worker(claim)).await
    }

    /// Sets an execution whose lease was lost aside for a worker, who takes it up by
    /// [`crate::FlowFabricWorker::claim_from_reclaim_grant`].
    pub async fn issue_reclaim_grant(
        &self,
        issue: IssueReclaimGrant,
    ) -> Result<IssuedReclaimGrant, SdkError> {
        if let Some(http) = &self.http {
            return http.issue_reclaim_grant(issue, &self.namespace).await;
        }
        self.call(issue).await
    }

    /// Makes another key sign waitpoint tokens: 32 to 128 bytes, as hex. Tokens of the one before
    /// are accepted for `grace` more, a day unless said. Doing it again does nothing.
    pub async fn rotate_waitpoint_secret(
        &self,
        new_kid: &str,
        new_secret_hex: &str,
        grace: Option<Duration>,
    ) -> Result<Rotated, SdkError> {
        let wrong = |field, refusal: Refusal| SdkError::config(field, refusal.detail);
        let kid = Kid::parse(new_kid).map_err(|refusal| wrong("new_kid", refusal))?;
        let secret = Secret::from_hex(new_secret_hex);
        let secret = secret.map_err(|refusal| wrong("new_secret_hex", refusal))?;
        let grace = grace.unwrap_or(GRACE);
        if let Some(http) = &self.http {
            return http.rotate(new_kid, new_secret_hex, grace, &self.namespace).await;
        }
        self.call(RotateSecret { kid, secret, grace_ms: millis(grace) }).await
    }

    /// The token of a waitpoint, for whoever may answer. None: there is no such execution, or it has
    /// no such waitpoint.
    pub async fn read_waitpoint_token(
        &self,
        execution_id: ExecutionId,
        waitpoint: impl Into<WaitpointRef>,
    ) -> Result<Option<WaitpointTicket>, SdkError> {
        let waitpoint = waitpoint.into();
        if let Some(http) = &self.http {
            let read = http.read_waitpoint_token(execution_id, &waitpoint, &self.namespace);
            return Ok(read.await?.map(Into::into));
        }
        let issue = IssueToken { execution_id, waitpoint, remint: None };
        match self.call(issue).await {
            Ok(issued) => Ok(Some(issued.into())),
            Err(error) if error.code().is_some_and(|code| code.http_status() == 404) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
