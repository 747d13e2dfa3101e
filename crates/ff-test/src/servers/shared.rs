//! Servers that all tests of a process share, started when the first one asks. A test that kills,
//! pauses, flushes or reconfigures starts its own instead.

use std::sync::OnceLock;

use super::cluster::{Cluster, ClusterOptions};
use super::options::ServerOptions;
use super::server::Server;

/// A server without persistence.
pub fn standalone() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(ServerOptions::default()))
}

/// A cluster of three primaries without persistence and without replicas.
pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(&ClusterOptions::default()))
}
