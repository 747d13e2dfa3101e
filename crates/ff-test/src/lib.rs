//! What proves FlowFabric.
//!
//! - [`oracle`]: the pure machine over maps in memory, as a backend: the model that stores are
//!   compared with.
//! - [`world`]: a backend with a clock that the test moves, and short words for common acts.
//! - [`certificate`]: certificates for TLS.
//! - [`conformance`]: one body of tests for every backend.
//! - [`docs`]: pages of the documentation that the code makes.
//! - [`grants`]: short words for grants.
//! - [`graphs`]: short words for flows.
//! - [`history`]: invariants that only the event log shows.
//! - [`differential`]: random operations on the oracle and on a store, every reply and the whole
//!   state compared.
//! - [`http`]: a live server over a store, and a client.
//! - [`limits`]: short words for budgets and quota policies.
//! - [`registered`]: a backend whose workers need not register.
//! - [`remote`]: a server over a store, reached by a remote backend.
//! - [`servers`]: private Valkey servers that a test may kill, pause and restart.
//! - [`signalling`]: waitpoints, signals and suspends with defaults.
//! - [`sound`]: what a store finds wrong with itself.
//! - [`spoiled`]: a backend that fails as a test says.
//! - [`waits`]: short words for suspensions, waitpoints and signals.
//! - [`workload`]: callers that go on through faults, and a ledger of what they were told.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

pub mod certificate;
pub mod collector;
pub mod conformance;
pub mod differential;
pub mod docs;
pub mod fleet;
pub mod grants;
pub mod graphs;
pub mod history;
pub mod http;
pub mod limits;
pub mod lives;
pub mod oracle;
pub mod output;
pub mod registered;
pub mod remote;
pub mod sdk;
pub mod servers;
pub mod signalling;
pub mod sound;
pub mod spoiled;
pub mod stages;
pub mod waits;
pub mod workload;
pub mod world;
