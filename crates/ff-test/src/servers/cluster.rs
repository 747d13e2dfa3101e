//! A cluster.

use std::thread;

use super::options::ServerOptions;
use super::server::Server;
use super::topology::{Node, nodes_seen_by};
use super::wait::wait_until;
use crate::world::PATIENCE;

const SLOTS: usize = 16384;

/// Options of a cluster. The default is three primaries without replicas, in memory.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    pub primaries: usize,
    pub replicas_each: usize,
    /// How long a node may be silent before the others take it for gone.
    pub node_timeout_ms: u32,
    /// What holds for every node. Its part in the cluster is not taken from here.
    pub node: ServerOptions,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        let node = ServerOptions::default();
        Self { primaries: 3, replicas_each: 0, node_timeout_ms: 2_000, node }
    }
}

/// Nodes that share the slots evenly.
pub struct Cluster {
    nodes: Vec<Server>,
    ids: Vec<String>,
    options: ClusterOptions,
}

impl Cluster {
    /// Starts the nodes, makes a cluster of them, and returns when every node agrees that it is
    /// complete. A primary refuses to serve for its first two seconds, whatever the options say,
    /// so no start is faster than that.
    pub fn start(options: &ClusterOptions) -> Self {
        let nodes = start_nodes(options);
        let ids = nodes.iter().map(|node| node.must(&["CLUSTER", "MYID"])).collect();
        let cluster = Self { nodes, ids, options: options.clone() };
        cluster.assign_slots();
        for index in 0..cluster.nodes.len() {
            cluster.introduce(index);
        }
        cluster.attach_replicas();
        cluster.wait_until_whole();
        cluster
    }

    /// The nodes: first the primaries in the order of their slots, then the replicas of the first
    /// primary, those of the second and so on. An index means the same node for ever, also when it
    /// has changed its part.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The URL for a client. It names the first node.
    pub fn url(&self) -> String {
        format!("{}?cluster=1", self.nodes[0].url())
    }

    /// Adds a primary that serves no slot yet and knows nothing of what the others have loaded, and
    /// returns its index when every node knows it.
    pub fn join(&mut self) -> usize {
        let node = Server::start(node_options(&self.options));
        self.ids.push(node.must(&["CLUSTER", "MYID"]));
        self.nodes.push(node);
        let index = self.nodes.len() - 1;
        self.introduce(index);
        self.wait_until_whole();
        index
    }

    pub(super) fn id(&self, index: usize) -> &str {
        &self.ids[index]
    }

    pub(super) fn index_of(&self, id: &str) -> usize {
        self.ids.iter().position(|own| own == id).unwrap_or_else(|| panic!("{id} is a stranger"))
    }

    /// Epochs must differ, and can be set only while a node knows no other.
    fn assign_slots(&self) {
        let primaries = self.options.primaries;
        for (index, node) in self.nodes.iter().enumerate().take(primaries) {
            let first = (SLOTS * index / primaries).to_string();
            let last = (SLOTS * (index + 1) / primaries - 1).to_string();
            node.must(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            node.must(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        }
    }

    /// A node meets all before it. Every pair meets by itself: what nodes hear of each other by
    /// gossip comes much later. In one direction only, for two meetings at once get into each
    /// other's way.
    fn introduce(&self, index: usize) {
        for other in &self.nodes[..index] {
            let (port, bus_port) = (other.port().to_string(), other.bus_port().to_string());
            self.nodes[index].must(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus_port]);
        }
    }

    fn attach_replicas(&self) {
        let ClusterOptions { primaries, replicas_each, .. } = self.options;
        for (index, replica) in self.nodes.iter().enumerate().skip(primaries) {
            let primary = &self.ids[(index - primaries) / replicas_each];
            wait_until("the replica knows its primary", PATIENCE, || {
                nodes_seen_by(replica).iter().any(|node| node.id == *primary && node.is_sound())
            });
            replica.must(&["CLUSTER", "REPLICATE", primary]);
        }
    }

    fn wait_until_whole(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            let what = format!("node {index} sees a whole cluster");
            wait_until(&what, PATIENCE, || self.is_whole_for(node));
            if self.is_replica(index) {
                wait_until("the replica follows its primary", PATIENCE, || {
                    node.must(&["INFO", "replication"]).contains("master_link_status:up")
                });
            }
        }
    }

    /// Whether a node was started as one.
    fn is_replica(&self, index: usize) -> bool {
        let ClusterOptions { primaries, replicas_each, .. } = self.options;
        (primaries..primaries * (1 + replicas_each)).contains(&index)
    }

    fn is_whole_for(&self, node: &Server) -> bool {
        let seen = nodes_seen_by(node);
        let replicas = seen.iter().filter(|node| node.is("slave")).count();
        seen.len() == self.nodes.len()
            && seen.iter().all(Node::is_sound)
            && replicas == self.options.primaries * self.options.replicas_each
            && node.must(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
    }
}

fn start_nodes(options: &ClusterOptions) -> Vec<Server> {
    assert!(options.primaries > 0, "a cluster without primaries");
    let node = node_options(options);
    let count = options.primaries * (1 + options.replicas_each);
    thread::scope(|scope| {
        let start = |_| scope.spawn(|| Server::start(node.clone()));
        let starts: Vec<_> = (0..count).map(start).collect();
        starts.into_iter().map(|start| start.join().expect("a node")).collect()
    })
}

fn node_options(options: &ClusterOptions) -> ServerOptions {
    let mut node = ServerOptions { cluster: true, replica_of: None, ..options.node.clone() };
    node.extra.insert(0, format!("cluster-node-timeout {}", options.node_timeout_ms));
    node
}
