//! Execution ids carry their partition, so that routing needs no look-up.

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::uuids::parse_uuid;
use super::{FlowId, IdempotencyKey, Namespace, PartitionFamily, PartitionKey};
use crate::partition::{PartitionConfig, SoloPartitioner as _, crc16};

/// `{fp:N}:<uuid>`, N being the partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutionId {
    // The uuid comes first so that the derived order is by uuid, then partition.
    uuid: Uuid,
    partition: u16,
}

/// Why a text is not an execution id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionIdParseError {
    #[error("execution id must begin with a partition tag such as {{fp:7}}:")]
    MissingTag,
    #[error("partition number of the execution id is not a canonical number up to 4095")]
    InvalidPartitionIndex,
    #[error("execution id must end in a lower-case hyphenated uuid")]
    InvalidUuid,
}

impl ExecutionId {
    /// Length of [`ExecutionId::to_bytes`].
    pub const BYTES: usize = 18;

    pub const fn new(partition: u16, uuid: Uuid) -> Self {
        Self { uuid, partition }
    }

    /// An execution that stands alone: its partition is the hash of its own uuid.
    pub fn solo(uuid: Uuid, config: &PartitionConfig) -> Self {
        Self::new(uuid.solo_partition(config), uuid)
    }

    /// A new execution that stands alone. Those that one thread makes within a moment stand in one
    /// partition, and the next ones in another: what is made together is then written, claimed and
    /// ended together, which spares a store most of its work, and over time partitions fill evenly.
    pub fn mint(config: &PartitionConfig) -> Self {
        Self::solo_in(SPOT.get().next(), config)
    }

    /// A new execution that stands alone in `partition`, counted modulo how many there are: its
    /// uuid is one whose hash falls there. For callers that want several side by side.
    pub fn solo_in(partition: u16, config: &PartitionConfig) -> Self {
        let partition = partition % config.flow.max(1);
        loop {
            let uuid = Uuid::now_v7();
            if let Some(uuid) = reroll(uuid, |hash| hash % config.flow.max(1) == partition) {
                return Self::new(partition, uuid);
            }
        }
    }

    /// An execution with an idempotency key stands in the partition of its key, where its record
    /// of repetition stands too.
    pub fn for_key(
        uuid: Uuid,
        namespace: &Namespace,
        key: &IdempotencyKey,
        config: &PartitionConfig,
    ) -> Self {
        Self::new((namespace, key).solo_partition(config), uuid)
    }

    /// An execution beside its flow.
    pub fn for_flow(uuid: Uuid, flow: FlowId, config: &PartitionConfig) -> Self {
        Self::new(flow.partition(config), uuid)
    }

    pub const fn uuid(&self) -> Uuid {
        self.uuid
    }

    pub const fn partition(&self) -> u16 {
        self.partition
    }

    pub const fn partition_key(&self) -> PartitionKey {
        PartitionKey { family: PartitionFamily::Flow, index: self.partition }
    }

    /// Uuid, then partition in big-endian order: sorts as the id does.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(self.uuid.as_bytes());
        bytes[16..].copy_from_slice(&self.partition.to_be_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let (uuid, partition) = bytes.split_first_chunk::<16>()?;
        Some(Self {
            uuid: Uuid::from_bytes(*uuid),
            partition: u16::from_be_bytes(partition.try_into().ok()?),
        })
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{fp:{}}}:{}", self.partition, self.uuid.hyphenated())
    }
}

impl fmt::Debug for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ExecutionId {
    type Err = ExecutionIdParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let body = text.strip_prefix("{fp:").ok_or(ExecutionIdParseError::MissingTag)?;
        let (number, uuid) = body.split_once("}:").ok_or(ExecutionIdParseError::MissingTag)?;
        let partition =
            parse_partition(number).ok_or(ExecutionIdParseError::InvalidPartitionIndex)?;
        let uuid = parse_uuid(uuid).map_err(|_| ExecutionIdParseError::InvalidUuid)?;
        Ok(Self { uuid, partition })
    }
}

/// Where a thread makes executions at the moment.
#[derive(Debug, Clone, Copy)]
struct Spot {
    partition: u16,
    since: Option<Instant>,
    made: u32,
}

thread_local! {
    static SPOT: Cell<Spot> = const { Cell::new(Spot { partition: 0, since: None, made: 0 }) };
}

impl Spot {
    /// A moment ends after as much time, or as many executions; both are about what one call of a
    /// store carries.
    const LASTS: Duration = Duration::from_millis(10);
    const HOLDS: u32 = 64;

    /// The partition for one more, counted modulo how many there are.
    fn next(mut self) -> u16 {
        let now = Instant::now();
        let lasts = self.since.is_some_and(|since| now.duration_since(since) < Self::LASTS);
        if lasts && self.made < Self::HOLDS {
            self.made += 1;
        } else {
            // The last bits of such a uuid are random.
            let partition = Uuid::now_v7().as_u128() as u16;
            self = Self { partition, since: Some(now), made: 1 };
        }
        SPOT.set(self);
        self.partition
    }
}

