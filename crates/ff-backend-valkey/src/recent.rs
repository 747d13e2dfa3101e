//! What this process has read of the ends of logs, for all of its followers: who stands there takes what
//! came since from memory, and the server is asked for it once, however many follow.
//!
//! Nobody relies on it. A place is gone on from only if the log had the same entry there, as a server
//! compares it; whoever stands elsewhere asks. Once in a turn the ends of logs are compared with what is kept
//! here (`growth.rs`), and everybody asks who follows a log that was not.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ff_core::id::Home;

use crate::growth::TURN;
use crate::log::{self, Mark};
use crate::seen::Seen;

/// Entries of one log that are kept. Followers read on within milliseconds; who is slower asks.
const ENTRIES_MOST: usize = 64;

/// Bytes of all logs that are kept.
const BYTES_MOST: usize = 4 << 20;

/// How long what was read counts as all there is: it is compared once in a turn.
const FRESH: Duration = TURN.saturating_add(Duration::from_millis(500));

#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<Stretches>);

#[derive(Debug, Default)]
struct Stretches {
    logs: HashMap<Home, Stretch>,
    bytes: usize,
}

/// Where a log ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) home: Home,
    /// The number of its newest entry, 0 for a log without any.
    pub(crate) entry: u64,
    /// None: that entry is not kept.
    pub(crate) mark: Option<Mark>,
}

/// Entries that followed each other at the end of a log.
#[derive(Debug)]
struct Stretch {
    /// The entry before the first of them.
    before: u64,
    mark: Option<Mark>,
    entries: VecDeque<Entry>,
    /// When the server last said that there is no more.
    compared_at: Instant,
    /// It said that there is more, or something else: whoever follows has to ask.
    is_doubtful: bool,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    mark: Mark,
    bytes: Bytes,
}

/// What is known behind the places of a follower.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Behind {
    /// Entries of a home, each with the number of its last event.
    pub(crate) found: Vec<(Home, Vec<(u64, Bytes)>)>,
    /// Homes that have grown, or may have another log, and that have to be asked.
    pub(crate) ask: Vec<Home>,
}

impl Recent {
    /// Logs end there. Whether that was not known.
    pub(crate) fn begin(&self, ends: &[End]) -> bool {
        let mut stretches = self.lock();
        let mut is_news = false;
        for end in ends {
            match stretches.logs.get_mut(&end.home) {
                Some(known) if known.end() == (end.entry, end.mark) => {
                    known.compared_at = Instant::now();
                }
                _ => {
                    stretches.begin(end);
                    is_news = true;
                }
            }
        }
        is_news
    }

    /// A log has grown by these entries, each with the number of its last event, which follow what was read of
    /// it before. Whether it is known.
    pub(crate) fn extend(&self, home: &Home, entries: Vec<(u64, Bytes)>) -> bool {
        let mut stretches = self.lock();
        for (last, bytes) in entries {
            let number = log::entry_of(last);
            stretches.push(home, Entry { number, mark: log::mark_of(&bytes), bytes });
        }
        stretches.logs.contains_key(home)
    }

    /// Compares what was read of logs with where they end. Whether some of them may have more, or be others;
    /// what was read since the server said so is no reason for that.
    pub(crate) fn compare(&self, ends: &[End]) -> bool {
        let (mut stretches, now) = (self.lock(), Instant::now());
        let mut is_news = false;
        for end in ends {
            let Some(stretch) = stretches.logs.get_mut(&end.home) else { continue };
            stretch.compared_at = now;
            stretch.is_doubtful = !stretch.holds(end);
            is_news |= stretch.is_doubtful;
        }
        is_news
    }

    /// Whether nothing that is older than a turn can be missing of these homes.
    pub(crate) fn is_fresh(&self, homes: &[Home]) -> bool {
        let stretches = self.lock();
        let is_fresh =
            |stretch: &Stretch| !stretch.is_doubtful && stretch.compared_at.elapsed() < FRESH;
        homes.iter().all(|home| stretches.logs.get(home).is_some_and(is_fresh))
    }

