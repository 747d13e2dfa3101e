//! Changes of indexes, gathered for a group of items: what several of them do to one key goes as one
//! change. Each argument of a call costs the server time before the function sees it.

use std::str::FromStr;

use bytes::Bytes;
use redis::Cmd;

/// What a change does; the letters are those of `lua/commit.lua`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A value of its own.
    Put = b'P',
    /// Fields of a hash: name, value.
    Set = b'H',
    /// Fields of a hash go: name.
    Unset = b'E',
    /// The end of a list.
    Append = b'R',
    /// Enters a sorted set: score, member.
    Enter = b'Z',
    /// Leaves a sorted set: member.
    Leave = b'X',
    /// Left a queue: classes of its lane that have entries, class.
    LeftQueue = b'Q',
    /// The same: what queues require, queue.
    LeftClass = b'O',
    /// A class of a lane has an entry: score, class.
    Ready = b'Y',
    /// Wakes who waits for a queue: partition.
    Wake = b'W',
    /// Was submitted: list of hours, entry.
    Created = b'C',
    /// A count of a flow's members changes: field, by how much.
    CountMember = b'I',
    /// A count of lanes changes: field, by how much.
    CountLane = b'J',
    /// A field of a hash, if it is not there: name, value.
    SetNew = b'N',
    /// Frames: id, body.
    Frame = b'F',
    /// Only the newest frames stay: how many.
    Keep = b'K',
    /// All of it goes: when.
    Until = b'U',
    /// Output has grown: of which execution.
    Tell = b'T',
    /// An idempotency key: its record.
    Dedup = b'D',
    /// Rows that were laid ready take their place: where they are.
    Move = b'M',
}

/// How a change joins an earlier one of the same kind and key.
#[derive(Debug, PartialEq, Eq)]
enum Join {
    /// Its arguments are added.
    Extend,
    /// The same, but for the first, which both have.
    ExtendRest,
    /// Numbers of the same field are added up.
    Sum,
    /// Of each class only the least score counts.
    Least,
    /// It says the same.
    Same,
    /// Not at all.
    Apart,
}

impl Kind {
    /// How many arguments one change has.
    const fn count(self) -> usize {
        match self {
            Self::Put
            | Self::Unset
            | Self::Append
            | Self::Leave
            | Self::Wake
            | Self::Keep
            | Self::Until
            | Self::Tell
            | Self::Dedup
            | Self::Move => 1,
            Self::Set
            | Self::Enter
            | Self::LeftQueue
            | Self::LeftClass
            | Self::Ready
            | Self::Created
            | Self::CountMember
            | Self::CountLane
            | Self::SetNew
            | Self::Frame => 2,
        }
    }

    const fn join(self) -> Join {
        match self {
            Self::Set
            | Self::Unset
            | Self::Append
            | Self::Enter
            | Self::Leave
            | Self::Wake
            | Self::SetNew
            | Self::Frame
            | Self::Tell => Join::Extend,
            Self::Created => Join::ExtendRest,
            Self::CountMember | Self::CountLane => Join::Sum,
            Self::Ready => Join::Least,
            Self::LeftQueue | Self::LeftClass => Join::Same,
            Self::Put | Self::Keep | Self::Until | Self::Dedup | Self::Move => Join::Apart,
        }
    }
}

/// One change of a key, made once or several times.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) kind: Kind,
    pub(crate) key: String,
    pub(crate) arguments: Vec<Bytes>,
}

impl Change {
    /// The key that it touches beside its own.
    pub(crate) fn other_key(&self) -> Option<&Bytes> {
        match self.kind {
            Kind::LeftQueue | Kind::LeftClass | Kind::Created | Kind::Move => {
                self.arguments.first()
            }
            _ => None,
        }
    }

    fn is_single(&self) -> bool {
        self.arguments.len() == self.kind.count()
    }

    fn join(&mut self, mut arguments: Vec<Bytes>) {
        match self.kind.join() {
            Join::Extend => self.arguments.append(&mut arguments),
            Join::ExtendRest => self.arguments.extend(arguments.into_iter().skip(1)),
            Join::Sum => self.add_up(arguments),
            Join::Least => self.lower(arguments),
            Join::Same | Join::Apart => {}
        }
    }

    fn add_up(&mut self, arguments: Vec<Bytes>) {
        let [field, delta] = &arguments[..] else { return };
        let counted = self.arguments.chunks_exact_mut(2).find(|pair| pair[0] == field);
        match counted {
            Some(pair) => {
                let sum = number::<i64>(&pair[1]) + number::<i64>(delta);
                pair[1] = sum.to_string().into();
            }
            None => self.arguments.extend(arguments),
        }
    }

    fn lower(&mut self, arguments: Vec<Bytes>) {
        let [score, queue] = &arguments[..] else { return };
        let known = self.arguments.chunks_exact_mut(2).find(|pair| pair[1] == queue);
        match known {
            Some(pair) if number::<f64>(score) < number(&pair[0]) => pair[0] = score.clone(),
            Some(_) => {}
            None => self.arguments.extend(arguments),
        }
    }
}

