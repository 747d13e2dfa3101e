//! The stores that can be measured, and what only some of them tell.

use std::sync::Arc;
use std::time::Duration;

use ff_backend_sqlite::SqliteStore;
use ff_backend_valkey::ValkeyStore;
use ff_core::backend::Backend;
use ff_core::error::EngineError;

use super::place::{Options, Place};

#[derive(Clone)]
pub(crate) enum Store {
    Sqlite(Arc<SqliteStore>),
    Valkey(Arc<ValkeyStore>),
}

/// What a store has done up to an instant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    /// SQLite: commands and looks for work. Valkey: commands on the wire.
    pub(crate) commands: u64,
    /// SQLite: transactions of the writer. Valkey: commands on the wire.
    pub(crate) batches: u64,
    /// What a store on a server is asked. SQLite: transactions and reads. Valkey: commands on the
    /// wire.
    pub(crate) calls: u64,
}

impl Store {
    pub(crate) async fn open(place: &Place) -> anyhow::Result<Self> {
        Ok(match &place.options {
            Options::Sqlite(options) => Self::Sqlite(Arc::new(SqliteStore::open(options.clone())?)),
            Options::Valkey(options) => {
                Self::Valkey(Arc::new(ValkeyStore::open(options.clone()).await?))
            }
        })
    }

    pub(crate) fn backend(&self) -> Arc<dyn Backend> {
        match self {
            Self::Sqlite(store) => Arc::clone(store) as Arc<dyn Backend>,
            Self::Valkey(store) => Arc::clone(store) as Arc<dyn Backend>,
        }
    }

    pub(crate) async fn counts(&self) -> Result<Counts, EngineError> {
        match self {
            Self::Sqlite(store) => {
                let stats = store.stats();
                let calls = stats.batches + stats.reads;
                Ok(Counts { commands: stats.commands, batches: stats.batches, calls })
            }
            Self::Valkey(store) => {
                let sent = store.commands_sent().await?;
                Ok(Counts { commands: sent, batches: sent, calls: sent })
            }
        }
    }

    pub(crate) async fn size_bytes(&self) -> Result<u64, EngineError> {
        match self {
            Self::Sqlite(store) => store.size_bytes().await,
            Self::Valkey(store) => store.size_bytes().await,
        }
    }

    /// Processor time of the servers so far; none where the store runs in this process.
    pub(crate) async fn server_cpu(&self) -> Result<Option<Duration>, EngineError> {
        match self {
            Self::Sqlite(_) => Ok(None),
            Self::Valkey(store) => store.server_cpu().await.map(Some),
        }
    }

    /// How many executions the floor takes together, to be as far as callers who bring `batch` at
    /// once get: SQLite puts what comes at the same time into one transaction, `steps` on average;
    /// on a server the caller's batch is the call.
    pub(crate) fn floor_group(&self, batch: u32, steps: f64) -> usize {
        match self {
            Self::Sqlite(_) => steps.round().max(1.0) as usize,
            Self::Valkey(_) => batch as usize,
        }
    }
}