    /// Nobody waits for these homes at the moment.
    pub(crate) fn forget<'a>(&self, homes: impl Iterator<Item = &'a Home>) {
        let mut stretches = self.lock();
        for home in homes {
            let stretch = stretches.logs.remove(home);
            stretches.bytes -= stretch.map_or(0, |stretch| stretch.bytes());
        }
    }

    /// What has come to these homes behind the places that were seen.
    pub(crate) fn behind(&self, homes: Vec<Home>, seen: &Seen) -> Behind {
        let stretches = self.lock();
        let mut behind = Behind::default();
        for home in homes {
            // Of a log that nobody has told of, nothing is known to be new.
            let Some(stretch) = stretches.logs.get(&home) else { continue };
            match stretch.behind(seen.of(&home), seen.mark_of(&home)) {
                Some(entries) if entries.is_empty() => {}
                Some(entries) => behind.found.push((home, entries)),
                None => behind.ask.push(home),
            }
        }
        behind
    }

    /// Nobody reads on: nothing is kept.
    pub(crate) fn clear(&self) {
        *self.lock() = Stretches::default();
    }

    fn lock(&self) -> MutexGuard<'_, Stretches> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stretches {
    fn begin(&mut self, end: &End) {
        let fresh = Stretch {
            before: end.entry,
            mark: end.mark,
            entries: VecDeque::new(),
            compared_at: Instant::now(),
            is_doubtful: false,
        };
        let before = self.logs.insert(end.home.clone(), fresh);
        self.bytes -= before.map_or(0, |stretch| stretch.bytes());
    }

    fn push(&mut self, home: &Home, entry: Entry) {
        let Some(stretch) = self.logs.get_mut(home) else { return };
        if entry.number <= stretch.end().0 {
            return;
        }
        self.bytes += entry.bytes.len();
        stretch.entries.push_back(entry);
        // The log that grows makes room: one that rests has little to give.
        while stretch.entries.len() > ENTRIES_MOST || self.bytes > BYTES_MOST {
            let Some(first) = stretch.entries.pop_front() else { return };
            self.bytes -= first.bytes.len();
            (stretch.before, stretch.mark) = (first.number, Some(first.mark));
        }
    }
}

