//! How far each home's log has been seen, and the short form in which a cursor carries it.

use std::collections::BTreeMap;

use ff_core::error::{Code, Refusal};
use ff_core::id::{Home, PartitionFamily, PartitionKey};
use ff_core::partition::PartitionConfig;
use ff_core::{cursor, limits};
use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use crate::log::{self, Mark};

/// Places up to which logs have been seen. A log that is not among them has not been looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen(BTreeMap<Tag, Place>);

/// A home as a cursor names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tag {
    Partition(PartitionKey),
    Namespace(NameDigest),
    Global,
}

/// Stands for the name of a namespace: shorter than most, and tells no other. Two of ten thousand
/// are alike once in twenty thousand stores.
type NameDigest = [u8; 5];

impl From<&Home> for Tag {
    fn from(home: &Home) -> Self {
        match home {
            Home::Partition(key) => Self::Partition(*key),
            Home::Namespace(name) => {
                let digest: [u8; 20] = Sha1::digest(name.as_str()).into();
                Self::Namespace(digest.first_chunk().copied().unwrap_or_default())
            }
            Home::Global => Self::Global,
        }
    }
}

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    number: u64,
    /// Of the entry that holds the number. None: it was not kept any more when its end was read, or the
    /// cursor does not say.
    mark: Option<Mark>,
}

impl Seen {
    pub(crate) fn of(&self, home: &Home) -> u64 {
        self.0.get(&home.into()).map_or(0, |place| place.number)
    }

    /// The mark of the entry up to which a log has been seen, if it is known.
    pub(crate) fn mark_of(&self, home: &Home) -> Option<Mark> {
        self.0.get(&home.into()).and_then(|place| place.mark)
    }

    /// A log has been seen up to a number, or further.
    pub(crate) fn note(&mut self, home: &Home, number: u64, mark: Option<Mark>) {
        self.place(home.into(), Place { number, mark });
    }

    fn place(&mut self, tag: Tag, place: Place) {
        let before = self.0.get(&tag).map_or(0, |place| place.number);
        if place.number > 0 && place.number >= before {
            self.0.insert(tag, place);
        }
    }

    /// Nothing has been seen of a log.
    pub(crate) fn forget(&mut self, home: &Home) {
        self.0.remove(&home.into());
    }

    /// A cursor that goes on here. Marks go along as far as all cursors are that long; a log that has lost
    /// its end is known without them too, unless it has grown beyond that again.
    pub(crate) fn cursor(
        &self,
        scope: &str,
        partitions: &PartitionConfig,
    ) -> Result<String, Refusal> {
        let scope = form(scope);
        let marked = cursor::encode(&scope, &Short::of(self, true));
        if marked.len() <= limits::CURSOR_BYTES {
            return Ok(marked);
        }
        let text = cursor::encode(&scope, &Short::of(self, false));
        let most = bytes_most(partitions);
        if text.len() > most {
            let detail = format!(
                "events of so many namespaces do not fit into a cursor of {most} bytes; name one, or ask \
                 for events of executions and flows"
            );
            return Err(Refusal::invalid("namespace", detail));
        }
        Ok(text)
    }

    /// Reads a cursor; it may name homes of a store with other partitions, which nobody asks for.
    pub(crate) fn parse(
        scope: &str,
        text: &str,
        partitions: &PartitionConfig,
    ) -> Result<Self, Refusal> {
        let most = bytes_most(partitions);
        let short: Short = cursor::decode_within(most, &form(scope), text)?;
        let malformed = || Refusal::at(Code::InvalidCursor, "cursor", "cursor is malformed");
        let mut seen = short.seen().ok_or_else(malformed)?;
        seen.0.retain(|tag, _| match tag {
            Tag::Partition(key) => Home::Partition(*key).exists(partitions),
            Tag::Namespace(_) | Tag::Global => true,
        });
        Ok(seen)
    }
}

/// What a cursor is bound to, with the form that it has.
fn form(scope: &str) -> String {
    format!("{scope} by entries")
}

/// How long a cursor may be, so that each partition has the six bytes that the number of an entry takes
/// at the most, as eight letters.
fn bytes_most(partitions: &PartitionConfig) -> usize {
    let counts = PartitionFamily::ALL.map(|family| usize::from(partitions.count(family)));
    limits::CURSOR_BYTES.max(8 * counts.iter().sum::<usize>() + 256)
}

/// Places in few bytes: only of logs that have events.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Short {
    families: [Family; PartitionFamily::ALL.len()],
    /// With the number of the entry.
    namespaces: Vec<(NameDigest, u64)>,
    /// The number of the entry, 0 for none.
    global: u64,
    /// Places inside an entry: how many places are passed over since the one before, and how many events of
    /// the entry are still to be seen. Most places are at the end of one.
    inside: Vec<(u32, u8)>,
    /// Of each place, or none at all. One that is not known is zero, and is not compared.
    marks: Vec<Mark>,
}

