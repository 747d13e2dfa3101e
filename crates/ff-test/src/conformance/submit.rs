//! Submit.

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::{ExecutionId, Kind};
use ff_core::operation::{Claim, LaneShare, Submit, Submitted};
use ff_core::read::Filter;
use ff_core::state::{
    AttemptProgress, BlockingReason, EligibilityState, LifecyclePhase, OwnershipState, PublicState,
};
use ff_core::time::TimestampMs;
use uuid::Uuid;

use crate::world::{World, code, lane, namespace, policy, tags};

pub async fn a_new_execution_waits_for_a_worker(world: &World) {
    let submit = world.work();
    let reply = world.backend.call(submit.clone()).await.unwrap();
    let Submitted::Created { execution_id, public_state, priority, event_id } = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(
        (execution_id, public_state, priority),
        (submit.execution_id, PublicState::Waiting, 0)
    );
    assert_eq!(event_id.home.flow_partition(), Some(execution_id.partition()));
    let record = world.describe(execution_id).await;
    assert_eq!(record.state.lifecycle_phase, LifecyclePhase::Runnable);
    assert_eq!(record.state.ownership_state, OwnershipState::Unowned);
    assert_eq!(record.state.eligibility_state, EligibilityState::EligibleNow);
    assert_eq!(record.state.blocking_reason, BlockingReason::WaitingForWorker);
    assert_eq!(record.state.attempt_state, AttemptProgress::PendingFirstAttempt);
    assert_eq!(record.state.terminal_outcome, None);
    assert_eq!(record.last_event_id, event_id);
    assert_eq!(record.created_at, world.now().await);
    assert_eq!(world.history(execution_id).await, [EventKind::Submitted]);
}

