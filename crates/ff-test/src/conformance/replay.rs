//! Replay: an operator gives a terminal execution another generation.

use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Replay, Replayed, Submit};
use ff_core::state::{
    AttemptProgress, AttemptState, AttemptType, EligibilityState, LifecyclePhase, OwnershipState,
    PublicState,
};

use crate::world::{World, cancel, complete, delay, progress, revoke};

fn replay(id: ExecutionId) -> Replay {
    Replay { execution_id: id, descendants: false }
}

pub async fn every_outcome_can_be_replayed(world: &World) {
    let done = world.finish(world.work()).await.execution_id;
    let failed = world.start(world.work()).await;
    world.fail(&failed, "permanent").await.unwrap();
    let cancelled = world.submit(world.work()).await;
    world.act(cancel(cancelled)).await;
    let past = Some(world.now().await);
    let expired = world.submit(Submit { execution_deadline_at: past, ..world.work() }).await;
    world.settle().await;
    let all = [done, failed.execution_id, cancelled, expired];
    for id in all {
        let reply = world.act(replay(id)).await;
        assert_eq!(
            reply,
            Replayed { replay_count: 1, public_state: PublicState::Waiting, unresolved: 0 }
        );
    }
    assert_eq!(world.claim_ids(10).await, all);
}

pub async fn a_replayed_execution_begins_anew(world: &World) {
    let json = r#"{"retry_policy":{"max_retries":1},"timeout_policy":{"max_reclaim_count":1}}"#;
    let task = world.start(world.work_with(json)).await;
    let id = task.execution_id;
    world.act(progress(&task, 80)).await;
    world.act(revoke(id)).await;
    world.fail(&world.claim_one().await, "transient").await.unwrap();
    world.pass(1_000).await;
    world.fail(&world.claim_one().await, "transient").await.unwrap();
    let before = world.describe(id).await;
    assert_eq!((before.retry_count, before.lease_reclaim_count), (1, 1));
    assert_eq!(before.state.public_state, PublicState::Failed);
    world.act(replay(id)).await;
    let record = world.describe(id).await;
    assert_eq!(record.state.lifecycle_phase, LifecyclePhase::Runnable);
    assert_eq!(record.state.ownership_state, OwnershipState::Unowned);
    assert_eq!(record.state.eligibility_state, EligibilityState::EligibleNow);
    assert_eq!(record.state.attempt_state, AttemptProgress::PendingReplayAttempt);
    assert_eq!(record.state.terminal_outcome, None);
    assert_eq!((record.retry_count, record.lease_reclaim_count, record.replay_count), (0, 0, 1));
    assert_eq!(
        (record.completed_at, record.failure_reason, record.progress_pct),
        (None, None, None)
    );
    assert_eq!((record.started_at, record.created_at), (before.started_at, before.created_at));
    let event = world.events(id).await.pop().unwrap();
    assert_eq!((event.kind, event.outcome), (EventKind::Replayed, None));
    assert_eq!(event.data["replay_count"], Detail::from(1_u32));
}

pub async fn epochs_and_attempts_go_on_over_replays(world: &World) {
    let mut task = world.finish(world.work()).await;
    for generation in 1..=3_u32 {
        world.act(replay(task.execution_id)).await;
        task = world.claim_one().await;
        assert_eq!((task.attempt_type, task.attempt_index), (AttemptType::Replay, generation));
        assert_eq!(task.lease_epoch, u64::from(generation) + 1);
        assert_eq!((task.retry_count, &task.previous_failure), (0, &None));
        world.complete(&task).await.unwrap();
    }
    let attempts = world.attempts(task.execution_id).await;
    assert_eq!(attempts.iter().map(|a| a.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(attempts.iter().all(|attempt| attempt.state == AttemptState::EndedSuccess));
}

pub async fn a_second_generation_has_its_own_retries(world: &World) {
    let submit = world.work_with(r#"{"retry_policy":{"max_retries":1}}"#);
    let task = world.start(submit).await;
    world.fail(&task, "permanent").await.unwrap();
    world.act(replay(task.execution_id)).await;
    let task = world.claim_one().await;
    world.fail(&task, "transient").await.unwrap();
    assert_eq!(world.describe(task.execution_id).await.retry_count, 1);
    world.pass(1_000).await;
    let retry = world.claim_one().await;
    assert_eq!((retry.attempt_type, retry.attempt_index), (AttemptType::Retry, 2));
}

pub async fn only_an_ended_execution_is_replayed(world: &World) {
    let task = world.start(world.work()).await;
    world.refuses(replay(task.execution_id), Code::ExecutionNotTerminal).await;
    world.act(delay(&task, 1_000)).await;
    world.refuses(replay(task.execution_id), Code::ExecutionNotTerminal).await;
    let done = world.finish(world.work()).await;
    world.act(replay(done.execution_id)).await;
    world.refuses(replay(done.execution_id), Code::ExecutionNotTerminal).await;
}

pub async fn the_policy_limits_replays(world: &World) {
    for (json, most) in
        [(r#"{"max_replay_count":2}"#, 2), (r#"{"max_replay_count":0}"#, 0), ("{}", 10)]
    {
        let id = world.submit(world.work_with(json)).await;
        world.act(cancel(id)).await;
        for count in 1..=most {
            assert_eq!(world.act(replay(id)).await.replay_count, count);
            world.act(cancel(id)).await;
        }
        world.refuses(replay(id), Code::MaxReplaysExhausted).await;
    }
}

pub async fn the_fence_of_an_earlier_generation_is_stale(world: &World) {
    let first = world.start(world.work()).await;
    world.act(cancel(first.execution_id)).await;
    world.act(replay(first.execution_id)).await;
    world.refuses(complete(&first), Code::ExecutionNotActive).await;
    let second = world.claim_one().await;
    world.refuses(complete(&first), Code::StaleLease).await;
    world.complete(&second).await.unwrap();
}

pub async fn a_replayed_execution_is_not_removed_by_its_old_retention(world: &World) {
    let task = world.finish(world.work()).await;
    world.pass(limits::RETENTION_MS.cast_signed() - 1).await;
    world.act(replay(task.execution_id)).await;
    world.pass(limits::RETENTION_MS.cast_signed()).await;
    assert_eq!(world.claim_ids(1).await, [task.execution_id]);
}
