//! A breaker: what fails again and again is left alone for a while.

use std::time::{Duration, Instant};

/// When it opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) failures: u32,
    pub(super) rest: Duration,
}

/// The state of one breaker. Time is an argument.
#[derive(Debug)]
pub(super) struct Breaker {
    rule: Rule,
    /// In a row, while it is closed.
    failures: u32,
    /// Nothing passes before this.
    open_until: Option<Instant>,
    /// One goes ahead to see whether it works again, since then.
    trial: Option<Instant>,
}

impl Breaker {
    pub(super) fn new(rule: Rule) -> Self {
        Self { rule, failures: 0, open_until: None, trial: None }
    }

    /// Whether a call may pass; otherwise how long to stay away.
    pub(super) fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        let Some(open_until) = self.open_until else { return Ok(()) };
        let left = open_until.saturating_duration_since(now);
        if !left.is_zero() {
            return Err(left);
        }
        // A trial of which nothing is heard for as long as a rest counts as gone.
        if let Some(trial) = self.trial {
            let left = (trial + self.rule.rest).saturating_duration_since(now);
            if !left.is_zero() {
                return Err(left);
            }
        }
        self.trial = Some(now);
        Ok(())
    }

    /// A call that passed went well; tells whether that closed the breaker.
    pub(super) fn succeeded(&mut self) -> bool {
        let was_open = self.open_until.is_some();
        *self = Self::new(self.rule);
        was_open
    }

    /// A call that passed failed; tells whether that opened the breaker.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        if self.open_until.is_some() {
            // The trial, or one that passed before the breaker opened.
            if self.trial.take().is_some() {
                self.open_until = Some(now + self.rule.rest);
            }
            return false;
        }
        self.failures += 1;
        if self.failures < self.rule.failures {
            return false;
        }
        self.open_until = Some(now + self.rule.rest);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { failures: 5, rest: Duration::from_secs(30) };

    fn opened(now: Instant) -> Breaker {
        let mut breaker = Breaker::new(RULE);
        for failure in 1..=5 {
            assert_eq!(breaker.admit(now), Ok(()));
            assert_eq!(breaker.failed(now), failure == 5);
        }
        breaker
    }

    #[test]
    fn five_in_a_row_open_it_for_thirty_seconds() {
        let now = Instant::now();
        let mut breaker = opened(now);
        assert_eq!(breaker.admit(now), Err(Duration::from_secs(30)));
        let then = now + Duration::from_secs(29);
        assert_eq!(breaker.admit(then), Err(Duration::from_secs(1)));
    }

    #[test]
    fn a_success_begins_the_count_anew() {
        let now = Instant::now();
        let mut breaker = Breaker::new(RULE);
        for _ in 0..3 {
            for _ in 0..4 {
                assert!(!breaker.failed(now));
            }
            assert!(!breaker.succeeded());
        }
        assert_eq!(breaker.admit(now), Ok(()));
    }

    #[test]
    fn then_one_trial_decides() {
        let now = Instant::now();
        let after = now + RULE.rest;
        let mut breaker = opened(now);
        assert_eq!(breaker.admit(after), Ok(()));
        assert_eq!(breaker.admit(after), Err(RULE.rest), "one at a time");
        assert!(!breaker.failed(after));
        assert_eq!(breaker.admit(after), Err(RULE.rest));
        let again = after + RULE.rest;
        assert_eq!(breaker.admit(again), Ok(()));
        assert!(breaker.succeeded());
        assert_eq!(breaker.admit(again), Ok(()));
        assert_eq!(breaker.admit(again), Ok(()));
    }

    #[test]
    fn a_trial_that_is_never_heard_of_does_not_hold_it_open() {
        let now = Instant::now();
        let mut breaker = opened(now);
        assert_eq!(breaker.admit(now + RULE.rest), Ok(()));
        assert_eq!(breaker.admit(now + RULE.rest * 2), Ok(()));
    }
}
