//! Routes: what waited for a worker that can run it is let go once there is one.

use crate::backend::Backend;
use crate::capability::Capabilities;
use crate::each::Each;
use crate::error::EngineError;
use crate::id::{LaneId, Namespace};
use crate::limits;
use crate::read::{ListUnrouted, Unrouted};
use crate::state::{AdmissionReason, Route};
use crate::unblock::{first_items, unblock};

/// A worker has come: lets go what it can run in its lanes, of each as much as a claim can take. What
/// is beyond is left to the engine. Says how many there were.
pub(crate) async fn welcome<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
    lanes: &[LaneId],
    offered: &Capabilities,
) -> Result<u32, EngineError> {
    // Mostly nobody waits in any lane.
    if !is_any_unrouted(backend, namespace).await? {
        return Ok(0);
    }
    let mut done = 0;
    for lane in lanes {
        let covers = |route: &Route| offered.covers(&route.required);
        done += let_go(backend, namespace, Some(lane), limits::CLAIM_TASKS, covers).await?.done;
    }
    Ok(done)
}

/// Whether anything in a namespace waits for a worker that can run it.
pub async fn is_any_unrouted<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
) -> Result<bool, EngineError> {
    Ok(!unrouted(backend, namespace, None, None, 1).await?.is_empty())
}

/// Lets go what waits for a worker on a route that is covered, of one lane or of all, until there
/// are `most`. A route that is not covered costs one look, however many wait there.
pub async fn let_go<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
    lane: Option<&LaneId>,
    most: u32,
    covers: impl Fn(&Route) -> bool + Send,
) -> Result<Each, EngineError> {
    let (mut all, mut behind, mut limit) = (Each::default(), None, 1);
    while all.done < most {
        // What is broken stays in the list, in front of the others.
        let asked = limits::PAGE_MAX.min(limit + all.passed_over());
        let found = unrouted(backend, namespace, lane, behind.as_ref(), asked).await?;
        let Some(last) = found.last() else { break };
        let sound = found.iter().filter(|it| !all.has_broken(it.execution_id));
        let sound: Vec<_> = sound.collect();
        let next = sound.first().map_or(&last.route, |first| &first.route);
        let covered = sound.iter().take_while(|it| covers(&it.route)).map(|it| it.execution_id);
        let freed = unblock(backend, covered, AdmissionReason::Route).await?;
        let reached = freed.done + freed.passed_over();
        all.add(freed);
        // Those who were let go have left the list, so the next look begins where this one did.
        (behind, limit) = match reached {
            0 => (Some(next.clone()), 1),
            _ => (behind, limits::ROUTE_BATCH.min(most.saturating_sub(all.done)).max(1)),
        };
    }
    Ok(all)
}

async fn unrouted<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
    lane: Option<&LaneId>,
    behind: Option<&Route>,
    limit: u32,
) -> Result<Vec<Unrouted>, EngineError> {
    let question = |cursor| {
        let (namespace, lane, behind) = (namespace.clone(), lane.cloned(), behind.cloned());
        ListUnrouted { namespace, lane, behind, cursor, limit }
    };
    first_items(backend, question).await
}