pub async fn what_was_said_at_submit_is_in_the_record_and_in_the_task(world: &World) {
    let submit = Submit {
        namespace: namespace("tenant-7"),
        kind: Kind::new("mail.send / ü").unwrap(),
        payload: Content::json(br#"{"to":"a@b"}"#.as_slice()),
        priority: 17,
        creator_identity: "nightly job".to_owned(),
        tags: tags(&[("customer", "42"), ("Team", "")]),
        policy: policy(r#"{"max_replay_count":2,"retry_policy":{"max_retries":9}}"#),
        trace_context: Some("00-abc-def-01".to_owned()),
        ..world.work()
    };
    let id = world.submit(submit.clone()).await;
    let record = world.describe(id).await;
    assert_eq!((&record.namespace, &record.lane), (&submit.namespace, &submit.lane));
    assert_eq!((&record.kind, &record.content_type), (&submit.kind, &submit.payload.content_type));
    assert_eq!((&record.creator_identity, record.priority), (&submit.creator_identity, 17));
    assert_eq!((&record.tags, &record.policy), (&submit.tags, &submit.policy));
    assert_eq!(record.trace_context, submit.trace_context);
    assert_eq!((record.lease_epoch, record.total_attempt_count), (0, 0));
    assert_eq!((record.started_at, record.completed_at, record.deadline_at), (None, None, None));
    let claim = Claim { namespace: submit.namespace.clone(), ..world.claim_request(1) };
    let task = world.claim_as(claim).await.pop().unwrap();
    assert_eq!(
        (&task.namespace, &task.lane, &task.kind),
        (&submit.namespace, &submit.lane, &submit.kind)
    );
    assert_eq!(
        (&task.payload, &task.content_type),
        (&submit.payload.bytes, &submit.payload.content_type)
    );
    assert_eq!((&task.tags, task.priority), (&submit.tags, 17));
    assert_eq!((&task.trace_context, task.created_at), (&submit.trace_context, record.created_at));
}

pub async fn priority_is_clamped_and_the_reply_shows_it(world: &World) {
    for (given, effective) in
        [(i64::MIN, 0), (-1, 0), (0, 0), (9000, 9000), (9001, 9000), (i64::MAX, 9000)]
    {
        let reply = world.act(Submit { priority: given, ..world.work() }).await;
        let Submitted::Created { execution_id, priority, .. } = reply else {
            panic!("{reply:?}");
        };
        assert_eq!(priority, effective, "{given}");
        assert_eq!(world.describe(execution_id).await.priority, effective, "{given}");
    }
}

pub async fn a_delay_in_the_future_makes_it_delayed(world: &World) {
    let until = world.now().await.after(1);
    let reply = world.act(Submit { delay_until: Some(until), ..world.work() }).await;
    let Submitted::Created { execution_id, public_state, .. } = reply else { panic!("{reply:?}") };
    assert_eq!(public_state, PublicState::Delayed);
    let record = world.describe(execution_id).await;
    assert_eq!(record.delay_until, Some(until));
    assert_eq!(record.state.eligibility_state, EligibilityState::NotEligibleUntilTime);
    assert_eq!(record.state.blocking_reason, BlockingReason::WaitingForDelay);
    assert_eq!(record.state.attempt_state, AttemptProgress::PendingFirstAttempt);
    world.settle().await;
    assert_eq!(world.claim_ids(1).await, []);
    world.pass(1).await;
    assert_eq!(world.claim_ids(1).await, [execution_id]);
    let kinds = [EventKind::Submitted, EventKind::Eligible, EventKind::Claimed];
    assert_eq!(world.history(execution_id).await, kinds);
}

pub async fn a_delay_that_is_not_in_the_future_is_eligible_at_once(world: &World) {
    let now = world.now().await;
    for until in [now, TimestampMs(now.0 - 1), TimestampMs(0)] {
        let id = world.submit(Submit { delay_until: Some(until), ..world.work() }).await;
        let record = world.describe(id).await;
        assert_eq!((record.state.public_state, record.delay_until), (PublicState::Waiting, None));
        assert_eq!(world.claim_ids(1).await, [id]);
    }
}

pub async fn a_held_submit_is_blocked_by_the_operator(world: &World) {
    let reply = world.act(Submit { held: true, ..world.work() }).await;
    let Submitted::Created { execution_id, public_state, .. } = reply else { panic!("{reply:?}") };
    assert_eq!(public_state, PublicState::Waiting);
    let state = world.describe(execution_id).await.state;
    assert_eq!(state.eligibility_state, EligibilityState::BlockedByOperator);
    assert_eq!(state.blocking_reason, BlockingReason::PausedByOperator);
    assert_eq!(world.claim_ids(1).await, []);
    assert_eq!(world.history(execution_id).await, [EventKind::Submitted]);
}

pub async fn a_full_id_keeps_its_partition(world: &World) {
    let count = world.backend.settings().partitions.flow;
    let uuids = [Uuid::nil(), Uuid::max(), Uuid::from_u128(0x4000_8000_0000_0000_0000)];
    for (partition, uuid) in [0, count - 1, count / 2].into_iter().zip(uuids) {
        let execution_id = ExecutionId::new(partition, uuid);
        let id = world.submit(Submit { execution_id, ..world.work() }).await;
        assert_eq!(id, execution_id);
        assert_eq!(world.describe(id).await.last_event_id.home.flow_partition(), Some(partition));
        assert_eq!(world.claim_ids(1).await, [id]);
    }
}

pub async fn a_partition_that_does_not_exist_is_refused(world: &World) {
    let count = world.backend.settings().partitions.flow;
    for partition in [count, u16::MAX] {
        let execution_id = ExecutionId::new(partition, Uuid::now_v7());
        let submit = Submit { execution_id, ..world.work() };
        assert_eq!(code(world.backend.call(submit).await), Code::InvalidInput);
    }
    assert_eq!(world.search(Filter::default()).await, []);
}

pub async fn every_valid_lane_name_works(world: &World) {
    let longest = "x".repeat(64);
    for name in [" ", "a lane/with {braces}:~", "'; --", "%_*?", "0", longest.as_str()] {
        let id = world.submit(world.work_on(name)).await;
        let claim = Claim { lanes: vec![LaneShare::new(lane(name))], ..world.claim_request(1) };
        let task = world.claim_as(claim).await.pop().unwrap();
        assert_eq!((task.execution_id, task.lane.as_str()), (id, name));
    }
}
