//! FlowFabric's core: the vocabulary, the operations, the errors and the rules, without I/O.
//!
//! - [`id`], [`state`], [`policy`]: what things are called and what an execution looks like.
//! - [`operation`]: every act on an execution as a value with a typed reply.
//! - [`machine`]: the rules. A pure function from facts and a command to a reply and changes.
//! - [`read`]: questions and answers, among them the flat record that users see and `explain`.
//! - [`token`]: waitpoint tokens, and the keyring that signs and checks them.
//! - [`backend`]: the small trait that every store implements.
//! - [`act`]: what takes several steps on a store, and one request where a server stands before it.
//! - [`errand`]: what a step in one home means for another, carried out.
//! - [`routes`]: what waits for a worker that can run it is let go once there is one.
//! - [`unblock`]: what limits keep back is let go once they have room.
//! - [`each`](mod@each): the same step on many, of which some may be broken.
//! - [`shared_look`]: one looks at a store for all who want to know the same.
//! - [`error`]: refusals, faults and bugs with stable codes.
//!
//! No rule knows a clock, a random number or a runtime: time and ids are arguments. Only what is
//! written once over [`backend`], for every store, waits.

pub mod act;
mod admission;
pub mod backend;
pub mod capability;
mod check;
pub mod content;
pub mod cursor;
pub mod disown;
pub mod each;
pub mod errand;
pub mod error;
pub mod event;
mod explain;
pub mod id;
pub mod layer;
pub mod limits;
pub mod machine;
#[cfg(feature = "openapi")]
mod openapi;
pub mod operation;
pub mod partition;
pub mod policy;
pub mod read;
pub mod recent;
pub mod rota;
pub mod routes;
pub mod shared_look;
mod spared;
pub mod state;
pub mod summary;
pub mod tags;
pub mod tails;
pub mod tally;
pub mod time;
pub mod token;
pub mod turns;
pub mod unblock;

#[cfg(test)]
mod bad_input;
