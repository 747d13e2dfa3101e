//! What is due of broken records: told, passed over for a while, and then tried again.
//!
//! It stays due, and stands before all that is due later. So whoever asks what is due in a home leaves out
//! what rests here: broken records, however many, neither fill a tick nor make it look as if there were
//! always something to do at once. It is remembered by each process for itself, and nothing is written: what
//! this build cannot read may be sound for another.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use ff_core::id::Home;
use ff_core::time::TimestampMs;

/// How long it rests before it is tried, and told of, again.
const REST_MS: u64 = 10_000;

/// An entry of the leases or timers of a home: when it is due, and its member.
pub(crate) type Entry = (TimestampMs, Bytes);

/// What rests, and until when.
#[derive(Debug, Default)]
pub(crate) struct PassedOver(Mutex<HashMap<Home, Resting>>);

/// The entries of one home that rest. One that is due at another time than it was is another entry.
#[derive(Debug, Default)]
struct Resting {
    until: HashMap<Entry, TimestampMs>,
    /// When those whose rest is over are next looked for.
    swept: TimestampMs,
}

impl PassedOver {
    /// Lets an entry rest that a tick could not carry out.
    pub(crate) fn note(&self, home: &Home, broken: Entry, now: TimestampMs) {
        let mut homes = self.lock();
        let resting = homes.entry(home.clone()).or_default();
        if resting.swept <= now {
            resting.until.retain(|_, until| *until > now);
            resting.swept = now.after(REST_MS);
        }
        resting.until.insert(broken, now.after(REST_MS));
    }

    /// Whether anything of a home rests.
    pub(crate) fn any_in(&self, home: &Home, now: TimestampMs) -> bool {
        let mut homes = self.lock();
        let Some(resting) = homes.get_mut(home) else { return false };
        let any = resting.until.values().any(|until| *until > now);
        if !any {
            homes.remove(home);
        }
        any
    }

    /// Leaves out what rests.
    pub(crate) fn retain_awake(&self, home: &Home, entries: &mut Vec<Entry>, now: TimestampMs) {
        let homes = self.lock();
        let Some(resting) = homes.get(home) else { return };
        entries.retain(|entry| resting.until.get(entry).is_none_or(|until| *until <= now));
    }

    /// Records have been mended: all is tried again.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Home, Resting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awake(passed: &PassedOver, at: i64, now: i64) -> bool {
        let mut entries = vec![(TimestampMs(at), Bytes::from_static(b"a"))];
        passed.retain_awake(&Home::partition(7), &mut entries, TimestampMs(now));
        !entries.is_empty()
    }

    #[test]
    fn what_is_passed_over_rests_for_a_while() {
        let (passed, home) = (PassedOver::default(), Home::partition(7));
        let entry = (TimestampMs(5), Bytes::from_static(b"a"));
        passed.note(&home, entry, TimestampMs(1_000));
        assert!(passed.any_in(&home, TimestampMs(1_000)));
        assert!(!passed.any_in(&Home::partition(8), TimestampMs(1_000)));
        assert!(!awake(&passed, 5, 1_000));
        assert!(awake(&passed, 6, 1_000), "it is due at another time, so something has changed it");
        assert!(awake(&passed, 5, 11_000), "its rest is over");
        assert!(!passed.any_in(&home, TimestampMs(11_000)));
    }
}