/// The uuid with other bits at its end, so that the hash of its text is `wanted`. They are random
/// anyway, and the order by time, which the rest holds, stays. None if none of them does it.
///
/// The hash of a text is that of its parts, each with zeroes in the other's place, one xor the
/// other, and zeroes at the front count for nothing: so a try costs the hash of the end alone.
fn reroll(uuid: Uuid, wanted: impl Fn(u16) -> bool) -> Option<Uuid> {
    const END_DIGITS: usize = 4;
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    uuid.hyphenated().encode_lower(&mut text);
    let (_, end) = text.split_last_chunk_mut::<END_DIGITS>()?;
    *end = [0; END_DIGITS];
    let of_front = crc16(&text);
    let (front, first) = (uuid.as_u128() >> 16, uuid.as_u128() as u16);
    let mut ends = (0..=u16::MAX).map(|step| first.wrapping_add(step));
    let end = ends.find(|end| wanted(of_front ^ crc16(&hex(*end))))?;
    Some(Uuid::from_u128(front << 16 | u128::from(end)))
}

fn hex(number: u16) -> [u8; 4] {
    [12, 8, 4, 0].map(|shift| b"0123456789abcdef"[usize::from(number >> shift & 0xf)])
}

pub(super) fn parse_partition(number: &str) -> Option<u16> {
    let canonical = number.bytes().all(|b| b.is_ascii_digit())
        && (number.len() == 1 || !number.starts_with('0'));
    let partition = number.parse().ok()?;
    (canonical && partition < PartitionConfig::MAX).then_some(partition)
}

impl Serialize for ExecutionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            (self.uuid, self.partition).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for ExecutionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            text.parse().map_err(serde::de::Error::custom)
        } else {
            let (uuid, partition) = Deserialize::deserialize(deserializer)?;
            Ok(Self { uuid, partition })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn malformed_ids_name_what_is_wrong() {
        use ExecutionIdParseError::{InvalidPartitionIndex, InvalidUuid, MissingTag};
        let uuid = "0199aabb-0000-7000-8000-000000000001";
        let cases = [
            (uuid.to_owned(), MissingTag),
            (String::new(), MissingTag),
            (format!("{{b:1}}:{uuid}"), MissingTag),
            (format!("{{fp:1}}{uuid}"), MissingTag),
            (format!("{{fp:}}:{uuid}"), InvalidPartitionIndex),
            (format!("{{fp:07}}:{uuid}"), InvalidPartitionIndex),
            (format!("{{fp:+7}}:{uuid}"), InvalidPartitionIndex),
            (format!("{{fp:4096}}:{uuid}"), InvalidPartitionIndex),
            (format!("{{fp:99999999999}}:{uuid}"), InvalidPartitionIndex),
            ("{fp:7}:nonsense".to_owned(), InvalidUuid),
            (format!("{{fp:7}}:{}", uuid.to_uppercase()), InvalidUuid),
            (format!("{{fp:7}}:{uuid} "), InvalidUuid),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<ExecutionId>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn new_ids_fall_on_the_partition_that_was_asked_for() {
        for flow in [1, 3, 64, 4096] {
            let config = PartitionConfig { flow, ..PartitionConfig::default() };
            let mut before = Uuid::nil();
            for partition in [0, 1, flow / 2, flow - 1, flow] {
                let id = ExecutionId::solo_in(partition, &config);
                assert_eq!(id.partition(), partition % flow);
                assert_eq!(id, ExecutionId::solo(id.uuid(), &config), "by its own hash");
                assert_eq!(id.uuid().get_version_num(), 7);
                assert!(id.uuid() > before, "in order of time");
                before = id.uuid();
            }
        }
    }

    #[test]
    fn what_is_minted_together_stands_together_and_moves_on() {
        let config = PartitionConfig::default();
        let ids: Vec<_> = (0..6400).map(|_| ExecutionId::mint(&config)).collect();
        let moves = ids.windows(2).filter(|pair| pair[0].partition() != pair[1].partition());
        // 99 after so many each, and one whenever a moment was over; a few fall where they were.
        assert!((90..1000).contains(&moves.count()), "{:?}", &ids[..200]);
        let partitions: BTreeSet<_> = ids.iter().map(ExecutionId::partition).collect();
        assert!(partitions.len() > 32, "{partitions:?}");
        assert!(ids.iter().all(|id| *id == ExecutionId::solo(id.uuid(), &config)));
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    }

    #[test]
    fn text_and_bytes_round_trip() {
        let text = "{fp:63}:0199aabb-0000-7000-8000-000000000001";
        let id: ExecutionId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(ExecutionId::from_bytes(&id.to_bytes()), Some(id));
        assert_eq!(ExecutionId::from_bytes(b"short"), None);
    }
}
