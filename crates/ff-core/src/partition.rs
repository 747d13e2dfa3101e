//! Partitions: what one atomic step may touch.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Code, Refusal};
use crate::id::{Home, IdempotencyKey, Namespace, PartitionFamily, PartitionKey};

/// How many partitions each family has. Fixed at the first boot of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionConfig {
    /// Executions and flows, `{fp:N}`.
    pub flow: u16,
    /// Budgets, `{b:M}`.
    pub budget: u16,
    /// Quota policies, `{q:K}`.
    pub quota: u16,
}

impl Default for PartitionConfig {
    fn default() -> Self {
        Self { flow: 64, budget: 16, quota: 16 }
    }
}

impl PartitionConfig {
    pub const MAX: u16 = 4096;

    pub const fn count(&self, family: PartitionFamily) -> u16 {
        match family {
            PartitionFamily::Flow => self.flow,
            PartitionFamily::Budget => self.budget,
            PartitionFamily::Quota => self.quota,
        }
    }

    /// All partitions of a family.
    pub fn homes(&self, family: PartitionFamily) -> impl Iterator<Item = Home> + use<> {
        (0..self.count(family)).map(move |index| Home::Partition(PartitionKey { family, index }))
    }

    /// The counts by their names.
    pub fn fields(&self) -> [(&'static str, u16); 3] {
        [
            ("num_flow_partitions", self.flow),
            ("num_budget_partitions", self.budget),
            ("num_quota_partitions", self.quota),
        ]
    }

    /// Refuses a count of zero or beyond [`PartitionConfig::MAX`], naming the field.
    pub fn check(&self) -> Result<(), Refusal> {
        for (field, count) in self.fields() {
            if !(1..=Self::MAX).contains(&count) {
                return Err(Refusal::at(
                    Code::InvalidInput,
                    field,
                    format!("{field} is {count}, allowed is 1 to {}", Self::MAX),
                ));
            }
        }
        Ok(())
    }
}

/// Counts that a configuration gives, each by itself. What is not given is as the store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GivenPartitions {
    pub flow: Option<u16>,
    pub budget: Option<u16>,
    pub quota: Option<u16>,
}

/// All three, or none.
impl From<Option<PartitionConfig>> for GivenPartitions {
    fn from(counts: Option<PartitionConfig>) -> Self {
        counts.map_or_else(Self::default, |PartitionConfig { flow, budget, quota }| Self {
            flow: Some(flow),
            budget: Some(budget),
            quota: Some(quota),
        })
    }
}

impl GivenPartitions {
    /// The counts of a new store: the defaults for those that are not given. A count that no store
    /// can have is refused.
    pub fn of_new_store(&self) -> Result<PartitionConfig, Refusal> {
        let default = PartitionConfig::default();
        let counts = PartitionConfig {
            flow: self.flow.unwrap_or(default.flow),
            budget: self.budget.unwrap_or(default.budget),
            quota: self.quota.unwrap_or(default.quota),
        };
        counts.check().map(|()| counts)
    }

    /// Refuses a given count that differs from the stored one, naming both.
    pub fn agree_with(&self, stored: &PartitionConfig) -> Result<(), Refusal> {
        let given = [self.flow, self.budget, self.quota];
        for (given, (field, stored)) in given.into_iter().zip(stored.fields()) {
            if let Some(given) = given.filter(|given| *given != stored) {
                let detail = format!(
                    "{field} is {given} in the configuration and {stored} in the store; the \
                     count is fixed when a store is made"
                );
                return Err(Refusal::at(Code::PartitionMismatch, field, detail));
            }
        }
        Ok(())
    }
}

/// The rule that places an execution that stands alone: by its own uuid, or, so that its record of
/// repetition stands beside it, by its namespace and idempotency key.
pub trait SoloPartitioner {
    fn solo_partition(&self, config: &PartitionConfig) -> u16;
}

impl SoloPartitioner for Uuid {
    fn solo_partition(&self, config: &PartitionConfig) -> u16 {
        partition_of_uuid(*self, config.flow)
    }
}

impl SoloPartitioner for (&Namespace, &IdempotencyKey) {
    fn solo_partition(&self, config: &PartitionConfig) -> u16 {
        let (namespace, key) = self;
        partition_of(format!("{namespace}/{key}").as_bytes(), config.flow)
    }
}

/// The hash of the lower-case text, modulo `count`.
pub(crate) fn partition_of_uuid(uuid: Uuid, count: u16) -> u16 {
    let mut buffer = Uuid::encode_buffer();
    partition_of(uuid.hyphenated().encode_lower(&mut buffer).as_bytes(), count)
}

/// [`crc16`] of `bytes` modulo `count`.
pub fn partition_of(bytes: &[u8], count: u16) -> u16 {
    crc16(bytes) % count.max(1)
}

/// CRC16-XMODEM: the hash that Valkey's cluster uses for its slots too.
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        let [first, _] = crc.to_be_bytes();
        (crc << 8) ^ CRC16_OF_BYTE[usize::from(first ^ byte)]
    })
}

/// The hash of each byte alone.
const CRC16_OF_BYTE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte: usize = 0;
    while byte < table.len() {
        let (mut crc, mut bit) = ((byte as u16) << 8, 0);
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_crc16_xmodem() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
    }

    #[test]
    fn counts_are_bounded() {
        assert!(PartitionConfig::default().check().is_ok());
        for bad in [0, 4097] {
            let config = PartitionConfig { budget: bad, ..PartitionConfig::default() };
            let refusal = config.check().unwrap_err();
            assert!(refusal.detail.contains("num_budget_partitions"), "{refusal}");
        }
    }

    #[test]
    fn each_count_is_given_by_itself() {
        let given = GivenPartitions { budget: Some(4), ..GivenPartitions::default() };
        let counts = given.of_new_store().unwrap();
        assert_eq!(counts, PartitionConfig { budget: 4, ..PartitionConfig::default() });
        let stored = PartitionConfig { flow: 32, budget: 4, quota: 2 };
        assert_eq!(given.agree_with(&stored), Ok(()));
        let other = GivenPartitions { quota: Some(3), ..given };
        let refusal = other.agree_with(&stored).unwrap_err();
        assert_eq!(refusal.code, Code::PartitionMismatch);
        assert!(refusal.detail.starts_with("num_quota_partitions is 3"), "{refusal}");
        assert!(GivenPartitions { flow: Some(0), ..given }.of_new_store().is_err());
    }
}
