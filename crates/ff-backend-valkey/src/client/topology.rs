//! Which node owns which slot.

use std::ops::RangeInclusive;
use std::sync::Arc;

use redis::{Cmd, Value};

use super::address::Address;
use super::node::Node;
use super::slot::SLOTS;

const NOBODY: u16 = u16::MAX;

/// A table of slots. A change makes a new one with a higher generation.
pub(super) struct Topology {
    pub(super) generation: u64,
    shares: Vec<Share>,
    /// For each slot the index of its primary, or `NOBODY`.
    owners: Box<[u16]>,
    primaries: Vec<Primary>,
}

/// A node with the slots it owns.
#[derive(Clone)]
pub(crate) struct Primary {
    pub(super) node: Arc<Node>,
    /// In order, and without neighbours that could be one.
    slots: Vec<RangeInclusive<u16>>,
}

/// A run of slots and where their primary is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Share {
    pub(super) slots: RangeInclusive<u16>,
    pub(super) address: Address,
}

impl Primary {
    pub(crate) fn owns(&self, slot: u16) -> bool {
        let after = self.slots.partition_point(|range| *range.end() < slot);
        self.slots.get(after).is_some_and(|range| range.contains(&slot))
    }
}

impl Topology {
    /// `shares` in normal form. Asks for each node once.
    pub(super) fn new(
        generation: u64,
        shares: Vec<Share>,
        node: impl Fn(&Address) -> Arc<Node>,
    ) -> Self {
        let mut primaries: Vec<Primary> = Vec::new();
        let mut owners = vec![NOBODY; usize::from(SLOTS)].into_boxed_slice();
        for Share { slots, address } in &shares {
            let known = primaries.iter().position(|it| it.node.address == *address);
            let index = known.unwrap_or_else(|| {
                primaries.push(Primary { node: node(address), slots: Vec::new() });
                primaries.len() - 1
            });
            primaries[index].slots.push(slots.clone());
            let run = usize::from(*slots.start())..=usize::from(*slots.end());
            owners[run].fill(u16::try_from(index).unwrap_or(NOBODY));
        }
        Self { generation, shares, owners, primaries }
    }

    pub(super) fn owner(&self, slot: u16) -> Option<&Arc<Node>> {
        self.owner_number(slot).map(|number| &self.primaries[number].node)
    }

    pub(super) fn owner_number(&self, slot: u16) -> Option<usize> {
        let number = usize::from(*self.owners.get(usize::from(slot))?);
        (number < self.primaries.len()).then_some(number)
    }

    pub(super) fn node_at(&self, address: &Address) -> Option<&Arc<Node>> {
        self.nodes().find(|node| node.address == *address)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.primaries.iter().map(|primary| &primary.node)
    }

    pub(super) fn primaries(&self) -> &[Primary] {
        &self.primaries
    }

    pub(super) fn shares(&self) -> &[Share] {
        &self.shares
    }

    pub(super) fn is_whole(&self) -> bool {
        !self.owners.contains(&NOBODY)
    }
}

impl Share {
    pub(super) fn of_all_slots(address: Address) -> Self {
        Self { slots: 0..=SLOTS - 1, address }
    }

    /// For a list in normal form.
    pub(super) fn cover_all(shares: &[Self]) -> bool {
        let covered = |next: u32, share: &Self| {
            (u32::from(*share.slots.start()) == next).then(|| u32::from(*share.slots.end()) + 1)
        };
        shares.iter().try_fold(0, covered) == Some(u32::from(SLOTS))
    }

    /// The question that [`Share::read_all`] reads the answer of. Other than `CLUSTER SHARDS` it
    /// names the port of the protocol that it was asked over, so TLS needs no care.
    pub(super) fn question() -> Cmd {
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        command
    }

    /// The answer to `CLUSTER SLOTS` in normal form: a list of first slot, last slot, the primary,
    /// and its replicas; a node is host, port and more.
    pub(super) fn read_all(answer: &Value, asked: &Address) -> Option<Vec<Self>> {
        let Value::Array(entries) = answer else { return None };
        let shares: Option<Vec<Self>> =
            entries.iter().map(|entry| Self::read(entry, asked)).collect();
        Some(normal(shares?))
    }

    fn read(entry: &Value, asked: &Address) -> Option<Self> {
        let Value::Array(fields) = entry else { return None };
        let [first, last, Value::Array(primary), ..] = fields.as_slice() else { return None };
        let [host, port, ..] = primary.as_slice() else { return None };
        let host = match host {
            Value::Nil => "",
            Value::BulkString(host) => std::str::from_utf8(host).ok()?,
            Value::SimpleString(host) => host,
            _ => return None,
        };
        let slots = number(first)?..=number(last)?;
        let is_sound = slots.start() <= slots.end() && *slots.end() < SLOTS;
        let address = Address::of_node(host, number(port)?, asked);
        is_sound.then_some(Self { slots, address })
    }
}

/// Shares with one slot at another node.
pub(super) fn moved(shares: &[Share], slot: u16, address: &Address) -> Vec<Share> {
    let mut result = vec![Share { slots: slot..=slot, address: address.clone() }];
    for Share { slots, address } in shares {
        let (first, last) = (*slots.start(), *slots.end());
        let rest = if slots.contains(&slot) {
            [(first < slot).then(|| first..=slot - 1), (slot < last).then(|| slot + 1..=last)]
        } else {
            [Some(slots.clone()), None]
        };
        let share = |slots| Share { slots, address: address.clone() };
        result.extend(rest.into_iter().flatten().map(share));
    }
    normal(result)
}

