//! Routes: what waited for a worker that can run it is let go once there is one.

use crate::backend::{Backend, BackendExt};
use crate::capability::Capabilities;
use crate::error::EngineError;
use crate::id::{LaneId, Namespace};
use crate::limits;
use crate::operation::{Command, Reply, Settled, Unblock};
use crate::read::{ListUnrouted, Unrouted};
use crate::state::{AdmissionReason, Route};

/// A worker has come: lets go what it can run in its lanes, of each as much as a claim can take. What
/// is beyond is left to the engine.
pub(crate) async fn welcome<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
    lanes: &[LaneId],
    offered: &Capabilities,
) -> Result<(), EngineError> {
    // Mostly nobody waits in any lane.
    if !is_any_unrouted(backend, namespace).await? {
        return Ok(());
    }
    for lane in lanes {
        let covers = |route: &Route| offered.covers(&route.required);
        let_go(backend, namespace, Some(lane), limits::CLAIM_TASKS, covers).await?;
    }
    Ok(())
}

/// Whether anything in a namespace waits for a worker that can run it.
pub async fn is_any_unrouted<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
) -> Result<bool, EngineError> {
    Ok(!unrouted(backend, namespace, None, None, 1).await?.is_empty())
}

/// Lets go what waits for a worker on a route that is covered, of one lane or of all, until there
/// are `most`. Says how many there were. A route that is not covered costs one look, however many
/// wait there.
pub async fn let_go<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
    lane: Option<&LaneId>,
    most: u32,
    covers: impl Fn(&Route) -> bool + Send,
) -> Result<u32, EngineError> {
    let (mut done, mut behind, mut limit) = (0, None, 1);
    while done < most {
        let found = unrouted(backend, namespace, lane, behind.clone(), limit).await?;
        let Some(first) = found.first() else { break };
        let passed_over = first.route.clone();
        let covered = found.iter().take_while(|it| covers(&it.route)).collect::<Vec<_>>();
        let freed = unblock(backend, &covered).await?;
        done += freed;
        // Those who were let go have left the list, so the next look begins where this one did.
        (behind, limit) = match freed {
            0 => (Some(passed_over), 1),
            _ => (behind, limits::ROUTE_BATCH.min(most.saturating_sub(done)).max(1)),
        };
    }
    Ok(done)
}

async fn unrouted<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
    lane: Option<&LaneId>,
    behind: Option<Route>,
    limit: u32,
) -> Result<Vec<Unrouted>, EngineError> {
    let (namespace, lane) = (namespace.clone(), lane.cloned());
    let mut question = ListUnrouted { namespace, lane, behind, cursor: None, limit };
    loop {
        let page = backend.ask(question.clone()).await?;
        // A page may be empty and not the last.
        if !page.items.is_empty() || page.next_cursor.is_none() {
            return Ok(page.items);
        }
        question.cursor = page.next_cursor;
    }
}

/// Lets these go: how many had not been yet.
async fn unblock<B: Backend + ?Sized>(
    backend: &B,
    blocked: &[&Unrouted],
) -> Result<u32, EngineError> {
    if blocked.is_empty() {
        return Ok(0);
    }
    let expected = AdmissionReason::Route.blocking_reason();
    let unblocks = blocked.iter().map(|it| Unblock { execution_id: it.execution_id, expected });
    let mut freed = 0;
    for reply in backend.apply(unblocks.map(Command::from).collect()).await {
        match reply {
            Ok(Reply::Unblock(Settled::Done)) => freed += 1,
            Ok(_) => {}
            // Somebody else was faster.
            Err(error) if error.refusal().is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(freed)
}
