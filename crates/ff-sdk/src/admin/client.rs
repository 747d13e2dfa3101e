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
    ///
    /// ```
    /// use ff_sdk::FlowFabricAdminClient;
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let admin = FlowFabricAdminClient::new("sqlite::memory:").await?;
    /// assert_eq!(admin.namespace().as_str(), "default");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a URL that is none; [`SdkError::BackendContext`] when the store or
    /// the server cannot be reached within ten seconds.
    pub async fn new(url: &str) -> Result<Self, SdkError> {
        Self::open(url, None).await
    }

    /// The same for a server that wants to see an API key.
    ///
    /// ```no_run
    /// use ff_sdk::FlowFabricAdminClient;
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let key = String::new();
    /// let admin = FlowFabricAdminClient::with_token("https://flow.example", &key).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::new`], and the code `unauthenticated`.
    pub async fn with_token(url: &str, token: &str) -> Result<Self, SdkError> {
        Self::open(url, Some(token)).await
    }

    /// Over a backend that is open already.
    ///
    /// ```
    /// # use ff_sdk::testing::TestEngine;
    /// use ff_sdk::FlowFabricAdminClient;
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let admin = FlowFabricAdminClient::connect_with(engine.backend());
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// # use ff_sdk::testing::TestEngine;
    /// use ff_sdk::FlowFabricAdminClient;
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let admin = FlowFabricAdminClient::connect_with(engine.backend()).in_namespace("billing")?;
    /// assert_eq!(admin.namespace().as_str(), "billing");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a name that is none.
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::capability::Capabilities;
    /// use ff_core::operation::ClaimForWorker;
    /// use ff_sdk::{FlowFabricAdminClient, WorkerConfig};
    ///
    /// let admin = FlowFabricAdminClient::connect_with(engine.backend());
    /// let pool = WorkerConfig::new("pool").worker_instance_id("pool-1");
    /// let worker = engine.worker(pool).await;
    /// let greeting = engine.client().submit(Submission::new("greet")).await?;
    /// let claim = ClaimForWorker {
    ///     namespace: "default".parse()?,
    ///     worker_id: "pool".parse()?,
    ///     worker_instance_id: "pool-1".parse()?,
    ///     lane: "default".parse()?,
    ///     capabilities: Capabilities::default(),
    ///     grant_ttl_ms: 5_000,
    /// };
    /// let grant = admin.claim_for_worker(claim).await?.expect("there is work");
    /// assert_eq!(grant.execution_id, greeting.id());
    /// # drop(worker);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_input` for a grant that lasts too short or too long.
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::capability::Capabilities;
    /// use ff_core::operation::{IssueReclaimGrant, IssuedReclaimGrant};
    /// use ff_sdk::FlowFabricAdminClient;
    ///
    /// let admin = FlowFabricAdminClient::connect_with(engine.backend());
    /// let task = engine.claimed(Submission::new("work")).await;
    /// engine.lose_lease(task.execution_id()).await;
    /// let issue = IssueReclaimGrant {
    ///     execution_id: task.execution_id(),
    ///     worker_id: "pool".parse()?,
    ///     worker_instance_id: None,
    ///     lane: "default".parse()?,
    ///     capabilities: Capabilities::default(),
    ///     grant_ttl_ms: 5_000,
    /// };
    /// let issued = admin.issue_reclaim_grant(issue).await?;
    /// assert!(matches!(issued, IssuedReclaimGrant::Granted(_)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`, `capability_mismatch` and `grant_already_exists`. That it cannot be
    /// reclaimed is an answer, not an error.
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
    ///
    /// ```
    /// # use ff_sdk::testing::TestEngine;
    /// use ff_sdk::FlowFabricAdminClient;
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let admin = FlowFabricAdminClient::connect_with(engine.backend());
    /// let secret = "5e".repeat(32);
    /// assert!(admin.rotate_waitpoint_secret("k2", &secret, None).await?.rotated);
    /// assert!(!admin.rotate_waitpoint_secret("k2", &secret, None).await?.rotated);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a name or a secret that is none; `rotation_conflict` when the name
    /// stands for another secret.
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

    /// The token of a waitpoint, for whoever may answer. None: there is no such execution, or it
    /// has no such waitpoint.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::id::WaitpointKey;
    /// use ff_sdk::{FlowFabricAdminClient, Suspension};
    ///
    /// let id = task.execution_id();
    /// task.suspend_on(Suspension::approval("review")?).await?;
    /// let admin = FlowFabricAdminClient::connect_with(engine.backend());
    /// let review: WaitpointKey = "review".parse()?;
    /// assert!(admin.read_waitpoint_token(id, review).await?.is_some());
    /// let other: WaitpointKey = "other".parse()?;
    /// assert!(admin.read_waitpoint_token(id, other).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `forbidden` for a key without the right; `waitpoint_closed`.
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
