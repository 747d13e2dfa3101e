//! What the router, the nodes and their tasks share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::address::Address;
use super::connection::Connection;
use super::connector::Connector;
use super::info::Info;
use super::load;
use super::obstacle::Obstacle;
use crate::library::Library;
use crate::options::{Durability, ValkeyOptions};
use crate::upsets::Upsets;

pub(super) struct Ground {
    pub(super) connector: Connector,
    pub(super) library: Arc<Library>,
    pub(super) cluster: bool,
    pub(super) durability: Durability,
    pub(super) call_timeout: Duration,
    /// Rung when the layout of the cluster may have changed.
    pub(super) stale: Notify,
    pub(super) upsets: Upsets,
    closed: watch::Sender<bool>,
}

impl Ground {
    pub(super) fn new(
        options: &ValkeyOptions,
        library: Arc<Library>,
        connector: Connector,
    ) -> Self {
        Self {
            connector,
            library,
            cluster: options.cluster,
            durability: options.durability,
            call_timeout: options.call_timeout,
            stale: Notify::new(),
            upsets: Upsets::default(),
            closed: watch::Sender::new(false),
        }
    }

    /// A connection to a primary. A replica is refused: what it answers to reads may be old, and
    /// writes it refuses itself.
    pub(super) async fn open_primary(&self, address: &Address) -> Result<Connection, Obstacle> {
        let mut connection = self.connector.open(address).await?;
        let info = Info::ask(&mut connection, address, "replication").await?;
        if !info.is_primary() {
            return Err(Obstacle::Later(format!("{address} is a replica, not a primary")));
        }
        Ok(connection)
    }

    /// The same, with our functions on its server.
    pub(super) async fn open_ready(&self, address: &Address) -> Result<Connection, Obstacle> {
        let mut connection = self.open_primary(address).await?;
        load::ensure(&mut connection, address, &self.library).await?;
        Ok(connection)
    }

    pub(super) fn close(&self) {
        self.connector.close();
        self.closed.send_replace(true);
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    pub(super) async fn until_closed(&self) {
        // An error would mean that the sender is gone, and it lives as long as this.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }
}
