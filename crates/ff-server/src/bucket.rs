//! How often something may happen.

use std::time::{Duration, Instant};

/// Fills by `rate` a second, up to one second's worth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    pub(crate) fn full(rate: u32, now: Instant) -> Self {
        Self { left: f64::from(rate), at: now }
    }

    /// Takes one, or says how long there is none.
    pub(crate) fn take(&mut self, rate: u32, now: Instant) -> Result<(), Duration> {
        let rate = f64::from(rate.max(1));
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + elapsed * rate).min(rate);
        self.at = now;
        if self.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.left) / rate));
        }
        self.left -= 1.0;
        Ok(())
    }

    /// Puts one back that was taken for nothing.
    pub(crate) fn give_back(&mut self, rate: u32) {
        self.left = (self.left + 1.0).min(f64::from(rate.max(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fills_with_time_and_never_above_its_rate() {
        let begin = Instant::now();
        let mut bucket = Bucket::full(2, begin);
        assert_eq!((bucket.take(2, begin), bucket.take(2, begin)), (Ok(()), Ok(())));
        assert_eq!(bucket.take(2, begin), Err(Duration::from_millis(500)));
        let later = begin + Duration::from_millis(500);
        assert_eq!(bucket.take(2, later), Ok(()));
        assert!(bucket.take(2, later).is_err());
        let much_later = later + Duration::from_secs(3600);
        let taken = (0..10).filter(|_| bucket.take(2, much_later).is_ok()).count();
        assert_eq!(taken, 2);
        bucket.give_back(2);
        assert!(bucket.take(2, much_later).is_ok());
        assert!(bucket.take(2, much_later).is_err());
    }
}