/// Places in the partitions of a family.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Family {
    /// How many partitions are passed over, and how many follow each other then, in turn.
    runs: Vec<(u16, u16)>,
    /// The lowest entry among them: partitions grow alike, so that what each has beyond it is short.
    least: u64,
    beyond: Vec<u64>,
    /// The partition behind the last of them.
    #[serde(skip)]
    next: u16,
}

impl Short {
    fn of(seen: &Seen, with_marks: bool) -> Self {
        let mut short = Self::default();
        let mut passed = 0;
        // Partitions of a family come in the order of their numbers.
        for (tag, place) in &seen.0 {
            let entry = log::entry_of(place.number);
            match tag {
                Tag::Partition(key) => short.families[key.family as usize].add(key.index, entry),
                Tag::Namespace(digest) => short.namespaces.push((*digest, entry)),
                Tag::Global => short.global = entry,
            }
            match u8::try_from((entry * log::NUMBERS).saturating_sub(place.number)) {
                Ok(0) | Err(_) => passed += 1,
                Ok(left) => short.inside.push((std::mem::take(&mut passed), left)),
            }
            short.marks.extend(with_marks.then(|| place.mark.unwrap_or_default()));
        }
        short.families.iter_mut().for_each(Family::shorten);
        short
    }

    /// The places, in the order in which they were written; none where it holds together nowhere.
    fn seen(self) -> Option<Seen> {
        let mut places: Vec<(Tag, u64)> = Vec::new();
        for (family, part) in PartitionFamily::ALL.into_iter().zip(self.families) {
            let partition =
                |(index, entry)| (Tag::Partition(PartitionKey { family, index }), entry);
            places.extend(part.entries()?.into_iter().map(partition));
        }
        let namespace = |(digest, entry)| (Tag::Namespace(digest), entry);
        places.extend(self.namespaces.into_iter().map(namespace));
        places.extend((self.global > 0).then_some((Tag::Global, self.global)));
        let mut left = vec![0; places.len()];
        let mut at = 0_usize;
        for (passed, inside) in self.inside {
            at = at.checked_add(usize::try_from(passed).ok()?)?;
            *left.get_mut(at)? = u64::from(inside);
            at += 1;
        }
        let mut marks = match self.marks.len() {
            0 => vec![Mark::default(); places.len()],
            count => (count == places.len()).then_some(self.marks)?,
        }
        .into_iter();
        let mut seen = Seen::default();
        for ((tag, entry), left) in places.into_iter().zip(left) {
            let number = entry.checked_mul(log::NUMBERS)?.checked_sub(left)?;
            let mark = marks.next().filter(|mark| *mark != Mark::default());
            seen.place(tag, Place { number, mark });
        }
        Some(seen)
    }
}

impl Family {
    /// One more, behind all that are there.
    fn add(&mut self, index: u16, entry: u64) {
        match self.runs.last_mut() {
            Some((_, count)) if self.next == index => *count += 1,
            _ => self.runs.push((index - self.next, 1)),
        }
        self.next = index + 1;
        self.beyond.push(entry);
    }

    fn shorten(&mut self) {
        self.least = self.beyond.iter().copied().min().unwrap_or(0);
        self.beyond.iter_mut().for_each(|entry| *entry -= self.least);
    }

