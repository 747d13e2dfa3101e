//! The backends that tests run on.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use ff_backend_sqlite::{Clock, Durability, ManualClock, SqliteOptions, SqliteStore};
use ff_backend_valkey::{LibraryClock, ValkeyOptions, ValkeyStore};
use ff_core::backend::{Backend, Pending, Upkeep as _};
use ff_core::machine::Settings;
use ff_core::partition::PartitionConfig;
use ff_core::time::TimestampMs;
use ff_core::token::Secret;
use tempfile::TempDir;

use crate::oracle::Oracle;
use crate::servers;
use crate::world::{Stage, World};

/// Where every test's clock begins: far enough from zero for anything to lie in the past.
pub const BEGINNING: TimestampMs = TimestampMs(1_800_000_000_000);

/// Signs waitpoint tokens on every stage, so that all of them make the same ones.
pub fn secret() -> Secret {
    Secret::from_bytes(vec![7; 32]).expect("32 bytes are a secret")
}

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
    directory: Option<TempDir>,
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
            partitions: Some(partitions).into(),
            waitpoint_secret: Some(secret()),
            ..options
        };
        let store = SqliteStore::open(options).expect("the store opens");
        Self { store: Arc::new(store), clock, directory }
    }

    /// The store as it is after its process was killed. The file must be let go of first.
    pub fn after_a_kill(self) -> Self {
        let Self { store, clock, directory } = self;
        let partitions = store.settings().partitions;
        drop(store);
        let path = directory.as_ref().expect("a store on a file").path().join("ff.db");
        let options = SqliteOptions { durability: Durability::Off, ..SqliteOptions::file(path) };
        let reopened = Self::open(options, partitions, directory);
        reopened.clock.advance(clock.now().0 - BEGINNING.0);
        reopened
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

/// A Valkey store on a server that tests share, with keys of its own and a clock that stands until
/// it is moved.
pub struct ValkeyStage {
    pub store: Arc<ValkeyStore>,
    options: ValkeyOptions,
    now: AtomicI64,
}

impl ValkeyStage {
    pub async fn standalone(partitions: PartitionConfig) -> Self {
        let options = Self::options(&servers::standalone().url(), partitions);
        Self::open(ValkeyOptions { fifo_slack_ms: 0, ..options }).await
    }

    pub async fn cluster(partitions: PartitionConfig) -> Self {
        let options = Self::options(&servers::cluster().url(), partitions);
        Self::open(ValkeyOptions { fifo_slack_ms: 0, ..options }).await
    }

    /// Keys of its own on a server with a settable clock.
    fn options(url: &str, partitions: PartitionConfig) -> ValkeyOptions {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let options: ValkeyOptions = url.parse().expect("a url");
        ValkeyOptions {
            prefix: format!("t{}", STORES.fetch_add(1, Ordering::Relaxed)),
            partitions: Some(partitions).into(),
            clock: LibraryClock::Settable,
            waitpoint_secret: Some(secret()),
            ..options
        }
    }

    /// What its keys begin with.
    pub fn prefix(&self) -> &str {
        &self.options.prefix
    }

    async fn open(options: ValkeyOptions) -> Self {
        let store = ValkeyStore::open(options.clone()).await.expect("the store opens");
        store.set_clock(BEGINNING).await.expect("the clock is set");
        Self { store: Arc::new(store), options, now: AtomicI64::new(BEGINNING.0) }
    }

    /// Another process on the same keys, after this one was killed.
    pub async fn after_a_kill(self) -> Self {
        let Self { store, options, now } = self;
        drop(store);
        let store = ValkeyStore::open(options.clone()).await.expect("the store opens");
        Self { store: Arc::new(store), options, now }
    }
}

impl Stage for ValkeyStage {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.store) as Arc<dyn Backend>
    }

    fn advance(&self, ms: i64) -> Pending<'_, ()> {
        Box::pin(async move {
            let now = self.now.fetch_add(ms, Ordering::SeqCst) + ms;
            self.store.set_clock(TimestampMs(now)).await.expect("the clock is moved");
        })
    }

    fn clear(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            self.store.remove_everything().await.expect("the keys are removed");
        })
    }
}

/// A world on one Valkey node that claims as a deployment does, by what it remembers of queues.
pub async fn valkey_by_memory() -> World {
    let options = ValkeyStage::options(&servers::standalone().url(), PartitionConfig::default());
    World::new(ValkeyStage::open(options).await)
}

/// The same on a cluster.
pub async fn valkey_cluster_by_memory() -> World {
    let options = ValkeyStage::options(&servers::cluster().url(), PartitionConfig::default());
    World::new(ValkeyStage::open(options).await)
}

/// A world on one Valkey node.
pub async fn valkey_standalone() -> World {
    World::new(ValkeyStage::standalone(PartitionConfig::default()).await)
}

/// A world on a Valkey cluster of three.
pub async fn valkey_cluster() -> World {
    World::new(ValkeyStage::cluster(PartitionConfig::default()).await)
}

/// A store of a test's own making, in its own time.
pub struct InItsTime(pub Arc<dyn Backend>);

impl Stage for InItsTime {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.0)
    }

    fn advance(&self, _: i64) -> Pending<'_, ()> {
        panic!("the clock of this store cannot be moved")
    }
}