/// In order of slots, neighbours with one owner joined: equal layouts are equal lists.
fn normal(mut shares: Vec<Share>) -> Vec<Share> {
    shares.sort_by_key(|share| *share.slots.start());
    let mut result: Vec<Share> = Vec::with_capacity(shares.len());
    for share in shares {
        match result.last_mut() {
            Some(last)
                if last.address == share.address
                    && u32::from(*last.slots.end()) + 1 == u32::from(*share.slots.start()) =>
            {
                last.slots = *last.slots.start()..=*share.slots.end();
            }
            _ => result.push(share),
        }
    }
    result
}

fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Int(number) => u16::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::connector::Connector;
    use crate::client::ground::Ground;
    use crate::library::Library;
    use crate::options::ValkeyOptions;

    fn share(slots: RangeInclusive<u16>, host: &str) -> Share {
        Share { slots, address: Address::new(host, 7000) }
    }

    fn read(text: &str) -> Option<Vec<Share>> {
        let value = redis::parse_redis_value(text.as_bytes()).unwrap();
        Share::read_all(&value, &Address::new("asked", 1))
    }

    #[test]
    fn the_answer_of_a_cluster_is_read() {
        // Two runs of one node, a node that does not know its host, one that hides it; ids and
        // replicas are passed over.
        let node = |host: &str| format!("*4\r\n{host}:7000\r\n$2\r\nid\r\n*0\r\n");
        let answer = format!(
            "*4\r\n\
             *4\r\n:100\r\n:199\r\n{}{}\
             *3\r\n:0\r\n:99\r\n{}\
             *3\r\n:200\r\n:299\r\n{}\
             *3\r\n:300\r\n:16383\r\n{}",
            node("$1\r\na\r\n"),
            node("$7\r\nreplica\r\n"),
            node("$1\r\na\r\n"),
            node("$0\r\n\r\n"),
            node("_\r\n"),
        );
        let expected = [share(0..=199, "a"), share(200..=16383, "asked")];
        assert_eq!(read(&answer).unwrap(), expected);
    }

    #[test]
    fn other_answers_are_refused() {
        let bad = [
            "+OK\r\n",
            "*1\r\n:1\r\n",
            "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
            "*1\r\n*3\r\n:9\r\n:8\r\n*2\r\n$1\r\na\r\n:1\r\n",
            "*1\r\n*3\r\n:0\r\n:9\r\n*1\r\n$1\r\na\r\n",
            "*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n$1\r\na\r\n:70000\r\n",
        ];
        for text in bad {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read("*0\r\n"), Some(Vec::new()));
    }

    #[test]
    fn one_slot_moves() {
        let before = [share(0..=99, "a"), share(100..=199, "b")];
        let cases = [
            (
                50,
                "b",
                vec![
                    share(0..=49, "a"),
                    share(50..=50, "b"),
                    share(51..=99, "a"),
                    share(100..=199, "b"),
                ],
            ),
            (99, "b", vec![share(0..=98, "a"), share(99..=199, "b")]),
            (0, "b", vec![share(0..=0, "b"), share(1..=99, "a"), share(100..=199, "b")]),
            (50, "a", before.to_vec()),
            (200, "b", vec![share(0..=99, "a"), share(100..=200, "b")]),
        ];
        for (slot, host, after) in cases {
            let found = moved(&before, slot, &Address::new(host, 7000));
            assert_eq!(found, after, "{slot} to {host}");
        }
    }

    #[test]
    fn gaps_are_seen() {
        let cases = [
            (vec![share(0..=16383, "a")], true),
            (vec![share(0..=99, "a"), share(100..=16383, "b")], true),
            (vec![share(0..=99, "a"), share(101..=16383, "b")], false),
            (vec![share(1..=16383, "a")], false),
            (vec![share(0..=16382, "a")], false),
            (vec![], false),
        ];
        for (shares, whole) in cases {
            assert_eq!(Share::cover_all(&shares), whole, "{shares:?}");
        }
    }

    #[tokio::test]
    async fn slots_lead_to_their_nodes() {
        // Nodes that cannot be reached have a place in the table like all others.
        let options = ValkeyOptions::new("a", 7000);
        let (connector, _) = Connector::new(&options).unwrap();
        connector.close();
        let library = Arc::new(Library::assemble(&options));
        let ground = Arc::new(Ground::new(&options, library, connector));
        let shares = vec![share(0..=99, "a"), share(100..=199, "b"), share(300..=399, "a")];
        let table = Topology::new(3, shares, |address| Node::start(&ground, address, None));
        let host = |slot| table.owner(slot).map(|node| node.address.host.as_str());
        let found = [0, 99, 100, 199, 200, 300, 400, 16384].map(host);
        let (a, b) = (Some("a"), Some("b"));
        assert_eq!(found, [a, a, b, b, None, a, None, None]);
        assert!(!table.is_whole());
        let [first, second] = table.primaries() else { panic!("two nodes") };
        assert_eq!([first, second].map(|it| it.node.address.host.as_str()), ["a", "b"]);
        let owned = [99, 100, 299, 300, 399, 400].map(|slot| first.owns(slot));
        assert_eq!(owned, [true, false, false, true, true, false]);
    }
}