    /// Partitions and their entries; none where it says too few or too many.
    fn entries(self) -> Option<Vec<(u16, u64)>> {
        let mut entries = Vec::with_capacity(self.beyond.len());
        let mut beyond = self.beyond.into_iter();
        let mut next = 0_u16;
        for (passed, count) in self.runs {
            let first = next.checked_add(passed)?;
            next = first.checked_add(count)?;
            for index in first..next {
                entries.push((index, self.least.checked_add(beyond.next()?)?));
            }
        }
        beyond.next().is_none().then_some(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: &str = "x";

    fn seen(places: &[(&str, u64)]) -> Seen {
        let mut seen = Seen::default();
        for (home, number) in places {
            if let Ok(home) = home.parse() {
                seen.note(&home, *number, Some([7, 8]));
            }
        }
        seen
    }

    /// A store whose partitions of executions have seen so many entries, some more and some fewer.
    fn grown(partitions: u16, entries: u64, more_or_fewer: u64) -> Seen {
        let mut seen = Seen::default();
        for index in 0..partitions {
            let more = u64::from(index).wrapping_mul(2_654_435_761) % (2 * more_or_fewer);
            let entry = entries - more_or_fewer + more;
            seen.note(&Home::partition(index), log::NUMBERS * entry, Some([7, 8]));
        }
        seen
    }

    fn config(flow: u16) -> PartitionConfig {
        PartitionConfig { flow, ..PartitionConfig::default() }
    }

    #[track_caller]
    fn comes_back(seen: &Seen, config: &PartitionConfig) -> usize {
        let cursor = seen.cursor(SCOPE, config).unwrap();
        let read = Seen::parse(SCOPE, &cursor, config).unwrap();
        let places = |seen: &Seen| -> Vec<_> {
            seen.0.iter().map(|(tag, place)| (*tag, place.number)).collect()
        };
        assert_eq!(places(&read), places(seen));
        let marked = cursor.len() <= limits::CURSOR_BYTES && read == *seen;
        assert!(marked || read.0.values().all(|place| place.mark.is_none()));
        cursor.len()
    }

    #[test]
    fn a_cursor_brings_back_how_far_every_log_was_seen() {
        let config = PartitionConfig::default();
        for places in [
            &[][..],
            &[("{fp:0}", 256)],
            &[("{fp:63}", 7), ("{b:0}", 1), ("{b:15}", 512), ("{q:3}", 3)],
            &[("{fp:1}", 1), ("{fp:2}", 2), ("{w:default}", 9), ("{w:x}", 8), ("{g}", 7)],
            &[
                ("{fp:1}", 1 << 47),
                ("{fp:2}", 257),
                ("{fp:9}", 511),
                ("{w:x}", u64::from(u32::MAX)),
            ],
        ] {
            let seen = seen(places);
            assert_eq!(seen.0.len(), places.len());
            comes_back(&seen, &config);
            let cursor = seen.cursor(SCOPE, &config).unwrap();
            assert_eq!(Seen::parse(SCOPE, &cursor, &config), Ok(seen));
        }
    }

    #[test]
    fn logs_without_events_cost_nothing() {
        let config = PartitionConfig::default();
        let length = |seen: &Seen| seen.cursor(SCOPE, &config).unwrap().len();
        let none = length(&seen(&[]));
        assert!(none < 45, "{none}");
        assert_eq!(length(&seen(&[("{fp:7}", 0), ("{q:1}", 0)])), none);
    }

    #[test]
    fn cursors_of_large_stores_are_short() {
        for (partitions, entries, more_or_fewer, most) in [
            (64, 1_000_000, 4_000, 450),
            (64, 1 << 39, 1 << 38, 800),
            (512, 1_000_000, 4_000, limits::CURSOR_BYTES),
            (1024, 1_000_000, 4_000, limits::CURSOR_BYTES),
            (4096, 1_000_000, 4_000, 11 << 10),
            (4096, 100_000_000, 1_000_000, 17 << 10),
            (4096, 1 << 39, 1 << 38, 33 << 10),
        ] {
            let length =
                comes_back(&grown(partitions, entries, more_or_fewer), &config(partitions));
            assert!(length <= most, "{partitions} partitions of {entries}: {length}");
        }
    }

    #[test]
    fn namespaces_are_not_named_and_too_many_are_refused() {
        let config = PartitionConfig::default();
        let mut all = grown(64, 1_000_000, 4_000);
        let mut note = |namespaces: std::ops::Range<u64>| {
            for n in namespaces {
                let home = format!("{{w:a-tenant-with-a-name-{n}}}").parse().unwrap();
                all.note(&home, 256 * (1 + n % 300), Some([7, 8]));
            }
            all.clone()
        };
        let length = comes_back(&note(0..300), &config);
        assert!(length <= limits::CURSOR_BYTES, "{length}");
        let refusal = note(300..1_000).cursor(SCOPE, &config).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("namespace"), "{refusal}");
    }

    #[test]
    fn a_cursor_of_elsewhere_does_no_harm() {
        let config = PartitionConfig { flow: 2, budget: 1, quota: 1 };
        let far = seen(&[("{fp:1}", 5), ("{fp:4095}", 5), ("{b:1}", 5)]);
        let far = far.cursor(SCOPE, &config).unwrap();
        assert_eq!(Seen::parse(SCOPE, &far, &config), Ok(seen(&[("{fp:1}", 5)])));
        let refusal = Seen::parse("y", &far, &config).map_err(|refusal| refusal.code);
        assert_eq!(refusal, Err(Code::InvalidCursor));
    }

    #[test]
    fn a_forged_cursor_is_refused() {
        let family = |runs: &[(u16, u16)], least, beyond: &[u64]| {
            let (runs, beyond) = (runs.to_vec(), beyond.to_vec());
            let family = Family { runs, least, beyond, next: 0 };
            [family, Family::default(), Family::default()]
        };
        let of = |families| Short { families, ..Short::default() };
        for forged in [
            of(family(&[(0, 3)], 1, &[1])),
            of(family(&[(0, 1)], 1, &[1, 1])),
            of(family(&[(u16::MAX, 1); 2], 1, &[1, 1])),
            of(family(&[(0, 1)], u64::MAX, &[1])),
            of(family(&[(0, 1)], u64::MAX / 2, &[1])),
            Short { inside: vec![(0, 1)], ..Short::default() },
            Short { inside: vec![(u32::MAX, 1)], global: 1, ..Short::default() },
            Short { marks: vec![[1, 1]; 2], global: 1, ..Short::default() },
        ] {
            let text = cursor::encode(&form(SCOPE), &forged);
            let read = Seen::parse(SCOPE, &text, &PartitionConfig::default());
            assert_eq!(
                read.map_err(|refusal| refusal.code),
                Err(Code::InvalidCursor),
                "{forged:?}"
            );
        }
    }
}
