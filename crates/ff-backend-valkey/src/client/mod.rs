//! The way to the server: connections, and a router of calls over them.
//!
//! Owned here: which node a call goes to, when a call is sent again, what an unanswered call
//! means, the function library on every node, and waiting for replicas. Not owned: what is said;
//! calls and replies are opaque.
//!
//! The router is our own, over single connections of the `redis` crate, because a call must be
//! sent again only if it was certainly not carried out. That is so when the server said it does
//! not serve it (`MOVED`, `ASK`, `TRYAGAIN`, `CLUSTERDOWN`, `LOADING`, `READONLY`, `MASTERDOWN`, a
//! function that is not there) and when nothing was written because there was no connection.
//! When the connection broke or the time was up after the command was handed over, the outcome is
//! unknown and the caller must hear it. The crate's cluster client repeats both. One server
//! without a cluster is the same router with one node that owns all slots.
//!
//! A call takes the table of slots, then the connection of the slot's node, each by a short read
//! lock, and waits for its answer on the shared connection. Everything else is in tasks beside it:
//! one per node that keeps its connection (`link`), one that learns the cluster's layout
//! (`refresh`), and with `durability=replica` a few per node that carry groups of calls (`group`).

mod address;
mod backoff;
mod connection;
mod connector;
mod dedicated;
mod effort;
mod establish;
#[cfg(test)]
mod fake;
mod gather;
mod ground;
mod group;
mod info;
mod inspect;
mod link;
mod load;
mod node;
mod obstacle;
mod patience;
mod refresh;
mod router;
mod settle;
mod slot;
mod tls;
mod topology;
mod verdict;

pub(crate) use address::Address;
pub(crate) use connection::Connection;
pub(crate) use dedicated::Dedicated;
pub(crate) use info::Info;
pub use inspect::LibraryVersion;
pub(crate) use inspect::inspect;
pub(crate) use obstacle::Obstacle;
pub(crate) use patience::Patience;
pub(crate) use router::{Client, Looked};
pub(crate) use slot::slot_of;
pub(crate) use topology::Primary;
