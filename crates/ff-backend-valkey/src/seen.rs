//! How far each home's log has been seen, and the short form in which a cursor carries it.

use std::collections::BTreeMap;

use ff_core::cursor;
use ff_core::error::Refusal;
use ff_core::id::{Home, PartitionFamily, PartitionKey};
use ff_core::partition::PartitionConfig;
use serde::{Deserialize, Serialize};

/// Numbers up to which logs have been seen. A log that is not among them has not been looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen(BTreeMap<Home, u64>);

/// The same in few bytes: only logs that have events.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Short {
    /// For each family of partitions: how many are passed over, then a number, in turn.
    partitions: [Vec<(u16, u64)>; PartitionFamily::ALL.len()],
    others: Vec<(Home, u64)>,
}

impl Seen {
    pub(crate) fn of(&self, home: &Home) -> u64 {
        self.0.get(home).copied().unwrap_or(0)
    }

    /// A log has been seen up to a number, or further.
    pub(crate) fn note(&mut self, home: Home, number: u64) {
        if number > 0 {
            let place = self.0.entry(home).or_default();
            *place = number.max(*place);
        }
    }

    /// Nothing has been seen of a log.
    pub(crate) fn forget(&mut self, home: &Home) {
        self.0.remove(home);
    }

    pub(crate) fn cursor(&self, scope: &str) -> String {
        let mut short = Short::default();
        let mut next = [0; PartitionFamily::ALL.len()];
        // Partitions of a family come in the order of their numbers.
        for (home, number) in &self.0 {
            match home {
                Home::Partition(PartitionKey { family, index }) => {
                    let place = *family as usize;
                    short.partitions[place].push((index - next[place], *number));
                    next[place] = index + 1;
                }
                other => short.others.push((other.clone(), *number)),
            }
        }
        cursor::encode(scope, &short)
    }

    /// Reads a cursor; it may name homes of a store with other partitions, which nobody asks for.
    pub(crate) fn parse(
        scope: &str,
        text: &str,
        partitions: &PartitionConfig,
    ) -> Result<Self, Refusal> {
        let short: Short = cursor::decode(scope, text)?;
        let mut seen = Self::default();
        for (family, entries) in PartitionFamily::ALL.into_iter().zip(short.partitions) {
            let mut next = 0_u16;
            for (passed, number) in entries {
                let index = next.saturating_add(passed);
                next = index.saturating_add(1);
                seen.note(Home::Partition(PartitionKey { family, index }), number);
            }
        }
        short.others.into_iter().for_each(|(home, number)| seen.note(home, number));
        seen.0.retain(|home, _| home.exists(partitions));
        Ok(seen)
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
                seen.note(home, *number);
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
        assert!(length < 600, "{length}");
    }

    #[test]
    fn a_cursor_of_elsewhere_does_no_harm() {
        let config = PartitionConfig { flow: 2, budget: 1, quota: 1 };
        let far = seen(&[("{fp:1}", 5), ("{fp:4095}", 5), ("{b:1}", 5)]);
        assert_eq!(Seen::parse("x", &far.cursor("x"), &config), Ok(seen(&[("{fp:1}", 5)])));
        let refusal = Seen::parse("y", &far.cursor("x"), &config).map_err(|refusal| refusal.code);
        assert_eq!(refusal, Err(Code::InvalidCursor));
        let forged = Short { partitions: [vec![(u16::MAX, 1); 3], vec![], vec![]], others: vec![] };
        let forged = cursor::encode("x", &forged);
        assert_eq!(Seen::parse("x", &forged, &config), Ok(Seen::default()));
    }
}
