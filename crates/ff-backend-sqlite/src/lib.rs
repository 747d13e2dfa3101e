//! FlowFabric embedded: the whole state of the engine in one SQLite file.
//!
//! One process owns the file. Inside it one writer thread takes whatever is waiting as one batch
//! and one transaction (group commit); reads run beside it on connections of their own. Claims and
//! followers that wait are woken by the writer itself, right after the commit.
//!
//! [`SqliteStore`] is the way in; [`SqliteOptions`] says where and how.

mod audit;
mod clock;
mod error;
mod fleet;
mod floor;
mod follow;
mod frames;
mod load;
mod options;
mod owner;
mod passed;
mod query;
mod queues;
mod readers;
mod reconcile;
mod records;
mod repair;
mod routes;
mod schema;
mod stale;
mod statements;
mod stats;
mod store;
mod trim;
mod write;
mod writer;

pub use clock::{Clock, ManualClock};
pub use error::OpenError;
pub use floor::{Floor, FloorError, FloorReport};
pub use options::{Durability, SqliteOptions};
pub use schema::Schema;
pub use stats::Stats;
pub use store::SqliteStore;
