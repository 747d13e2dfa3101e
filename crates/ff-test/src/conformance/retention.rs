//! Retention: how long a terminal execution is kept.

use ff_core::event::EventKind;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Submit, Tick};
use ff_core::read::Filter;
use ff_core::state::DueKind;

use crate::world::{World, cancel};

const BY_OUTCOME: &str = r#"{"retention":
    {"success_ms":1000,"failed_ms":2000,"cancelled_ms":3000,"expired_ms":4000}}"#;

/// One execution of each outcome, in the order of the policy above.
async fn one_of_each(world: &World, json: &str) -> [ExecutionId; 4] {
    let success = world.finish(world.work_with(json)).await.execution_id;
    let failed = world.start(world.work_with(json)).await;
    world.fail(&failed, "permanent").await.unwrap();
    let cancelled = world.submit(world.work_with(json)).await;
    world.act(cancel(cancelled)).await;
    let past = Some(world.now().await);
    let expired = Submit { execution_deadline_at: past, ..world.work_with(json) };
    let expired = world.submit(expired).await;
    world.settle().await;
    [success, failed.execution_id, cancelled, expired]
}

pub async fn each_outcome_is_kept_as_its_policy_says(world: &World) {
    let ids = one_of_each(world, BY_OUTCOME).await;
    for (gone, id) in ids.iter().enumerate() {
        world.pass(999).await;
        assert!(world.find(*id).await.is_some(), "outcome {gone} was removed too early");
        world.pass(1).await;
        for (index, id) in ids.iter().enumerate() {
            assert_eq!(world.find(*id).await.is_none(), index <= gone, "{index} after {gone}");
        }
    }
    assert_eq!(world.search(Filter::default()).await, []);
}

pub async fn a_day_is_the_default(world: &World) {
    let ids = one_of_each(world, "{}").await;
    world.pass(limits::RETENTION_MS.cast_signed() - 1).await;
    for id in ids {
        assert!(world.find(id).await.is_some());
    }
    world.pass(1).await;
    for id in ids {
        assert!(world.find(id).await.is_none());
    }
}

pub async fn without_retention_it_goes_with_the_next_tick(world: &World) {
    let task = world.finish(world.work_with(r#"{"retention":{"success_ms":0}}"#)).await;
    assert!(world.find(task.execution_id).await.is_some());
    let ticked = world.act(Tick { home: None, most: 10 }).await;
    assert_eq!(ticked.fired, [(DueKind::RetentionTrimmer, 1)]);
    assert!(world.find(task.execution_id).await.is_none());
}

pub async fn what_has_not_ended_is_never_removed(world: &World) {
    let waiting = world.submit(world.work_with(BY_OUTCOME)).await;
    world.pass(limits::DURATION_MAX_MS.cast_signed()).await;
    assert_eq!(world.claim_ids(1).await, [waiting]);
}

pub async fn removal_by_retention_is_an_event(world: &World) {
    let task = world.finish(world.work_with(BY_OUTCOME)).await;
    world.pass(1_000).await;
    let kinds: Vec<_> = world.log().await.iter().map(|envelope| envelope.event.kind).collect();
    use EventKind::{Claimed, Completed, Deleted, Submitted};
    assert_eq!(kinds, [Submitted, Claimed, Completed, Deleted]);
    assert!(world.find(task.execution_id).await.is_none());
}
