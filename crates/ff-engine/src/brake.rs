//! Keeps a clock that jumped from ending every lease at once.
//!
//! Workers renew before a lease runs out, so leases expire one by one. When the store's clock jumps
//! ahead they all seem to expire together: then only so many are taken away in a second, so that the
//! rest of the system is not buried under work that is all to be done again at once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ff_core::id::Home;
use ff_core::limits;

const SECOND: Duration = Duration::from_secs(1);

/// How many leases each part of the store has lost in its current second.
#[derive(Debug)]
pub(crate) struct Brake {
    whole_store: u32,
    lost: HashMap<Option<Home>, (Instant, u32)>,
}

impl Brake {
    /// For a store of so many partitions, which ticks them one by one or all together.
    pub(crate) fn new(partitions: u16) -> Self {
        Self {
            whole_store: limits::LEASE_EXPIRIES_A_SECOND * u32::from(partitions),
            lost: HashMap::new(),
        }
    }

    /// How many leases may still be taken away in this second.
    pub(crate) fn left(&self, part: &Option<Home>, now: Instant) -> u32 {
        let most = match part {
            None => self.whole_store,
            Some(_) => limits::LEASE_EXPIRIES_A_SECOND,
        };
        match self.lost.get(part) {
            Some((since, lost)) if now < *since + SECOND => most.saturating_sub(*lost),
            _ => most,
        }
    }

    /// Notes leases that were taken away.
    pub(crate) fn note(&mut self, part: &Option<Home>, lost: u32, now: Instant) {
        if lost == 0 {
            return;
        }
        let entry = self.lost.entry(part.clone()).or_insert((now, 0));
        if now >= entry.0 + SECOND {
            *entry = (now, 0);
        }
        entry.1 += lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_loses_so_many_leases_a_second_and_no_more() {
        let (mut brake, begin) = (Brake::new(4), Instant::now());
        let most = limits::LEASE_EXPIRIES_A_SECOND;
        let (one, other) = (&Some(Home::partition(1)), &Some(Home::partition(2)));
        assert_eq!((brake.left(one, begin), brake.left(&None, begin)), (most, 4 * most));
        brake.note(one, most - 1, begin);
        assert_eq!(brake.left(one, begin + SECOND / 2), 1);
        brake.note(one, 1, begin + SECOND / 2);
        assert_eq!(brake.left(one, begin + SECOND / 2), 0);
        assert_eq!(brake.left(other, begin + SECOND / 2), most);
        assert_eq!(brake.left(one, begin + SECOND), most);
    }
}
