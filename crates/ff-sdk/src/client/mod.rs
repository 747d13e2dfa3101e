//! Clients: whoever submits work, waits for it, and says what it waits for.

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::id::{ExecutionId, Namespace};
use ff_core::operation::WaitpointRef;

use crate::config::parse;
use crate::connection::Connection;
use crate::error::SdkError;
use crate::task::{Signal, SignalOutcome};

/// A client of one namespace. Cheap to clone; all clones use the same connection.
#[derive(Clone)]
pub struct Client {
    connection: Connection,
    namespace: Namespace,
}

impl Client {
    /// Connects to a store (`sqlite:PATH`, `valkey://…`) or a server (`http://…`), in the namespace
    /// `default`.
    pub async fn connect(url: &str) -> Result<Self, SdkError> {
        let connection = Connection::open(url, None, None).await?;
        Ok(Self::over(connection, Namespace::default()))
    }

    /// The same over a backend that is open already.
    pub fn connect_with(backend: Arc<dyn Backend>) -> Self {
        Self::over(Connection::over(backend), Namespace::default())
    }

    pub(crate) fn over(connection: Connection, namespace: Namespace) -> Self {
        Self { connection, namespace }
    }

    /// The same connection, in another namespace.
    pub fn in_namespace(&self, namespace: &str) -> Result<Self, SdkError> {
        let namespace = parse("namespace", namespace)?;
        Ok(Self { connection: self.connection.clone(), namespace })
    }

    /// The namespace of everything that this client submits.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What carries out the client's calls.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        self.connection.backend()
    }

    /// Closes the connection, if this client opened it. Doing it again does nothing.
    pub async fn close(&self) -> Result<(), SdkError> {
        self.connection.close(Duration::from_secs(5)).await
    }
}

/// Saying what executions wait for.
impl Client {
    /// Says something to a waitpoint, of an execution of any lane.
    pub async fn deliver_signal(
        &self,
        execution_id: ExecutionId,
        waitpoint: impl Into<WaitpointRef>,
        signal: Signal,
    ) -> Result<SignalOutcome, SdkError> {
        let deliver = signal.deliver(execution_id, waitpoint.into())?;
        Ok(self.backend().call(deliver).await?.into())
    }
}
