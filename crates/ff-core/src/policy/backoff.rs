//! How long a failed attempt waits for the next. Integers only, and jitter from a hash, so that
//! every store computes the same delay.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use crate::check::check_range;
use crate::error::Refusal;
use crate::id::ExecutionId;
use crate::limits::DURATION_MAX_MS;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    pub curve: BackoffCurve,
    /// Spreads the delay over its upper half.
    pub jitter: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackoffCurve {
    Fixed { delay_ms: u64 },
    Exponential { initial_delay_ms: u64, max_delay_ms: u64, multiplier_thousandths: u32 },
}

impl Default for Backoff {
    fn default() -> Self {
        let curve = BackoffCurve::Exponential {
            initial_delay_ms: 1_000,
            max_delay_ms: 60_000,
            multiplier_thousandths: 2_000,
        };
        Self { curve, jitter: false }
    }
}

impl Backoff {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        match self.curve {
            BackoffCurve::Fixed { delay_ms } => {
                check_range("delay_ms", delay_ms, 0, DURATION_MAX_MS)
            }
            BackoffCurve::Exponential {
                initial_delay_ms,
                max_delay_ms,
                multiplier_thousandths,
            } => {
                check_range("initial_delay_ms", initial_delay_ms, 0, DURATION_MAX_MS)?;
                check_range("max_delay_ms", max_delay_ms, 0, DURATION_MAX_MS)?;
                if (1_000..=1_000_000).contains(&multiplier_thousandths) {
                    Ok(())
                } else {
                    Err(Refusal::invalid("multiplier", "multiplier must be from 1 to 1000"))
                }
            }
        }
    }

    /// Delay before retry `retry_count + 1`.
    pub fn delay_ms(&self, id: ExecutionId, retry_count: u32) -> u64 {
        let delay = self.curve.delay_ms(retry_count);
        if self.jitter { spread(delay, id, retry_count) } else { delay }
    }
}

impl BackoffCurve {
    fn delay_ms(self, retry_count: u32) -> u64 {
        match self {
            Self::Fixed { delay_ms } => delay_ms,
            Self::Exponential { initial_delay_ms, max_delay_ms, multiplier_thousandths } => {
                let multiplier = u64::from(multiplier_thousandths).max(1);
                let mut delay = initial_delay_ms.min(max_delay_ms);
                for _ in 0..retry_count {
                    // Compared before it is multiplied, so that no product leaves 2^53: Lua
                    // computes the same with doubles.
                    let next = if delay > max_delay_ms * 1000 / multiplier {
                        max_delay_ms
                    } else {
                        (delay * multiplier / 1000).min(max_delay_ms)
                    };
                    if next == delay {
                        break;
                    }
                    delay = next;
                }
                delay
            }
        }
    }
}

/// A point of `[delay/2, delay]` chosen by the first eight hex digits of a SHA-1.
fn spread(delay: u64, id: ExecutionId, retry_count: u32) -> u64 {
    let mut text = String::new();
    let _ = write!(text, "{id}:{retry_count}");
    let digest = Sha1::digest(text.as_bytes());
    let point = digest.iter().take(4).fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
    let half = delay / 2;
    half + point % (delay - half + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(initial: u64, max: u64, multiplier: u32) -> BackoffCurve {
        BackoffCurve::Exponential {
            initial_delay_ms: initial,
            max_delay_ms: max,
            multiplier_thousandths: multiplier,
        }
    }

    #[test]
    fn exponential_grows_to_its_maximum() {
        let delays = |curve: BackoffCurve| (0..8).map(|n| curve.delay_ms(n)).collect::<Vec<_>>();
        assert_eq!(
            delays(curve(1000, 60_000, 2000)),
            [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]
        );
        assert_eq!(delays(curve(7, 1000, 1500)), [7, 10, 15, 22, 33, 49, 73, 109]);
        assert_eq!(delays(curve(500, 100, 3000)), [100; 8]);
        assert_eq!(delays(curve(0, 100, 3000)), [0; 8]);
    }

    #[test]
    fn huge_counts_cost_nothing() {
        assert_eq!(curve(1, 315_360_000_000, 1_000_000).delay_ms(u32::MAX), 315_360_000_000);
        assert_eq!(curve(5, 100, 1000).delay_ms(u32::MAX), 5);
    }

    #[test]
    fn jitter_stays_in_the_upper_half_and_differs() {
        let backoff = Backoff { curve: BackoffCurve::Fixed { delay_ms: 1000 }, jitter: true };
        let delays: std::collections::BTreeSet<_> = (0..50)
            .map(|n| backoff.delay_ms(ExecutionId::new(n, uuid::Uuid::from_u128(1)), 0))
            .collect();
        assert!(delays.len() > 30);
        assert!(delays.iter().all(|delay| (500..=1000).contains(delay)));
    }
}
