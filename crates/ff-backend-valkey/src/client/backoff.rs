//! Growing, uneven pauses between tries.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);

/// Doubles from 10 ms to 1 s. Each pause is drawn from its upper half, so that the processes that
/// lost the same server do not come back to it in step.
#[derive(Debug)]
pub(super) struct Backoff {
    full: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { full: FIRST }
    }

    pub(super) fn pause(&mut self) -> Duration {
        let full = self.full;
        self.full = (full * 2).min(LONGEST);
        full / 2 + full.mul_f64(fraction() / 2.0)
    }
}

/// From 0 to 1. The keys of the standard library's hasher are random; nothing else is needed here.
fn fraction() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    f64::from((random >> 32) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_within_bounds() {
        let mut backoff = Backoff::new();
        let mut full = FIRST;
        for _ in 0..12 {
            let pause = backoff.pause();
            assert!((full / 2..=full).contains(&pause), "{pause:?} of {full:?}");
            full = (full * 2).min(LONGEST);
        }
        assert_eq!(full, LONGEST);
    }
}