/// A number that this process wrote.
fn number<T: FromStr + Default>(text: &Bytes) -> T {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The changes of a group, in the order in which they are made.
#[derive(Debug, Default)]
pub(crate) struct Changes(Vec<Change>);

impl Changes {
    pub(crate) fn add(&mut self, kind: Kind, key: String, arguments: Vec<Bytes>) {
        let joins = kind.join() != Join::Apart;
        let earlier =
            self.0.iter_mut().find(|change| joins && change.kind == kind && change.key == key);
        match earlier {
            Some(earlier) => earlier.join(arguments),
            None => self.0.push(Change { kind, key, arguments }),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Change> {
        self.0.iter()
    }

    /// How many arguments they are in a call.
    pub(crate) fn arguments(&self) -> usize {
        let of_one =
            |change: &Change| change.arguments.len() + if change.is_single() { 2 } else { 3 };
        self.0.iter().map(of_one).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        let of_one = |change: &Change| {
            change.key.len() + change.arguments.iter().map(|it| it.len() + 8).sum::<usize>()
        };
        self.0.iter().map(of_one).sum()
    }

    /// Whether a queue is empty is looked at last: another item of the group may have entered it.
    pub(crate) fn write(&self, call: &mut Cmd) {
        let looks = |change: &&Change| matches!(change.kind, Kind::LeftQueue | Kind::LeftClass);
        let (last, first): (Vec<_>, Vec<_>) = self.0.iter().partition(looks);
        for change in first.into_iter().chain(last) {
            let letter = change.kind as u8;
            if change.is_single() {
                call.arg(&[letter][..]).arg(&change.key);
            } else {
                call.arg(&[letter.to_ascii_lowercase()][..]).arg(&change.key);
                call.arg(change.arguments.len());
            }
            for argument in &change.arguments {
                call.arg(&argument[..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(changes: &[(Kind, &str, &[&'static str])]) -> Vec<String> {
        let mut all = Changes::default();
        for (kind, key, arguments) in changes {
            let arguments = arguments.iter().map(|text| Bytes::from_static(text.as_bytes()));
            all.add(*kind, (*key).to_owned(), arguments.collect());
        }
        let mut call = Cmd::new();
        all.write(&mut call);
        assert_eq!(call.args_iter().count(), all.arguments());
        let text = |argument| match argument {
            redis::Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        };
        call.args_iter().map(text).collect()
    }

    #[test]
    fn what_several_do_to_one_key_is_one_change() {
        let sent = added(&[
            (Kind::Leave, "leases", &["a"]),
            (Kind::Enter, "timers", &["1", "a"]),
            (Kind::Leave, "leases", &["b"]),
            (Kind::Leave, "other", &["b"]),
        ]);
        assert_eq!(sent.join(" "), "x leases 2 a b Z timers 1 a X other b");
    }

    #[test]
    fn counts_are_added_up() {
        let sent = added(&[
            (Kind::CountLane, "lanes", &["0:a", "-1"]),
            (Kind::CountLane, "lanes", &["2:a", "1"]),
            (Kind::CountLane, "lanes", &["0:a", "-1"]),
        ]);
        assert_eq!(sent.join(" "), "j lanes 4 0:a -2 2:a 1");
    }

    #[test]
    fn of_each_queue_the_least_score_goes() {
        let sent = added(&[
            (Kind::Ready, "ready", &["17", "q"]),
            (Kind::Ready, "ready", &["9", "q"]),
            (Kind::Ready, "ready", &["12", "q"]),
            (Kind::Ready, "ready", &["12", "r"]),
        ]);
        assert_eq!(sent.join(" "), "y ready 4 9 q 12 r");
    }

    #[test]
    fn whether_a_queue_is_empty_is_looked_at_last() {
        let sent = added(&[
            (Kind::Enter, "a", &["1", "x"]),
            (Kind::Ready, "ready", &["1", "a"]),
            (Kind::Leave, "b", &["y"]),
            (Kind::LeftQueue, "b", &["ready", "b"]),
            (Kind::Enter, "b", &["2", "z"]),
            (Kind::Ready, "ready", &["2", "b"]),
        ]);
        assert_eq!(sent.join(" "), "Z a 1 x y ready 4 1 a 2 b X b y Z b 2 z Q b ready b");
    }

    #[test]
    fn what_both_have_is_said_once() {
        let sent = added(&[
            (Kind::Created, "created:7", &["created", "a"]),
            (Kind::LeftQueue, "queue", &["ready", "q"]),
            (Kind::Created, "created:7", &["created", "b"]),
            (Kind::LeftQueue, "queue", &["ready", "q"]),
        ]);
        assert_eq!(sent.join(" "), "c created:7 3 created a b Q queue ready q");
    }

    #[test]
    fn what_must_stand_alone_does() {
        let sent = added(&[(Kind::Keep, "frames", &["2"]), (Kind::Keep, "frames", &["3"])]);
        assert_eq!(sent.join(" "), "K frames 2 K frames 3");
    }
}
