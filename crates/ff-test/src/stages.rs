//! The backends that tests run on.

use std::sync::Arc;

use ff_backend_sqlite::{Clock, Durability, ManualClock, SqliteOptions, SqliteStore};
use ff_core::backend::{Backend, Pending};
use ff_core::machine::Settings;
use ff_core::partition::PartitionConfig;
use ff_core::time::TimestampMs;
use tempfile::TempDir;

use crate::oracle::Oracle;
use crate::world::{Stage, World};

/// Where every test's clock begins: far enough from zero for anything to lie in the past.
pub const BEGINNING: TimestampMs = TimestampMs(1_800_000_000_000);

struct OracleStage(Arc<Oracle>);

impl Stage for OracleStage {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.0) as Arc<dyn Backend>
    }

    fn advance(&self, ms: i64) -> Pending<'_, ()> {
        self.0.advance(ms);
        Box::pin(std::future::ready(()))
    }
}

/// A world on the oracle.
pub async fn oracle() -> World {
    let settings = Settings::new("oracle", PartitionConfig::default());
    World::new(OracleStage(Arc::new(Oracle::new(settings, BEGINNING))))
}

/// A SQLite store with a clock that stands until it is moved.
pub struct SqliteStage {
    pub store: Arc<SqliteStore>,
    pub clock: ManualClock,
    _directory: Option<TempDir>,
}

impl SqliteStage {
    /// On a file of its own that goes with it. Nothing here survives a loss of power, so nothing
    /// waits for the disk.
    pub fn on_file(partitions: PartitionConfig) -> Self {
        let directory = tempfile::tempdir().expect("a directory for the store");
        let options = SqliteOptions {
            durability: Durability::Off,
            ..SqliteOptions::file(directory.path().join("ff.db"))
        };
        Self::open(options, partitions, Some(directory))
    }

    pub fn in_memory(partitions: PartitionConfig) -> Self {
        Self::open(SqliteOptions::memory(), partitions, None)
    }

    fn open(
        options: SqliteOptions,
        partitions: PartitionConfig,
        directory: Option<TempDir>,
    ) -> Self {
        let clock = ManualClock::at(BEGINNING);
        let options = SqliteOptions {
            clock: Clock::Manual(clock.clone()),
            partitions: Some(partitions),
            ..options
        };
        let store = SqliteStore::open(options).expect("the store opens");
        Self { store: Arc::new(store), clock, _directory: directory }
    }
}

impl Stage for SqliteStage {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.store) as Arc<dyn Backend>
    }

    fn advance(&self, ms: i64) -> Pending<'_, ()> {
        self.clock.advance(ms);
        Box::pin(std::future::ready(()))
    }
}

/// A world on a SQLite file.
pub async fn sqlite_file() -> World {
    World::new(SqliteStage::on_file(PartitionConfig::default()))
}

/// A world on SQLite in memory.
pub async fn sqlite_memory() -> World {
    World::new(SqliteStage::in_memory(PartitionConfig::default()))
}
