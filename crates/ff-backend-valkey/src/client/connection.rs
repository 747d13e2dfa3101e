//! One connection to one node. Clones share it; calls of many tasks travel in one stream.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ff_core::error::EngineError;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisError, Value};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use crate::error::fault;

#[derive(Clone)]
pub(crate) struct Connection {
    wire: MultiplexedConnection,
    shared: Arc<Shared>,
}

struct Shared {
    health: Arc<Health>,
    /// Calls that wait for their answers.
    calls: Arc<AtomicUsize>,
    driver: AbortHandle,
    _gate: mpsc::Sender<Infallible>,
}

/// Whether a connection can still be used. Holding it does not hold the connection.
#[derive(Default)]
pub(super) struct Health {
    lost: AtomicBool,
    changed: Notify,
}

/// A call without an answer.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// Nothing was written: the same call may be sent again.
    NotSent(String),
    /// It may or may not have been carried out.
    Unknown(EngineError),
    /// This store was closed.
    Closed,
}

impl Failure {
    pub(super) fn unknown(detail: impl Into<String>) -> Self {
        Self::Unknown(EngineError::Transport { outcome_unknown: true, detail: detail.into() })
    }
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotSent(detail) => Self::Transport { outcome_unknown: false, detail },
            Failure::Unknown(error) => error,
            Failure::Closed => Self::unavailable("the store is closed"),
        }
    }
}

impl Health {
    fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// For one waiter.
    pub(super) async fn until_lost(&self) {
        while !self.is_lost() {
            self.changed.notified().await;
        }
    }
}

/// The connection ends with its last user. Without this a command that blocks would hold it, and
/// take from the server what nobody waits for.
impl Drop for Shared {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// `driver` reads and writes; it ends when the connection breaks.
    pub(super) fn start(
        wire: MultiplexedConnection,
        driver: impl Future<Output = ()> + Send + 'static,
        calls: Arc<AtomicUsize>,
        gate: mpsc::Sender<Infallible>,
    ) -> Self {
        let health = Arc::new(Health::default());
        let at_end = Arc::clone(&health);
        let driver = tokio::spawn(async move {
            driver.await;
            at_end.lose();
        });
        let driver = driver.abort_handle();
        Self { wire, shared: Arc::new(Shared { health, calls, driver, _gate: gate }) }
    }

    pub(crate) async fn call(&mut self, command: &Cmd) -> Result<Value, Failure> {
        self.ready()?;
        let _under_way = UnderWay::new(&self.shared.calls);
        let outcome = self.wire.send_packed_command(command).await;
        outcome.map_err(|error| self.failed(&error))
    }

    /// In one flight, without a command of somebody else between them.
    pub(super) async fn call_all(&mut self, commands: &Pipeline) -> Result<Vec<Value>, Failure> {
        self.ready()?;
        let _under_way = UnderWay::new(&self.shared.calls);
        let outcome = self.wire.send_packed_commands(commands, 0, commands.len()).await;
        outcome.map_err(|error| self.failed(&error))
    }

    /// How long this clone waits for answers.
    pub(super) fn set_patience(&mut self, patience: Duration) {
        self.wire.set_response_timeout(patience);
    }

    /// Gives nobody new this connection. Calls on their way keep it until they are answered.
    pub(super) fn distrust(&self) {
        self.shared.health.lose();
    }

    pub(super) fn is_lost(&self) -> bool {
        self.shared.health.is_lost()
    }

    pub(super) fn health(&self) -> Arc<Health> {
        Arc::clone(&self.shared.health)
    }

    /// A connection known to be lost takes nothing, so what fails here was certainly not sent. The
    /// crate itself reports a command that it never wrote like one whose answer was lost.
    fn ready(&self) -> Result<(), Failure> {
        if self.is_lost() {
            return Err(Failure::NotSent("the connection to valkey was lost".to_owned()));
        }
        Ok(())
    }

    /// A late answer does not make the connection bad: its stream is still in order.
    fn failed(&self, error: &RedisError) -> Failure {
        if !error.is_timeout() {
            self.distrust();
        }
        Failure::Unknown(fault(error, true))
    }
}

/// Counts a call for as long as somebody waits for its answer.
struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn new(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::Relaxed);
        Self(calls)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
