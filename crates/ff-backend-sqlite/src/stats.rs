//! What the store has done so far, counted where it costs next to nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Transactions of the writer.
    pub batches: u64,
    /// Commands and looks for work in them; a claim that waits is counted at every look.
    pub commands: u64,
    /// Reads beside the writer.
    pub reads: u64,
}

/// The counters behind [`Stats`]. Each stands alone: a snapshot may fall between two of them.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    batches: AtomicU64,
    commands: AtomicU64,
    reads: AtomicU64,
}

impl Counters {
    pub(crate) fn add_batch(&self, commands: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.commands.fetch_add(commands as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            batches: self.batches.load(Ordering::Relaxed),
            commands: self.commands.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
        }
    }
}
