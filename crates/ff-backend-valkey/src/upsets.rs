//! Moments after which a store may have forgotten what it said.
//!
//! A server that comes back, or a replica that takes a primary's place, may lack the last writes, and
//! others may stand where those stood, under the same revisions. A commit cannot tell them apart. So what
//! a process remembers of records ends with every connection, with every change of who serves what, and
//! when logs are found shorter than they were.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts them. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Upsets(Arc<AtomicU64>);

impl Upsets {
    pub(crate) fn note(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// What is remembered up to the next of them.
#[derive(Debug)]
pub(crate) struct UntilUpset<T> {
    kept: Mutex<(u64, T)>,
    upsets: Upsets,
    empty: fn() -> T,
}

impl<T> UntilUpset<T> {
    pub(crate) fn new(upsets: &Upsets, empty: fn() -> T) -> Self {
        Self { kept: Mutex::new((upsets.count(), empty())), upsets: upsets.clone(), empty }
    }

    /// With what is remembered since the last of them.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let mut kept: MutexGuard<'_, (u64, T)> =
            self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let upsets = self.upsets.count();
        if kept.0 != upsets {
            *kept = (upsets, (self.empty)());
        }
        act(&mut kept.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upset_ends_what_is_remembered() {
        let upsets = Upsets::default();
        let kept = UntilUpset::new(&upsets, Vec::new);
        kept.with(|kept| kept.push(1));
        assert_eq!(kept.with(|kept| kept.clone()), [1]);
        upsets.note();
        assert_eq!(kept.with(|kept| kept.clone()), [0; 0]);
        kept.with(|kept| kept.push(2));
        assert_eq!(kept.with(|kept| kept.clone()), [2]);
    }
}
