//! Retention of the log. Records of repetition go by themselves: the server removes their keys.

use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::operation::{Trim, Trimmed};

use crate::reply;
use crate::store::{Shared, join_all};

/// One bounded step in every partition.
pub(crate) async fn trim(shared: &Arc<Shared>, trim: &Trim) -> Result<Trimmed, EngineError> {
    let partitions = shared.settings.partitions.flow;
    let bytes = trim.event_bytes / u64::from(partitions);
    let steps = (0..partitions).map(|partition| async move {
        let mut call = shared.function("ff_trim");
        call.arg(1).arg(shared.keys.events(partition));
        shared.begin(&mut call).arg(partition);
        // Beyond 2^53 the functions' numbers are not exact, and nobody keeps that much.
        call.arg(trim.events_before.0).arg(bytes.min(1 << 50)).arg(trim.most);
        let reply = reply::array(shared.send(partition, &call).await?)?;
        let count = |n: usize| reply.get(n).map_or(Ok(0), reply::number);
        Ok::<_, EngineError>((count(0)?, count(1)? == 1))
    });
    let mut trimmed = Trimmed::default();
    for step in join_all(steps).await {
        let (events, more) = step?;
        trimmed.events += u32::try_from(events).unwrap_or(u32::MAX);
        trimmed.more |= more;
    }
    Ok(trimmed)
}
