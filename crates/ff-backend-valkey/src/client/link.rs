//! Keeps one connection to one node, for as long as the node is of interest.
//!
//! A task waits for the connection to break, says so once in the log, and makes a new one with
//! growing pauses. Calls never connect: they take the connection there is, or wait for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::address::Address;
use super::backoff::Backoff;
use super::connection::{Connection, Failure};
use super::ground::Ground;
use super::obstacle::Obstacle;

/// A connection that lived for less does not start the pauses over: a server that takes
/// connections and drops them is not asked in a tight loop.
const LIFETIME_MIN: Duration = Duration::from_secs(1);

pub(super) struct Link {
    state: Arc<watch::Sender<State>>,
    keeper: JoinHandle<()>,
}

enum State {
    Up(Connection),
    Down(String),
    Closed,
}

impl Link {
    /// Begins with a connection, or by making one.
    pub(super) fn start(ground: Arc<Ground>, address: Address, first: Option<Connection>) -> Self {
        let health = first.as_ref().map(Connection::health);
        let state =
            first.map_or_else(|| State::Down(format!("not yet connected to {address}")), State::Up);
        let state = Arc::new(watch::Sender::new(state));
        let keeper = Keeper { ground, address, state: Arc::clone(&state) };
        let keeper = tokio::spawn(async move {
            if let Some(health) = health {
                health.until_lost().await;
                keeper.report_loss();
            }
            keeper.run().await;
        });
        Self { state, keeper }
    }

    pub(super) fn connection(&self) -> Result<Connection, Failure> {
        match &*self.state.borrow() {
            State::Up(connection) => Ok(connection.clone()),
            State::Down(reason) => Err(Failure::NotSent(reason.clone())),
            State::Closed => Err(Failure::Closed),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(&*self.state.borrow(), State::Up(_))
    }

    /// Also returns when the link is closed: whoever waits must hear that.
    pub(super) async fn until_up(&self) {
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|state| !matches!(state, State::Down(_))).await;
    }

    /// Gives up the connection; calls on their way keep it until they are answered.
    pub(super) fn close(&self) {
        self.keeper.abort();
        self.state.send_replace(State::Closed);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

struct Keeper {
    ground: Arc<Ground>,
    address: Address,
    state: Arc<watch::Sender<State>>,
}

impl Keeper {
    async fn run(&self) {
        let mut backoff = Backoff::new();
        loop {
            let connection = self.connect(&mut backoff).await;
            let (opened_at, health) = (Instant::now(), connection.health());
            tracing::info!(address = %self.address, "connected to valkey");
            self.publish(State::Up(connection));
            health.until_lost().await;
            self.report_loss();
            if opened_at.elapsed() < LIFETIME_MIN {
                tokio::time::sleep(backoff.pause()).await;
            } else {
                backoff = Backoff::new();
            }
        }
    }

    async fn connect(&self, backoff: &mut Backoff) -> Connection {
        let mut reason = String::new();
        loop {
            let obstacle = match self.ground.open_ready(&self.address).await {
                Ok(connection) => return connection,
                Err(obstacle) => obstacle,
            };
            if obstacle.to_string() != reason {
                reason = obstacle.to_string();
                self.report_obstacle(&obstacle);
            }
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    /// That a lost server is still away was said when it was lost. What somebody has to change
    /// must be seen.
    fn report_obstacle(&self, reason: &Obstacle) {
        let address = &self.address;
        match reason {
            Obstacle::Later(_) => tracing::debug!(%address, %reason, "no connection to valkey"),
            Obstacle::Final(_) => tracing::error!(%address, %reason, "no connection to valkey"),
        }
        self.publish(State::Down(format!("no connection to {address}: {reason}")));
    }

    fn report_loss(&self) {
        tracing::warn!(address = %self.address, "connection to valkey lost");
        self.publish(State::Down(format!("the connection to {} was lost", self.address)));
        self.ground.stale.notify_one();
    }

    /// A closed link stays closed.
    fn publish(&self, new: State) {
        self.ground.upsets.note();
        self.state.send_if_modified(|state| {
            let is_open = !matches!(state, State::Closed);
            if is_open {
                *state = new;
            }
            is_open
        });
    }
}
