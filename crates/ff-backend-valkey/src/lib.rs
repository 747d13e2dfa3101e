//! FlowFabric on Valkey or Redis: one node, a primary with replicas, or a cluster.
//!
//! The rules run in Rust, over what was read; one function, `ff_commit`, performs what they decided
//! if what they read is unchanged. A caller that knows an execution (it claimed it, or it makes it)
//! needs no read first, so hot operations are one round trip. Only claiming decides anything in the
//! store: which entry of a queue comes first. docs/internals/valkey.md has layout and wake on one page.

mod apply;
mod ask;
mod assure;
mod attendance;
mod audit;
mod boot;
mod change;
mod claim;
mod classes;
mod client;
mod clock;
mod combine;
mod commit;
mod crowd;
mod document;
mod due;
mod emptied;
mod entries;
mod error;
mod everywhere;
mod fleet;
mod floor;
mod follow;
mod frames;
mod growth;
mod homes;
mod item;
mod keyring;
mod keys;
mod keyspace;
mod lane_counts;
mod lanes;
mod leases;
mod library;
mod listing;
mod log;
mod measure;
mod near;
mod net;
mod options;
mod partitions;
mod passed;
mod query;
mod read;
mod recent;
mod reconcile;
mod record;
mod repair;
mod reply;
mod room;
mod routes;
mod search;
mod seen;
mod stale;
mod store;
mod subject;
mod tails;
mod timers;
mod token;
mod trim;
mod turn;
mod upsets;
mod view;
mod waiters;
mod wake;
mod walk;
mod watches;

pub use client::LibraryVersion;
pub use error::OpenError;
pub use floor::{Floor, FloorReport};
pub use options::{Durability, LibraryClock, Password, ValkeyOptions};
pub use store::ValkeyStore;
