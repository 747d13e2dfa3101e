//! The client itself: connecting, and the calls that all others are made of.

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::id::Namespace;
use ff_core::operation::Operation;
use ff_core::read::Question;
use ff_engine::{Ends, Shutdown};
use tokio::sync::watch;

use super::ClientConfig;
use crate::config::parse;
use crate::connection::Connection;
use crate::error::SdkError;
use crate::patience::{PATIENCE, insist, within};

/// A client of one namespace. Cheap to clone; all clones use the same connection.
///
/// ```
/// use std::time::Duration;
/// use ff_sdk::{Client, Submission};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ff_sdk::SdkError> {
/// let client = Client::connect("sqlite::memory:").await?;
/// let greeting = Submission::new("greet").json(&"Ada")?.delay(Duration::from_secs(3600));
/// let execution = client.submit(greeting).await?;
/// execution.cancel("not today").await?;
/// let finished = execution.wait(Duration::from_secs(10)).await?;
/// assert_eq!(finished.to_string(), "cancelled: not today");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(super) connection: Connection,
    pub(super) namespace: Namespace,
    pub(super) waiting: Arc<Waiting>,
}

/// Those who wait for an end through clones of one client. They stop with the last of them.
pub(super) struct Waiting {
    pub(super) ends: Ends,
    stop: watch::Sender<bool>,
}

impl Waiting {
    fn new(backend: &Arc<dyn Backend>, namespace: &Namespace) -> Self {
        let (stop, shutdown) = Shutdown::channel();
        let ends = Ends::new(Arc::clone(backend), Some(namespace.clone()), shutdown);
        Self { ends, stop }
    }

    /// Whether the client has been closed.
    pub(super) fn is_over(&self) -> bool {
        *self.stop.borrow()
    }
}

impl Client {
    /// Connects to a store (`sqlite:PATH`, `valkey://…`) or a server (`http://…`): by a URL, or by
    /// a [`ClientConfig`] that says more.
    ///
    /// ```
    /// use ff_sdk::{Client, ClientConfig};
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = ClientConfig::new().url("sqlite::memory:").namespace("billing");
    /// let client = Client::connect(config).await?;
    /// assert_eq!(client.namespace().as_str(), "billing");
    /// assert!(Client::connect("gopher://nowhere").await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] with the name of a setting that is wrong;
    /// [`SdkError::BackendContext`] when the store or the server cannot be reached within ten
    /// seconds.
    pub async fn connect(config: impl Into<ClientConfig>) -> Result<Self, SdkError> {
        let ClientConfig { url, token, namespace, engine } = config.into();
        let namespace = parse("namespace", &namespace)?;
        let connection = Connection::open(&url, token.as_deref(), engine).await?;
        Ok(Self::over(connection, namespace))
    }

    /// The same over a backend that is open already.
    ///
    /// In namespace `default`: see [`Self::in_namespace`] for another. The backend is not closed
    /// with the client.
    ///
    /// ```
    /// # use ff_sdk::testing::TestEngine;
    /// use ff_sdk::Client;
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let client = Client::connect_with(engine.backend());
    /// assert_eq!(client.namespace().as_str(), "default");
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_with(backend: Arc<dyn Backend>) -> Self {
        Self::over(Connection::over(backend), Namespace::default())
    }

    pub(crate) fn over(connection: Connection, namespace: Namespace) -> Self {
        let waiting = Arc::new(Waiting::new(connection.backend(), &namespace));
        Self { connection, namespace, waiting }
    }

    /// The same connection, in another namespace.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let billing = client.in_namespace("billing")?;
    /// let invoice = billing.submit(Submission::new("invoice")).await?;
    /// assert_eq!(invoice.describe().await?.namespace.as_str(), "billing");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a name that is none.
    pub fn in_namespace(&self, namespace: &str) -> Result<Self, SdkError> {
        Ok(Self::over(self.connection.clone(), parse("namespace", namespace)?))
    }

    /// The namespace of everything that this client submits and lists.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What carries out the client's calls.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        self.connection.backend()
    }

    /// Ends all waits, and closes the connection if this client opened it. Doing it again does
    /// nothing.
    ///
    /// ```
    /// # use ff_sdk::Client;
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::connect("sqlite::memory:").await?;
    /// client.close().await?;
    /// client.close().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Backend`] when an embedded store could not be closed.
    pub async fn close(&self) -> Result<(), SdkError> {
        self.waiting.stop.send_replace(true);
        self.connection.close(Duration::from_secs(5)).await
    }

    /// Carries out any operation of [`ff_core::operation`], once. Those with a method of their own
    /// are better called by it.
    ///
    /// A call whose reply is lost is not sent again: whether the operation may be repeated is for
    /// you to know. What is wrong with its shape is told before it is sent.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::operation::Hold;
    ///
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// let (execution_id, detail) = (greeting.id(), "not today".to_owned());
    /// client.call(Hold { execution_id, detail }).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a field that is wrong, [`SdkError::Engine`] with the code of a
    /// refusal, [`SdkError::Backend`] when there was no answer within five seconds.
    pub async fn call<O: Operation>(&self, operation: O) -> Result<O::Reply, SdkError> {
        operation.check().map_err(SdkError::unsent)?;
        Ok(within(O::NAME, self.backend().call(operation)).await?)
    }

    /// Asks any question of [`ff_core::read`].
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::read::Describe;
    ///
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// let found = client.ask(Describe { execution_id: greeting.id() }).await?;
    /// assert!(found.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::call`].
    pub async fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, SdkError> {
        Ok(within(Q::NAME, self.backend().ask(question)).await?)
    }

    /// An operation that changes nothing when it comes twice: a lost reply is no reason to give up.
    pub(super) async fn insist<O: Operation + Clone>(
        &self,
        operation: O,
    ) -> Result<O::Reply, SdkError> {
        operation.check().map_err(SdkError::unsent)?;
        let attempt = || within(O::NAME, self.backend().call(operation.clone()));
        Ok(insist(PATIENCE, attempt).await?)
    }
}
