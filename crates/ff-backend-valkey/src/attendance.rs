//! Who is present, for a task that listens on behalf of all of them.
//!
//! Callers come and go many times a second, so the listener stays a moment after the last one: it is
//! started once and not with every caller.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a listener stays when nobody is present.
const LINGER: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Attendance(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    present: usize,
    left_at: Option<Instant>,
    running: bool,
    /// Counts the times that listeners were started.
    shift: u64,
}

/// Somebody who is present until this is dropped.
pub(crate) struct Present<'a>(&'a Attendance);

impl Attendance {
    /// Counts the caller in. With a number: listeners of that shift are to be started.
    pub(crate) fn join(&self) -> (Present<'_>, Option<u64>) {
        let mut state = self.lock();
        state.present += 1;
        let start = !state.running;
        if start {
            state.running = true;
            state.shift += 1;
        }
        (Present(self), start.then_some(state.shift))
    }

    /// Whether a listener of this shift goes on. Nobody has been present for a while: all of the
    /// shift end.
    pub(crate) fn goes_on(&self, shift: u64) -> bool {
        let mut state = self.lock();
        if state.shift != shift {
            return false;
        }
        let alone = state.present == 0 && state.left_at.is_some_and(|at| at.elapsed() > LINGER);
        state.running &= !alone;
        state.running
    }

    /// Whether somebody listens.
    pub(crate) fn is_running(&self) -> bool {
        self.lock().running
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.present -= 1;
        state.left_at = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_that_come_and_go_start_one_listener() {
        let attendance = Attendance::default();
        let (first, started) = attendance.join();
        let shift = started.expect("the first starts it");
        drop(first);
        for _ in 0..10 {
            let (_present, started) = attendance.join();
            assert_eq!(started, None);
            assert!(attendance.goes_on(shift));
        }
    }

    #[test]
    fn a_listener_ends_when_nobody_has_been_there_for_a_while() {
        let attendance = Attendance::default();
        let (present, started) = attendance.join();
        let shift = started.expect("the first starts it");
        drop(present);
        attendance.lock().left_at = Instant::now().checked_sub(2 * LINGER);
        assert!(!attendance.goes_on(shift));
        assert!(!attendance.is_running());
        let (_present, started) = attendance.join();
        assert!(started.is_some_and(|next| next != shift));
        assert!(!attendance.goes_on(shift), "a listener of an earlier shift stays gone");
    }
}
