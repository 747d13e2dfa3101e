//! Members that a cancel of their flow spares because they run: whoever waits for the cancel waits for
//! them too.

use std::time::{Duration, Instant};

use crate::backend::{Backend, BackendExt};
use crate::error::EngineError;
use crate::id::FlowId;
use crate::limits;
use crate::read::{DescribeFlow, EventFilter, Follow, From, Subscription};
use crate::state::PublicState;

/// A look costs little, and is soon made again should news have been lost.
const LOOK: Duration = Duration::from_secs(1);

/// Waits until no member of a cancelled flow runs any more. A timeout when the time has come first.
pub(crate) async fn ended<B: Backend + ?Sized>(
    backend: &B,
    flow_id: FlowId,
    until: Option<Instant>,
) -> Result<(), EngineError> {
    let kinds_of_event = Subscription::Completions.kinds_of_event();
    let filter = EventFilter { kinds_of_event, flow: Some(flow_id), ..EventFilter::default() };
    let follow =
        |from| Follow { filter: filter.clone(), from, limit: limits::PAGE_MAX, each: false };
    // The place in the log comes first: an end between the look and the wait is then not missed.
    let mut cursor = backend.events(follow(From::Now), Duration::ZERO).await?.cursor;
    loop {
        let running = running(backend, flow_id).await?;
        if running == 0 {
            return Ok(());
        }
        let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            let detail = format!("the cancel stands; members that run on: {running}");
            return Err(EngineError::Timeout { detail });
        }
        let after = backend.events(follow(From::Cursor(cursor)), left.min(LOOK)).await?;
        cursor = after.cursor;
    }
}

/// How many run. None of a flow that is gone.
async fn running<B: Backend + ?Sized>(backend: &B, flow_id: FlowId) -> Result<u32, EngineError> {
    let flow = backend.ask(DescribeFlow { flow_id }).await?;
    Ok(flow.map_or(0, |flow| flow.counts.of(PublicState::Active)))
}
