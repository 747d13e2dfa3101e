//! Slots that move between the nodes of a cluster while it serves clients.

use super::cluster::Cluster;
use super::resp::{Connection, Reply};
use super::server::Server;
use super::topology::nodes_seen_by;
use super::wait::wait_until;
use crate::world::PATIENCE;

/// How many keys go in one message.
const KEYS_PER_MESSAGE: usize = 100;

impl Cluster {
    /// The slot of a key.
    pub fn slot_of(&self, key: &str) -> u16 {
        self.any_node().must(&["CLUSTER", "KEYSLOT", key]).parse().unwrap()
    }

    /// The index of the node that serves a slot. While a slot moves, that is the old one.
    ///
    /// # Panics
    /// When no running node serves it.
    pub fn owner_of(&self, slot: u16) -> usize {
        let claims = self.nodes().iter().filter(|node| node.is_up()).filter_map(|node| {
            let itself = nodes_seen_by(node).into_iter().find(|seen| seen.is("myself"))?;
            (itself.is("master") && itself.owns(slot)).then_some(itself)
        });
        // One that lost the slot and has not heard of it has the older claim.
        let owner = claims.max_by_key(|claim| claim.epoch);
        self.index_of(&owner.unwrap_or_else(|| panic!("nobody serves slot {slot}")).id)
    }

    /// Moves a slot with all its keys from one node to another.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        self.move_keys(slot, from, to, usize::MAX);
        self.end_move(slot, from, to);
    }

    /// Opens the slot on both nodes. Clients that ask `from` for a key it has not are sent to `to`
    /// for that once. The new node must know first, or it would refuse those clients.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        self.nodes()[to].must(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", self.id(from)]);
        self.nodes()[from].must(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", self.id(to)]);
    }

    /// Moves up to `keys_max` of the slot's keys and returns how many there were. Zero means that
    /// none is left.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize, keys_max: usize) -> usize {
        let mut source = self.nodes()[from].connect().unwrap();
        let mut moved = 0;
        while moved < keys_max {
            let keys = keys_in_slot(&mut source, slot, KEYS_PER_MESSAGE.min(keys_max - moved));
            if keys.is_empty() {
                break;
            }
            migrate(&mut source, &self.nodes()[to], &keys);
            moved += keys.len();
        }
        moved
    }

    /// Gives the slot to `to`, and returns when every running node knows.
    ///
    /// The new owner hears of it first: if the old one did, nobody would own the slot in between.
    ///
    /// # Panics
    /// When `from` still has keys of the slot.
    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        let number = slot.to_string();
        let others = (0..self.nodes().len()).filter(|index| *index != to && *index != from);
        for index in [to, from].into_iter().chain(others) {
            let node = &self.nodes()[index];
            if node.is_up() && is_primary(node) {
                node.must(&["CLUSTER", "SETSLOT", &number, "NODE", self.id(to)]);
            }
        }
        for node in self.nodes().iter().filter(|node| node.is_up()) {
            wait_until("all nodes know the new owner", PATIENCE, || {
                nodes_seen_by(node).iter().any(|seen| seen.owns(slot) && seen.id == self.id(to))
            });
        }
    }

    fn any_node(&self) -> &Server {
        self.nodes().iter().find(|node| node.is_up()).expect("a running node")
    }
}

fn is_primary(node: &Server) -> bool {
    nodes_seen_by(node).iter().any(|seen| seen.is("myself") && seen.is("master"))
}

fn keys_in_slot(node: &mut Connection, slot: u16, keys_max: usize) -> Vec<Vec<u8>> {
    let (slot, keys_max) = (slot.to_string(), keys_max.to_string());
    let words: [&[u8]; 4] = [b"CLUSTER", b"GETKEYSINSLOT", slot.as_bytes(), keys_max.as_bytes()];
    let Ok(Reply::List(keys)) = node.call(&words) else { panic!("no keys of slot {slot}") };
    let key = |reply| match reply {
        Reply::Text(key) => key,
        _ => panic!("a key of slot {slot} is no text"),
    };
    keys.into_iter().map(key).collect()
}

/// Keys that are there already are replaced: they are the leftovers of a move that broke off.
fn migrate(source: &mut Connection, target: &Server, keys: &[Vec<u8>]) {
    let (port, timeout_ms) = (target.port().to_string(), PATIENCE.as_millis().to_string());
    let mut words: Vec<&[u8]> =
        vec![b"MIGRATE", b"127.0.0.1", port.as_bytes(), b"", b"0", timeout_ms.as_bytes()];
    words.push(b"REPLACE");
    if let Some(password) = target.password() {
        words.extend([&b"AUTH"[..], password.as_bytes()]);
    }
    words.push(b"KEYS");
    words.extend(keys.iter().map(Vec::as_slice));
    let moved = source.call(&words);
    assert!(moved.is_ok(), "keys do not move: {:?}", moved.err());
}
