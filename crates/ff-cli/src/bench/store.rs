//! What can be measured of a store, and what only some of them tell.

use std::collections::BTreeMap;
use std::time::Duration;

use ff_core::error::EngineError;

use crate::stores::Store;

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

    /// Calls of functions so far, by the least power of two in microseconds that they did not exceed;
    /// none where the store has no functions.
    pub(crate) async fn call_times(&self) -> Result<BTreeMap<u64, u64>, EngineError> {
        match self {
            Self::Sqlite(_) => Ok(BTreeMap::new()),
            Self::Valkey(store) => store.call_times().await,
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
