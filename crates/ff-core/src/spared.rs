//! Members that a cancel of their flow spares because they run: whoever waits for the cancel waits for
//! them too, and is told which of them still ran at the end.

use std::time::{Duration, Instant};

use crate::backend::{Backend, BackendExt};
use crate::error::EngineError;
use crate::id::{ExecutionId, FlowId};
use crate::limits;
use crate::read::{EventFilter, Follow, From, ListFlowMembers, Subscription};
use crate::state::PublicState;

/// A look costs little, and is soon made again should news have been lost.
const LOOK: Duration = Duration::from_secs(1);

/// Waits until no member of a cancelled flow runs any more, or the time has come: those that still
/// run, a page of them at most.
pub(crate) async fn outlast<B: Backend + ?Sized>(
    backend: &B,
    flow_id: FlowId,
    until: Option<Instant>,
) -> Result<Vec<ExecutionId>, EngineError> {
    let kinds_of_event = Subscription::Completions.kinds_of_event();
    let filter = EventFilter { kinds_of_event, flow: Some(flow_id), ..EventFilter::default() };
    let follow =
        |from| Follow { filter: filter.clone(), from, limit: limits::PAGE_MAX, each: false };
    // The place in the log comes first: an end between the look and the wait is then not missed.
    let mut cursor = backend.events(follow(From::Now), Duration::ZERO).await?.cursor;
    loop {
        let running = running(backend, flow_id).await?;
        let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
        if running.is_empty() || left.is_zero() {
            return Ok(running);
        }
        let after = backend.events(follow(From::Cursor(cursor)), left.min(LOOK)).await?;
        cursor = after.cursor;
    }
}

async fn running<B: Backend + ?Sized>(
    backend: &B,
    flow_id: FlowId,
) -> Result<Vec<ExecutionId>, EngineError> {
    let most = limits::PAGE_MAX as usize;
    let (mut running, mut next) = (Vec::new(), Some(0));
    while let Some(from) = next.filter(|_| running.len() < most) {
        let page = backend.ask(ListFlowMembers { flow_id, from, limit: limits::PAGE_MAX }).await?;
        let active = page.items.iter().filter(|it| it.public_state == PublicState::Active);
        running.extend(active.map(|member| member.execution_id));
        next = page.next;
    }
    running.truncate(most);
    Ok(running)
}
