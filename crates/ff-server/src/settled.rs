//! Waiting for executions and flows to end.
//!
//! One task follows the ends of all of them while somebody waits, and wakes whom it concerns: a
//! thousand waiting requests cost one subscription.

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::BackendExt as _;
use ff_core::error::EngineError;
use ff_core::event::EventKind;
use ff_core::id::{ExecutionId, FlowId, Subject};
use ff_core::limits;
use ff_core::read::{EventFilter, FlowSnapshot, Follow, From, Record, Subscription};
use ff_core::state::PublicState;
use ff_core::tails::Tails;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::app::App;
use crate::call::Call;
use crate::flows;

/// How long the follower looks before it asks whether anybody still waits.
const LOOK: Duration = Duration::from_secs(5);
/// How long it rests when the store fails.
const REST: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Settled {
    tails: Tails,
    is_followed: Mutex<bool>,
}

fn has_ended(record: &Record) -> bool {
    PublicState::ENDED.contains(&record.state.public_state)
}

/// The record of an execution once it has ended, or as it is when the wait is over.
pub(crate) async fn record(call: &Call, id: ExecutionId) -> Result<Box<Record>, EngineError> {
    until(call, id, || call.record(id), |found| has_ended(found)).await
}

/// The same of a flow.
pub(crate) async fn flow(call: &Call, id: FlowId) -> Result<Box<FlowSnapshot>, EngineError> {
    let look = || flows::flow(call, id);
    until(call, watched(&call.app, id), look, |found| found.state.is_terminal()).await
}

/// Flows are watched under the id that a member of the same uuid would have. Should there be one,
/// somebody looks once too often.
fn watched(app: &App, id: FlowId) -> ExecutionId {
    ExecutionId::for_flow(id.uuid(), id, &app.backend.settings().partitions)
}

async fn until<T, F>(
    call: &Call,
    watched: ExecutionId,
    look: impl Fn() -> F,
    has_ended: impl Fn(&T) -> bool,
) -> Result<T, EngineError>
where
    F: Future<Output = Result<T, EngineError>>,
{
    let (app, wait) = (&call.app, call.wait);
    let found = look().await?;
    if wait.is_zero() || has_ended(&found) {
        return Ok(found);
    }
    let deadline = Instant::now() + wait;
    // Whoever is registered before the follower's place in the log is taken misses nothing.
    let mut watching = app.settled.tails.watch(watched);
    begin(app).await?;
    let mut shutdown = app.shutdown.clone();
    loop {
        let found = look().await?;
        if has_ended(&found) {
            return Ok(found);
        }
        tokio::select! {
            () = watching.news() => {}
            () = tokio::time::sleep_until(deadline) => return Ok(found),
            () = shutdown.requested() => return Ok(found),
        }
    }
}

/// Sees to it that somebody follows.
async fn begin(app: &Arc<App>) -> Result<(), EngineError> {
    let mut is_followed = app.settled.is_followed.lock().await;
    if !*is_followed {
        let cursor = app.backend.events(ends(From::Now), Duration::ZERO).await?.cursor;
        tokio::spawn(follow(Arc::clone(app), cursor));
        *is_followed = true;
    }
    Ok(())
}

fn ends(from: From) -> Follow {
    let mut kinds_of_event = Subscription::Completions.kinds_of_event();
    let flows = [EventKind::FlowCompleted, EventKind::FlowFailed, EventKind::FlowCancelled];
    kinds_of_event.extend(flows);
    let filter = EventFilter { kinds_of_event, ..EventFilter::default() };
    Follow { filter, from, limit: limits::PAGE_MAX }
}

/// Follows until nobody waits.
async fn follow(app: Arc<App>, mut cursor: String) {
    let tails = &app.settled.tails;
    let mut shutdown = app.shutdown.clone();
    loop {
        let after = app.backend.events(ends(From::Cursor(cursor.clone())), LOOK);
        match shutdown.or(after).await {
            None => return,
            Some(Ok(after)) => {
                cursor = after.cursor;
                if after.gap {
                    tails.tell_all();
                }
                for envelope in after.items {
                    match envelope.event.subject {
                        Subject::Execution(id) => tails.tell(id),
                        // A document's name is the flow's id.
                        Subject::Document(id) => {
                            if let Ok(id) = id.name.parse() {
                                tails.tell(watched(&app, id));
                            }
                        }
                    }
                }
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "ends of executions and flows cannot be followed; trying again");
                tails.tell_all();
                let _ = shutdown.or(tokio::time::sleep(REST)).await;
            }
        }
        let mut is_followed = app.settled.is_followed.lock().await;
        if tails.is_empty() {
            *is_followed = false;
            return;
        }
    }
}