impl Stretch {
    fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.bytes.len()).sum()
    }

    /// The last entry, and its mark.
    fn end(&self) -> (u64, Option<Mark>) {
        let last = self.entries.back();
        last.map_or((self.before, self.mark), |last| (last.number, Some(last.mark)))
    }

    /// Whether a log that ended there is the one that was read, and all of it was.
    fn holds(&self, end: &End) -> bool {
        let (last, _) = self.end();
        let mark = if end.entry == self.before {
            self.mark
        } else {
            let at = self.entries.binary_search_by_key(&end.entry, |entry| entry.number);
            at.ok().map(|at| self.entries[at].mark)
        };
        (self.before..=last).contains(&end.entry)
            && mark.zip(end.mark).is_none_or(|(known, mark)| known == mark)
    }

    /// Entries behind a place. None: they are not known, or the log is not the one that was seen; one that
    /// ends before the place may have lost its end.
    fn behind(&self, number: u64, mark: Option<Mark>) -> Option<Vec<(u64, Bytes)>> {
        if self.is_doubtful {
            return None;
        }
        let entry = log::entry_of(number);
        let is_whole = number == entry * log::NUMBERS;
        let (standing, first) = if entry == self.before {
            is_whole.then_some((self.mark, 0))?
        } else {
            let at = self.entries.binary_search_by_key(&entry, |entry| entry.number).ok()?;
            (Some(self.entries[at].mark), if is_whole { at + 1 } else { at })
        };
        if standing.zip(mark).is_some_and(|(standing, mark)| standing != mark) {
            return None;
        }
        let entries = self.entries.range(first..);
        Some(entries.map(|it| (it.number * log::NUMBERS, it.bytes.clone())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: Home = Home::partition(7);

    fn bytes(number: u64) -> Bytes {
        Bytes::from(format!("entry {number}"))
    }

    fn mark(number: u64) -> Mark {
        log::mark_of(&bytes(number))
    }

    /// A log of which the entries of a range were read.
    fn recent(entries: std::ops::RangeInclusive<u64>) -> Recent {
        let recent = Recent::default();
        let before = entries.start() - 1;
        let mark = (before > 0).then(|| mark(before));
        assert!(recent.begin(&[End { home: HOME, entry: before, mark }]));
        let read = entries.map(|entry| (log::NUMBERS * entry, bytes(entry))).collect();
        assert!(recent.extend(&HOME, read) && recent.is_fresh(&[HOME]));
        recent
    }

    /// Entries behind a place, or none where it has to be asked.
    fn behind(recent: &Recent, number: u64, mark: Option<Mark>) -> Option<Vec<u64>> {
        let mut seen = Seen::default();
        seen.note(&HOME, number, mark);
        let mut behind = recent.behind(vec![HOME], &seen);
        if !behind.ask.is_empty() {
            assert_eq!((behind.ask, behind.found), (vec![HOME], vec![]));
            return None;
        }
        let found = behind.found.pop().map(|(_, entries)| entries).unwrap_or_default();
        Some(found.into_iter().map(|(number, _)| number / log::NUMBERS).collect())
    }

    #[test]
    fn who_stands_at_what_was_read_goes_on_from_memory() {
        let recent = recent(5..=7);
        let end_of = |entry| entry * log::NUMBERS;
        for (number, mark, expected) in [
            (end_of(4), Some(mark(4)), Some(vec![5, 6, 7])),
            (end_of(4), None, Some(vec![5, 6, 7])),
            (end_of(5), Some(mark(5)), Some(vec![6, 7])),
            (end_of(6) - 3, Some(mark(6)), Some(vec![6, 7])),
            (end_of(7), Some(mark(7)), Some(vec![])),
            // The rest of an entry that was not read, and what came before it.
            (end_of(4) - 1, Some(mark(4)), None),
            (end_of(3), Some(mark(3)), None),
            (0, None, None),
            // More than was read.
            (end_of(8), Some(mark(8)), None),
            // Another log.
            (end_of(4), Some(mark(1)), None),
            (end_of(6), Some(mark(1)), None),
            (end_of(7), Some(mark(1)), None),
        ] {
            assert_eq!(behind(&recent, number, mark), expected, "behind {number}");
        }
        assert_eq!(recent.behind(vec![Home::Global], &Seen::default()), Behind::default());
        assert!(!recent.is_fresh(&[HOME, Home::Global]));
    }

    #[test]
    fn a_log_is_followed_from_its_first_entry() {
        assert_eq!(behind(&recent(1..=2), 0, None), Some(vec![1, 2]));
    }

    #[test]
    fn an_end_that_is_told_again_is_no_news() {
        let recent = recent(5..=7);
        let end = |entry, mark| [End { home: HOME, entry, mark: Some(mark) }];
        assert!(!recent.begin(&end(7, mark(7))));
        assert_eq!(behind(&recent, 5 * log::NUMBERS, Some(mark(5))), Some(vec![6, 7]));
        assert!(recent.begin(&end(7, mark(1))), "another entry stands there");
        assert_eq!(behind(&recent, 7 * log::NUMBERS, Some(mark(7))), None);
        assert!(recent.begin(&end(3, mark(3))), "its end is lost");
        assert_eq!(behind(&recent, 3 * log::NUMBERS, Some(mark(3))), Some(vec![]));
    }

    #[test]
    fn logs_that_end_otherwise_are_doubtful() {
        let recent = recent(5..=7);
        let end = |entry, mark| [End { home: HOME, entry, mark: Some(mark) }];
        let cases = [
            (end(7, mark(7)), true, "all was read"),
            (end(6, mark(6)), true, "more came since it was asked"),
            (end(4, mark(4)), true, "all that is kept came since"),
            (end(8, mark(8)), false, "it has grown"),
            (end(3, mark(3)), false, "its end is lost"),
            (end(7, mark(1)), false, "another entry stands there"),
            (end(7, mark(7)), true, "it is as it was read again"),
        ];
        for (end, holds, why) in cases {
            assert_eq!(recent.compare(&end), !holds, "{why}");
            assert_eq!(recent.is_fresh(&[HOME]), holds, "{why}");
            let asks = behind(&recent, 7 * log::NUMBERS, Some(mark(7))).is_none();
            assert_eq!(asks, !holds, "{why}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let most = ENTRIES_MOST as u64;
        let first = recent(1..=most + 3);
        assert_eq!(behind(&first, 2 * log::NUMBERS, Some(mark(2))), None);
        let kept = behind(&first, 3 * log::NUMBERS, Some(mark(3))).unwrap();
        assert_eq!(kept.len(), ENTRIES_MOST);
        let second = recent(1..=1);
        let large = Bytes::from(vec![1; BYTES_MOST]);
        second.extend(&HOME, vec![(2 * log::NUMBERS, large.clone())]);
        assert_eq!(behind(&second, log::NUMBERS, Some(mark(1))), Some(vec![2]));
        second.extend(&HOME, vec![(3 * log::NUMBERS, bytes(3))]);
        assert_eq!(behind(&second, 2 * log::NUMBERS, Some(log::mark_of(&large))), Some(vec![3]));
        assert_eq!(second.lock().bytes, bytes(3).len());
        second.forget([HOME].iter());
        assert_eq!(second.lock().bytes, 0);
        assert!(!second.is_fresh(&[HOME]));
        assert!(!second.extend(&HOME, vec![(4 * log::NUMBERS, bytes(4))]));
    }
}
