//! How many may pass in a time.

use std::time::{Duration, Instant};

/// Tokens that fill up evenly. Time is an argument.
#[derive(Debug)]
pub(super) struct Bucket {
    per_second: f64,
    burst: f64,
    /// Below zero: what is owed to those who went before.
    tokens: f64,
    filled_at: Instant,
}

impl Bucket {
    pub(super) fn new(per_second: f64, burst: u32, now: Instant) -> Self {
        let burst = f64::from(burst.max(1));
        Self { per_second, burst, tokens: burst, filled_at: now }
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst);
        self.filled_at = self.filled_at.max(now);
    }

    /// Lets `count` pass together if nothing is owed: a batch larger than the burst passes too, and
    /// those behind it wait the longer. Otherwise how long until something may pass.
    pub(super) fn try_pass(&mut self, count: u32, now: Instant) -> Result<(), Duration> {
        self.fill(now);
        if self.tokens >= 1.0 {
            self.tokens -= f64::from(count.max(1));
            return Ok(());
        }
        Err(seconds((1.0 - self.tokens) / self.per_second))
    }

    /// Lets one pass after a wait, behind all who wait already.
    pub(super) fn stand_in_line(&mut self, now: Instant) -> Duration {
        self.fill(now);
        self.tokens -= 1.0;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        seconds(-self.tokens / self.per_second)
    }

    /// One who stood in line went away.
    pub(super) fn leave_line(&mut self) {
        self.tokens = (self.tokens + 1.0).min(self.burst);
    }
}

fn seconds(wait: f64) -> Duration {
    Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_as_often_as_it_says() {
        let now = Instant::now();
        let mut bucket = Bucket::new(10.0, 2, now);
        assert!(bucket.try_pass(1, now).is_ok() && bucket.try_pass(1, now).is_ok());
        assert_eq!(bucket.try_pass(1, now), Err(Duration::from_millis(100)));
        let then = now + Duration::from_millis(100);
        assert!(bucket.try_pass(5, then).is_ok(), "a batch passes, and is owed");
        assert_eq!(bucket.try_pass(1, then), Err(Duration::from_millis(500)));
        assert!(bucket.try_pass(1, then + Duration::from_secs(60)).is_ok());
    }

    #[test]
    fn a_line_is_served_one_by_one() {
        let now = Instant::now();
        let mut bucket = Bucket::new(2.0, 1, now);
        let waits: Vec<_> = (0..3).map(|_| bucket.stand_in_line(now).as_millis()).collect();
        assert_eq!(waits, [0, 500, 1000]);
        bucket.leave_line();
        assert_eq!(bucket.stand_in_line(now).as_millis(), 1000);
    }
}
