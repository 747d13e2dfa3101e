//! Private Valkey servers for tests: alone, replicated and as a cluster.
//!
//! - [`Server`]: one process that a test may kill, pause, stop and restart.
//! - [`Replicated`]: a primary with a replica that can take over.
//! - [`Cluster`]: primaries that share the slots, and slots that move between them.
//! - [`TlsFront`]: TLS before a server.
//! - [`standalone`] and [`cluster`]: one of each for a whole test process, for tests that keep to
//!   a prefix of their own and break nothing.
//! - [`wait_until`]: how tests wait for what no server announces, with a [`LOOK`] now and then.
//!
//! Every server listens on the loopback only, on ports and in a directory of its own, and ends
//! with the process that started it, however that ends. All calls block; an async test makes them
//! where blocking does no harm.
//!
//! The binary is the one that `FF_VALKEY_SERVER` names, else the one that
//! `scripts/install-test-tools` provides, else the one on the `PATH`. A test that finds none fails.

mod binary;
mod cluster;
mod log;
mod options;
mod ports;
mod process;
mod replicated;
mod resp;
mod server;
mod shared;
mod slots;
mod tls;
mod topology;
mod wait;

pub use cluster::{Cluster, ClusterOptions};
pub use options::{Persistence, ServerOptions};
pub use replicated::Replicated;
pub use server::Server;
pub use shared::{cluster, standalone};
pub use tls::TlsFront;
pub use wait::{LOOK, wait_until};
