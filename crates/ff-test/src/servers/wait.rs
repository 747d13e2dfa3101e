//! Waiting for a condition, with a deadline.

use std::thread;
use std::time::{Duration, Instant};

/// Between two looks. Short against what is waited for, long against the cost of a look.
pub const LOOK: Duration = Duration::from_millis(5);

/// Looks again and again until `condition` holds. For what nobody announces: the view that a
/// cluster's node has of the others, the death of a process that is no child.
///
/// # Panics
/// When it does not hold within `within`; the message says `what` was waited for.
pub fn wait_until(what: &str, within: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + within;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {within:?}: {what}");
        thread::park_timeout(LOOK);
    }
}
