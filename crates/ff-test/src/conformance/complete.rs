//! Complete: the one success.

use std::collections::BTreeSet;

use ff_core::capability::Capabilities;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{ClaimNext, Complete, LaneOrder, LaneShare, Submit};
use ff_core::state::{
    AttemptProgress, AttemptState, EligibilityState, LifecyclePhase, Outcome, OwnershipState,
    PublicState,
};
use uuid::Uuid;

use crate::world::{World, capabilities, complete, lane, namespace, policy};

fn next(max: u32) -> ClaimNext {
    ClaimNext {
        max,
        lanes: vec![LaneShare::new(lane("work"))],
        order: LaneOrder::Weighted,
        capabilities: Capabilities::default(),
        lease_ttl_ms: 7_000,
        seed: Uuid::now_v7(),
    }
}

pub async fn a_completed_execution_is_terminal(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(1_234).await;
    let now = world.now().await;
    world.complete(&task).await.unwrap();
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.lifecycle_phase, LifecyclePhase::Terminal);
    assert_eq!(record.state.terminal_outcome, Some(Outcome::Success));
    assert_eq!(record.state.ownership_state, OwnershipState::Unowned);
    assert_eq!(record.state.eligibility_state, EligibilityState::NotApplicable);
    assert_eq!(record.state.attempt_state, AttemptProgress::AttemptTerminal);
    assert_eq!(record.state.public_state, PublicState::Completed);
    assert_eq!((record.completed_at, record.last_transition_at), (Some(now), now));
    assert_eq!((record.lease_id, record.lease_expires_at, record.lease_epoch), (None, None, 1));
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!(attempt.state, AttemptState::EndedSuccess);
    assert_eq!((attempt.ended_at, attempt.active_ms), (Some(now), 1_234));
    assert_eq!((attempt.failure_reason, attempt.failure_category), (None, None));
}

pub async fn a_completion_is_one_event_with_its_outcome(world: &World) {
    let task = world.finish(world.work()).await;
    let event = world.events(task.execution_id).await.pop().unwrap();
    assert_eq!((event.kind, event.outcome), (EventKind::Completed, Some(Outcome::Success)));
    assert_eq!((event.attempt_index, event.lease_epoch), (Some(0), Some(1)));
    assert_eq!(event.worker_instance_id.as_deref(), Some("pool-1"));
}

pub async fn success_clears_the_failure_before_it(world: &World) {
    let task = world.start(world.work()).await;
    world.fail(&task, "transient").await.unwrap();
    world.pass(1_000).await;
    world.complete(&world.claim_one().await).await.unwrap();
    let record = world.describe(task.execution_id).await;
    assert_eq!((record.failure_reason, record.failure_category), (None, None));
    assert_eq!((record.failure_class, record.retry_count), (None, 1));
}

pub async fn time_does_nothing_to_a_completed_execution_while_it_is_kept(world: &World) {
    let json = r#"{"timeout_policy":{"attempt_timeout_ms":50,"execution_deadline_ms":60}}"#;
    let task = world.finish(world.work_with(json)).await;
    world.pass(limits::LEASE_TTL_MS.cast_signed() * 2).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Completed);
    let kinds = [EventKind::Submitted, EventKind::Claimed, EventKind::Completed];
    assert_eq!(world.history(task.execution_id).await, kinds);
}

pub async fn a_completion_may_bring_the_next_tasks_of_its_worker(world: &World) {
    let task = world.start(world.work()).await;
    let mut waiting = BTreeSet::new();
    for _ in 0..5 {
        let execution_id = ExecutionId::new(task.execution_id.partition(), Uuid::now_v7());
        waiting.insert(world.submit(Submit { execution_id, ..world.work() }).await);
    }
    let completed = world.act(Complete { next: Some(next(3)), ..complete(&task) }).await;
    assert!(completed.tasks.len() <= 3, "{}", completed.tasks.len());
    for next in &completed.tasks {
        let record = world.describe(next.execution_id).await;
        assert_eq!(record.worker_instance_id.as_deref(), Some("pool-1"));
        assert_eq!(record.worker_id.as_deref(), Some("pool"));
        assert_eq!((next.ttl_ms, next.lease_epoch), (7_000, 1));
        assert_eq!(record.lease_id, Some(next.lease_id));
    }
    // It may bring none; but what it brings is taken, and what it leaves is there.
    let mut taken: Vec<_> = completed.tasks.iter().map(|task| task.execution_id).collect();
    taken.extend(world.claim_ids(10).await);
    assert_eq!(taken.len(), 5);
    assert_eq!(BTreeSet::from_iter(taken), waiting);
}

pub async fn the_next_tasks_are_ones_that_the_worker_may_run(world: &World) {
    let task = world.start(world.work()).await;
    let beside = || ExecutionId::new(task.execution_id.partition(), Uuid::now_v7());
    let other_lane = Submit { execution_id: beside(), ..world.work_on("other") };
    let elsewhere =
        Submit { execution_id: beside(), namespace: namespace("elsewhere"), ..world.work() };
    let required = r#"{"routing_requirements":{"required_capabilities":["gpu"]}}"#;
    let gpu = Submit { execution_id: beside(), policy: policy(required), ..world.work() };
    for submit in [other_lane, elsewhere, gpu] {
        world.submit(submit).await;
    }
    let next = ClaimNext { capabilities: capabilities(&["cpu"]), ..next(10) };
    let completed = world.act(Complete { next: Some(next), ..complete(&task) }).await;
    assert_eq!(completed.tasks, []);
}

pub async fn a_malformed_next_claim_leaves_the_lease_as_it_is(world: &World) {
    let task = world.start(world.work()).await;
    let bad = [
        next(0),
        next(limits::CLAIM_TASKS + 1),
        ClaimNext { lanes: Vec::new(), ..next(1) },
        ClaimNext { lease_ttl_ms: limits::LEASE_TTL_MIN_MS - 1, ..next(1) },
        ClaimNext { lease_ttl_ms: limits::LEASE_TTL_MAX_MS + 1, ..next(1) },
    ];
    for next in bad {
        let malformed = Complete { next: Some(next), ..complete(&task) };
        world.refuses(malformed, Code::InvalidInput).await;
    }
}
