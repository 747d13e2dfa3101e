//! The way to FlowFabric: a store that this process opens, or a server.

use std::sync::Arc;
use std::time::Duration;

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_backend_valkey::{ValkeyOptions, ValkeyStore};
use ff_core::backend::Backend;
use ff_core::error::EngineError;
use ff_engine::{Engine, EngineOptions, Shutdown};
use ff_remote::{ConnectError, Remote};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::error::SdkError;

/// How long the first connection may take.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// How long one call may take, waits not counted.
pub(crate) const CALL: Duration = Duration::from_secs(5);

/// An open store or a server, and the engine if it runs here. Cheap to clone; the store is closed by
/// whoever opened it.
#[derive(Clone)]
pub(crate) struct Connection {
    backend: Arc<dyn Backend>,
    engine: Arc<Mutex<Option<RunningEngine>>>,
    opened_here: bool,
}

struct RunningEngine {
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Connection {
    /// Over a backend that somebody else opened, and closes.
    pub(crate) fn over(backend: Arc<dyn Backend>) -> Self {
        Self { backend, engine: Arc::default(), opened_here: false }
    }

    /// Opens what the URL names. The engine runs beside an embedded store unless `engine` says
    /// otherwise.
    pub(crate) async fn open(
        url: &str,
        token: Option<&str>,
        engine: Option<bool>,
    ) -> Result<Self, SdkError> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let (backend, by_default): (Arc<dyn Backend>, bool) = match scheme {
            "sqlite" | "valkey" | "valkeys" | "redis" | "rediss" if token.is_some() => {
                return Err(SdkError::config("token", "a store is opened without a token"));
            }
            "sqlite" => {
                let options: SqliteOptions = parse(url)?;
                let store = SqliteStore::open(options).map_err(|error| unopened(&error))?;
                (Arc::new(store), true)
            }
            "valkey" | "valkeys" | "redis" | "rediss" => {
                let options: ValkeyOptions = parse(url)?;
                let options =
                    ValkeyOptions { connect_patience: CONNECT, call_timeout: CALL, ..options };
                let store = ValkeyStore::open(options).await.map_err(|error| unopened(&error))?;
                (Arc::new(store), false)
            }
            "http" | "https" if engine == Some(true) => {
                return Err(SdkError::config("engine", "the server runs the engine"));
            }
            "http" | "https" => (Arc::new(reach(url, token).await?), false),
            _ => return Err(SdkError::config("url", UNKNOWN)),
        };
        let connection = Self { backend, engine: Arc::default(), opened_here: true };
        if engine.unwrap_or(by_default) {
            connection.run_engine().await;
        }
        Ok(connection)
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    async fn run_engine(&self) {
        let (stop, shutdown) = Shutdown::channel();
        let engine = Engine::new(Arc::clone(&self.backend), EngineOptions::default());
        let running = tokio::spawn(engine.run(shutdown));
        *self.engine.lock().await = Some(RunningEngine { stop, running });
    }

    /// Stops the engine, and closes what was opened here. Doing it again does nothing.
    pub(crate) async fn close(&self, grace: Duration) -> Result<(), SdkError> {
        if let Some(RunningEngine { stop, running }) = self.engine.lock().await.take() {
            stop.send_replace(true);
            let _ = running.await;
        }
        if self.opened_here {
            self.backend.shutdown_prepare(grace).await?;
        }
        Ok(())
    }
}

/// Connects to a server.
async fn reach(url: &str, token: Option<&str>) -> Result<Remote, SdkError> {
    let options = ff_remote::Options {
        key: token.map(str::to_owned),
        connect_timeout: CALL,
        ..ff_remote::Options::default()
    };
    match timeout(CONNECT, Remote::connect(url, options)).await {
        Ok(Ok(remote)) => Ok(remote),
        Ok(Err(error)) => Err(unreached(&error)),
        Err(_) => Err(unopened(&"the server does not answer")),
    }
}

const UNKNOWN: &str = "the URL names neither a store nor a server; there are sqlite:PATH, \
                       sqlite::memory:, valkey://HOST:PORT, valkeys:// with TLS (also written \
                       redis:// and rediss://), http://HOST:PORT and https://";

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(url: &str) -> Result<T, SdkError> {
    crate::config::parse("url", url)
}

/// What keeps a server from being reached: a setting, the server's refusal, or the way there.
fn unreached(error: &ConnectError) -> SdkError {
    match error {
        ConnectError::BadEnd(_) => SdkError::config("url", error.to_string()),
        ConnectError::Refused { .. } => SdkError::config("token", error.to_string()),
        ConnectError::NotFlowFabric { .. } | ConnectError::UnknownStore { .. } => {
            SdkError::config("url", error.to_string())
        }
        ConnectError::Unreachable(_) | ConnectError::Failed { .. } => unopened(error),
    }
}

fn unopened(error: &dyn std::fmt::Display) -> SdkError {
    let source = EngineError::unavailable(error.to_string()).into();
    SdkError::BackendContext { context: "connect".to_owned(), source }
}
