//! A primary with one replica.

use super::options::ServerOptions;
use super::server::Server;
use super::wait::wait_until;
use crate::world::PATIENCE;

/// Two servers, of which the second copies the first until it takes over.
pub struct Replicated {
    primary: Server,
    replica: Server,
}

impl Replicated {
    /// Starts both with these options, and returns when the replica has caught up and follows.
    pub fn start(options: &ServerOptions) -> Self {
        let primary = Server::start(ServerOptions { replica_of: None, ..options.clone() });
        let replica_of = Some(primary.port());
        let replica = Server::start(ServerOptions { replica_of, ..options.clone() });
        let pair = Self { primary, replica };
        pair.wait_until_linked();
        pair
    }

    /// Each side has its own view: the primary may count a replica that has not loaded its copy.
    fn wait_until_linked(&self) {
        wait_until("the replica follows its primary", PATIENCE, || {
            let replica = self.replica.must(&["INFO", "replication"]);
            let primary = self.primary.must(&["INFO", "replication"]);
            replica.contains("master_link_status:up") && primary.contains("state=online")
        });
    }

    /// Returns when the replica has everything that the primary has at the time of the call.
    pub fn catch_up(&self) {
        let written = offset(&self.primary, "master_repl_offset");
        wait_until("the replica has caught up", PATIENCE, || {
            offset(&self.replica, "slave_repl_offset") >= written
        });
    }

    /// The server that was started as the primary.
    pub fn primary(&self) -> &Server {
        &self.primary
    }

    /// The server that was started as the replica.
    pub fn replica(&self) -> &Server {
        &self.replica
    }

    /// Kills the primary and makes the replica the new one, which is returned. What the primary
    /// acknowledged and had not sent is lost, as it is in an accident; [`Replicated::catch_up`]
    /// first keeps it.
    pub fn fail_over(&self) -> &Server {
        self.primary.kill();
        self.replica.must(&["REPLICAOF", "NO", "ONE"]);
        &self.replica
    }
}

/// How much of the stream of writes a server has, in bytes.
fn offset(server: &Server, field: &str) -> u64 {
    let info = server.must(&["INFO", "replication"]);
    let mut fields = info.lines().filter_map(|line| line.split_once(':'));
    let value = fields.find_map(|(name, value)| (name == field).then_some(value));
    value.unwrap_or_else(|| panic!("no {field} in {info}")).parse().unwrap()
}
