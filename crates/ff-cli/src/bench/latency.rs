//! Latencies of a run and their percentiles.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Up to this long is told apart; longer counts as this long.
const LONGEST_NS: u64 = 600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

pub(crate) struct Latencies(Histogram<u64>);

/// Milliseconds; none where nothing was timed.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) max_ms: Option<f64>,
}

impl Latencies {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self(Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS)?))
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST_NS);
        self.0.saturating_record(ns);
    }

    pub(crate) fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        let histogram = Some(&self.0).filter(|histogram| !histogram.is_empty());
        let at = |quantile| histogram.map(|found| in_ms(found.value_at_quantile(quantile)));
        Percentiles {
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: histogram.map(|found| in_ms(found.max())),
        }
    }
}

/// To the microsecond.
fn in_ms(ns: u64) -> f64 {
    (ns as f64 / 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_in_milliseconds() {
        let mut latencies = Latencies::new().unwrap();
        assert_eq!(latencies.percentiles().p50_ms, None);
        for ms in 1..=100 {
            latencies.record(Duration::from_millis(ms));
        }
        let found = latencies.percentiles();
        for (value, about) in [(found.p50_ms, 50.0), (found.p99_ms, 99.0), (found.max_ms, 100.0)] {
            let value = value.unwrap();
            assert!((value - about).abs() / about < 0.002, "{value} is not {about}");
        }
    }
}
