//! How far each home's log has been seen, and the short form in which a cursor carries it.

use std::collections::BTreeMap;

use ff_core::cursor;
use ff_core::error::Refusal;
use ff_core::id::{Home, PartitionFamily, PartitionKey};
use ff_core::partition::PartitionConfig;
use serde::{Deserialize, Serialize};

use crate::log::Mark;

/// Places up to which logs have been seen. A log that is not among them has not been looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen(BTreeMap<Home, Place>);

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    number: u64,
    /// Of the entry that holds the number. None: it was not kept any more when its end was read, or the
    /// cursor does not say.
    mark: Option<Mark>,
}

/// The same in few bytes: only logs that have events. `N` is what stands for a place.
#[derive(Debug, Serialize, Deserialize)]
struct Short<N> {
    /// For each family of partitions: how many are passed over, then a place, in turn.
    partitions: [Vec<(u16, N)>; PartitionFamily::ALL.len()],
    others: Vec<(Home, N)>,
}

/// A place in a cursor; the mark of none is zero, and is not compared.
type Marked = (u64, Mark);

/// What keeps cursors with marks apart from those of the version before, which have none.
const MARKED: &str = " marked";

impl Seen {
    pub(crate) fn of(&self, home: &Home) -> u64 {
        self.0.get(home).map_or(0, |place| place.number)
    }

    /// The mark of the entry up to which a log has been seen, if it is known.
    pub(crate) fn mark_of(&self, home: &Home) -> Option<Mark> {
        self.0.get(home).and_then(|place| place.mark)
    }

    /// A log has been seen up to a number, or further.
    pub(crate) fn note(&mut self, home: Home, number: u64, mark: Option<Mark>) {
        if number > 0 && number >= self.of(&home) {
            self.0.insert(home, Place { number, mark });
        }
    }

    /// Nothing has been seen of a log.
    pub(crate) fn forget(&mut self, home: &Home) {
        self.0.remove(home);
    }

    pub(crate) fn cursor(&self, scope: &str) -> String {
        let mut short = Short { partitions: Default::default(), others: Vec::new() };
        let mut next = [0; PartitionFamily::ALL.len()];
        // Partitions of a family come in the order of their numbers.
        for (home, place) in &self.0 {
            let marked: Marked = (place.number, place.mark.unwrap_or_default());
            match home {
                Home::Partition(PartitionKey { family, index }) => {
                    let family = *family as usize;
                    short.partitions[family].push((index - next[family], marked));
                    next[family] = index + 1;
                }
                other => short.others.push((other.clone(), marked)),
            }
        }
        cursor::encode(&format!("{scope}{MARKED}"), &short)
    }

    /// Reads a cursor; it may name homes of a store with other partitions, which nobody asks for. One of the
    /// version before has no marks.
    pub(crate) fn parse(
        scope: &str,
        text: &str,
        partitions: &PartitionConfig,
    ) -> Result<Self, Refusal> {
        let mut seen = match cursor::decode::<Short<Marked>>(&format!("{scope}{MARKED}"), text) {
            Ok(short) => Self::from_short(short, |(number, mark)| {
                (number, Some(mark).filter(|mark| *mark != Mark::default()))
            }),
            Err(_) => Self::from_short(cursor::decode(scope, text)?, |number: u64| (number, None)),
        };
        seen.0.retain(|home, _| home.exists(partitions));
        Ok(seen)
    }

    fn from_short<N>(short: Short<N>, place: impl Fn(N) -> (u64, Option<Mark>)) -> Self {
        let mut seen = Self::default();
        for (family, entries) in PartitionFamily::ALL.into_iter().zip(short.partitions) {
            let mut next = 0_u16;
            for (passed, entry) in entries {
                let (number, mark) = place(entry);
                let index = next.saturating_add(passed);
                next = index.saturating_add(1);
                seen.note(Home::Partition(PartitionKey { family, index }), number, mark);
            }
        }
        for (home, entry) in short.others {
            let (number, mark) = place(entry);
            seen.note(home, number, mark);
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use ff_core::error::Code;

    use super::*;

    fn seen(places: &[(&str, u64)]) -> Seen {
        let mut seen = Seen::default();
        for (home, number) in places {
            if let Ok(home) = home.parse() {
                seen.note(home, *number, Some([7, 8]));
            }
        }
        seen
    }

    #[test]
    fn a_cursor_brings_back_how_far_every_log_was_seen() {
        let config = PartitionConfig::default();
        for places in [
            &[][..],
            &[("{fp:0}", 256)],
            &[("{fp:63}", 7), ("{b:0}", 1), ("{b:15}", 512), ("{q:3}", 3)],
            &[("{fp:1}", 1), ("{fp:2}", 2), ("{w:default}", 9), ("{w:x}", 8), ("{g}", 7)],
        ] {
            let seen = seen(places);
            assert_eq!(seen.0.len(), places.len());
            assert_eq!(Seen::parse("x", &seen.cursor("x"), &config), Ok(seen));
        }
    }

    #[test]
    fn logs_without_events_cost_nothing() {
        let none = seen(&[]).cursor("x").len();
        assert!(none < 30, "{none}");
        assert_eq!(seen(&[("{fp:7}", 0), ("{q:1}", 0)]).cursor("x").len(), none);
        let all: Vec<_> = (0..64).map(|n| format!("{{fp:{n}}}")).collect();
        let all: Vec<_> = all.iter().map(|home| (home.as_str(), 256 * 1_000_000)).collect();
        let length = seen(&all).cursor("x").len();
        assert!(length < 800, "{length}");
    }

    #[test]
    fn a_cursor_of_elsewhere_does_no_harm() {
        let config = PartitionConfig { flow: 2, budget: 1, quota: 1 };
        let far = seen(&[("{fp:1}", 5), ("{fp:4095}", 5), ("{b:1}", 5)]);
        assert_eq!(Seen::parse("x", &far.cursor("x"), &config), Ok(seen(&[("{fp:1}", 5)])));
        let refusal = Seen::parse("y", &far.cursor("x"), &config).map_err(|refusal| refusal.code);
        assert_eq!(refusal, Err(Code::InvalidCursor));
        let partitions = [vec![(u16::MAX, (1, [1, 1])); 3], vec![], vec![]];
        let forged = Short::<Marked> { partitions, others: vec![] };
        let forged = cursor::encode("x marked", &forged);
        assert_eq!(Seen::parse("x", &forged, &config), Ok(Seen::default()));
    }

    #[test]
    fn a_cursor_without_marks_is_read() {
        let partitions = [vec![(3, 5)], vec![], vec![(0, 256)]];
        let before = Short::<u64> { partitions, others: vec![(Home::Global, 7)] };
        let cursor = cursor::encode("x", &before);
        let mut expected = Seen::default();
        for (home, number) in [("{fp:3}", 5), ("{q:0}", 256), ("{g}", 7)] {
            home.parse().into_iter().for_each(|home| expected.note(home, number, None));
        }
        let config = PartitionConfig::default();
        assert_eq!(Seen::parse("x", &cursor, &config), Ok(expected.clone()));
        // What it goes on with has them where they are known.
        let later = expected.cursor("x");
        assert_eq!(Seen::parse("x", &later, &config), Ok(expected));
    }
}
