//! Partition counts: written by the first boot in one atomic step, checked by every other.

use ff_core::partition::{GivenPartitions, PartitionConfig};
use redis::Value;

use crate::client::{Client, slot_of};
use crate::error::OpenError;
use crate::keys::Keys;
use crate::reply;

/// The counts of this deployment; `given` ones must be equal to the stored ones.
pub(crate) async fn agree(
    client: &Client,
    keys: &Keys,
    given: impl Into<GivenPartitions>,
) -> Result<PartitionConfig, OpenError> {
    let given = given.into();
    let wanted = given.of_new_store()?;
    let key = keys.config();
    let slot = slot_of(key.as_bytes());
    let mut call = redis::cmd("FCALL");
    call.arg("ff_partitions").arg(1).arg(&key).arg(client.call_version());
    call.arg(wanted.flow).arg(wanted.budget).arg(wanted.quota);
    let counts = client.send(slot, &call).await.and_then(reply::array);
    let counts = counts.map_err(|error| client.unopened(slot, error))?;
    let stored = parse(&counts)
        .ok_or_else(|| OpenError::Damaged(format!("{key} does not hold the three counts")))?;
    stored.check()?;
    given.agree_with(&stored)?;
    Ok(stored)
}

/// Whether a first boot has written them.
pub(crate) async fn are_agreed(client: &Client, keys: &Keys) -> Result<bool, OpenError> {
    let key = keys.config();
    let mut call = redis::cmd("EXISTS");
    call.arg(&key);
    let slot = slot_of(key.as_bytes());
    let found = client.send(slot, &call).await;
    let found = found.and_then(|found| reply::number(&found));
    found.map(|found| found > 0).map_err(|error| client.unopened(slot, error))
}

fn parse(counts: &[Value]) -> Option<PartitionConfig> {
    let count = |n: usize| reply::partition(counts.get(n)?).ok();
    Some(PartitionConfig { flow: count(0)?, budget: count(1)?, quota: count(2)? })
}
