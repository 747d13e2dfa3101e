//! Turns: several engines on one store, of which one does the round.
//!
//! A turn is a hint that saves work and guards nothing: rounds are idempotent, so two that are made at
//! once are harmless, and a turn that is lost costs a round that was made before.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

use crate::limits;
use crate::time::TimestampMs;

/// A wish to do what one engine is enough for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Name of the scanner.
    pub of: &'static str,
    /// Who asks.
    pub by: Uuid,
    /// Whoever gets the turn has it for so long, and longer by asking again.
    pub ms: u64,
}

/// The turns of a store that one process has to itself.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<&'static str, (Uuid, TimestampMs)>>);

impl Turns {
    /// Whether it is the caller's turn.
    pub fn take(&self, turn: &Turn, now: TimestampMs) -> bool {
        let until = now.after(turn.ms.min(limits::DURATION_MAX_MS));
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (by, ends) = turns.entry(turn.of).or_insert((turn.by, until));
        let is_free = *by == turn.by || *ends <= now;
        if is_free {
            (*by, *ends) = (turn.by, until);
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_turn_keeps_it_until_it_is_over() {
        let turns = Turns::default();
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let take = |of, by, now| turns.take(&Turn { of, by, ms: 100 }, TimestampMs(now));
        assert!(take("x", a, 0));
        assert!(!take("x", b, 99));
        assert!(take("y", b, 99), "turns of others are others");
        assert!(take("x", a, 99), "asking again makes it longer");
        assert!(!take("x", b, 198));
        assert!(take("x", b, 199), "it is over");
        assert!(!take("x", a, 200));
    }
}
