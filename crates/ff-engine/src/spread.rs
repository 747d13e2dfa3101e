//! Several engines on one store: each begins elsewhere, and one of them does what one is enough for.

use std::time::Duration;

use ff_core::backend::Backend;
use ff_core::error::EngineError;
use ff_core::turns::Turn;
use uuid::Uuid;

/// Who says that a turn is over waits no longer for the store.
const PARTING: Duration = Duration::from_secs(1);

/// Where an engine begins to look among `n`: FNV-1a of its name, so that engines begin apart.
pub fn scan_cursor_seed(instance: &str, n: usize) -> usize {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = instance.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    let n = u64::try_from(n).unwrap_or(u64::MAX);
    hash.checked_rem(n).map_or(0, |place| usize::try_from(place).unwrap_or(0))
}

/// The turn of one scanner, as one engine knows it.
pub(crate) struct Standing {
    turn: Turn,
    has_it: bool,
}

impl Standing {
    /// Whoever has the turn asks again after each interval; should it be gone, another has the turn soon.
    pub(crate) fn new(of: &'static str, by: Uuid, interval: Duration) -> Self {
        let ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        let ms = ms.saturating_mul(2).saturating_add(1_000);
        Self { turn: Turn { of, by, ms }, has_it: false }
    }

    pub(crate) async fn take(&mut self, backend: &dyn Backend) -> Result<bool, EngineError> {
        self.has_it = backend.take_turn(self.turn.clone()).await?;
        Ok(self.has_it)
    }

    /// Whoever stops makes room at once; otherwise the turn ends by itself.
    pub(crate) async fn leave(self, backend: &dyn Backend) {
        if self.has_it {
            let over = Turn { ms: 0, ..self.turn };
            let _ = tokio::time::timeout(PARTING, backend.take_turn(over)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_for_same_input() {
        assert_eq!(scan_cursor_seed("engine-1", 97), scan_cursor_seed("engine-1", 97));
        // FNV-1a of nothing is its basis.
        assert_eq!(scan_cursor_seed("", 1 << 20), 0xcbf2_9ce4_8422_2325_usize % (1 << 20));
    }

    #[test]
    fn distinct_for_different_ids() {
        let seeds: std::collections::BTreeSet<_> =
            (0..64).map(|n| scan_cursor_seed(&format!("engine-{n}"), 1 << 20)).collect();
        assert_eq!(seeds.len(), 64);
    }

    #[test]
    fn bounded_by_partition_count() {
        for n in [1, 2, 7, 256] {
            assert!((0..64).all(|id| scan_cursor_seed(&format!("engine-{id}"), n) < n), "{n}");
        }
    }

    #[test]
    fn zero_partitions_returns_zero() {
        assert_eq!(scan_cursor_seed("engine-1", 0), 0);
    }
}
