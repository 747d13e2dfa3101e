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

    /// Refuses configured counts that differ from the stored ones, naming both.
    pub fn agree_with(&self, stored: &Self) -> Result<(), Refusal> {
        for ((field, configured), (_, stored)) in self.fields().into_iter().zip(stored.fields()) {
            if configured != stored {
                let detail = format!(
                    "{field} is {configured} in the configuration and {stored} in the store; the \
                     count is fixed when a store is made"
                );
                return Err(Refusal::at(Code::PartitionMismatch, field, detail));
            }
        }
        Ok(())
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
}
