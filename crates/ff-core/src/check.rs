//! Checks of input that many operations share. A number outside its range is refused, never clamped.

use crate::error::Refusal;
use crate::id::ExecutionId;
use crate::limits;
use crate::partition::PartitionConfig;
use crate::time::TimestampMs;

/// Refuses an id of a partition that does not exist.
pub(crate) fn check_partition(
    id: ExecutionId,
    partitions: &PartitionConfig,
) -> Result<(), Refusal> {
    if id.partition() < partitions.flow {
        return Ok(());
    }
    Err(Refusal::invalid(
        "execution_id",
        format!("partition {} does not exist, there are {}", id.partition(), partitions.flow),
    ))
}

/// Refuses a point in time outside the years 1970 to 9999.
pub(crate) fn check_time(field: &'static str, at: TimestampMs) -> Result<(), Refusal> {
    if (0..=limits::TIME_MAX_MS).contains(&at.0) {
        Ok(())
    } else {
        Err(Refusal::invalid(field, format!("{field} must be from 0 to {}", limits::TIME_MAX_MS)))
    }
}

/// Refuses a number outside `low..=high`.
pub(crate) fn check_range(
    field: &'static str,
    value: u64,
    low: u64,
    high: u64,
) -> Result<(), Refusal> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(Refusal::invalid(field, format!("{field} is {value}, allowed is {low} to {high}")))
    }
}

/// Refuses a text over `limit` bytes.
pub(crate) fn check_bytes(field: &'static str, text: &str, limit: usize) -> Result<(), Refusal> {
    if text.len() <= limit {
        Ok(())
    } else {
        Err(Refusal::invalid(
            field,
            format!("{field} has {} bytes, the limit is {limit}", text.len()),
        ))
    }
}
