//! Hold and release: an operator keeps a runnable execution from being claimed.

use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::limits;
use ff_core::operation::{Hold, Release, Settled, Submit};
use ff_core::state::{
    AttemptProgress, AttemptType, BlockingReason, EligibilityState, LifecyclePhase, OwnershipState,
    PublicState,
};

use crate::world::{World, delay, fail, hold, revoke};

pub async fn a_held_execution_is_not_claimed_until_it_is_released(world: &World) {
    let id = world.submit(world.work()).await;
    assert_eq!(world.act(hold(id)).await, Settled::Done);
    let state = world.describe(id).await.state;
    assert_eq!(state.lifecycle_phase, LifecyclePhase::Runnable);
    assert_eq!(state.eligibility_state, EligibilityState::BlockedByOperator);
    assert_eq!(state.blocking_reason, BlockingReason::PausedByOperator);
    assert_eq!(state.blocking_detail, "audit");
    assert_eq!(
        (state.public_state, state.attempt_state),
        (PublicState::Waiting, AttemptProgress::PendingFirstAttempt)
    );
    assert_eq!(world.claim_ids(1).await, []);
    assert_eq!(world.act(Release { execution_id: id }).await, Settled::Done);
    let state = world.describe(id).await.state;
    assert_eq!(state.eligibility_state, EligibilityState::EligibleNow);
    assert_eq!(state.blocking_detail, "");
    assert_eq!(world.claim_ids(1).await, [id]);
    use EventKind::{Blocked, Claimed, Submitted, Unblocked};
    assert_eq!(world.history(id).await, [Submitted, Blocked, Unblocked, Claimed]);
    assert_eq!(world.events(id).await[1].data["detail"], Detail::from("audit"));
}

pub async fn holding_and_releasing_twice_is_already_satisfied(world: &World) {
    let id = world.submit(world.work()).await;
    let release = || Release { execution_id: id };
    assert_eq!(world.act(release()).await, Settled::AlreadySatisfied);
    world.act(hold(id)).await;
    let before = world.describe(id).await;
    let other = Hold { detail: "another".to_owned(), ..hold(id) };
    assert_eq!(world.act(other).await, Settled::AlreadySatisfied);
    assert_eq!(world.describe(id).await, before);
    world.act(release()).await;
    let before = world.describe(id).await;
    assert_eq!(world.act(release()).await, Settled::AlreadySatisfied);
    assert_eq!(world.describe(id).await, before);
}

pub async fn only_a_runnable_execution_is_held_or_released(world: &World) {
    let running = world.start(world.work()).await;
    let done = world.finish(world.work()).await;
    for id in [running.execution_id, done.execution_id] {
        world.refuses(hold(id), Code::ExecutionNotEligible).await;
        world.refuses(Release { execution_id: id }, Code::ExecutionNotEligible).await;
    }
}

pub async fn a_delay_goes_on_under_a_hold(world: &World) {
    let until = world.now().await.after(1_000);
    let id = world.submit(Submit { delay_until: Some(until), ..world.work() }).await;
    world.act(hold(id)).await;
    let record = world.describe(id).await;
    assert_eq!(record.state.eligibility_state, EligibilityState::BlockedByOperator);
    assert_eq!(record.delay_until, Some(until));
    world.pass(400).await;
    world.act(Release { execution_id: id }).await;
    let record = world.describe(id).await;
    assert_eq!(
        (record.state.public_state, record.delay_until),
        (PublicState::Delayed, Some(until))
    );
    world.pass(600).await;
    assert_eq!(world.claim_ids(1).await, [id]);
}

pub async fn a_delay_that_ended_under_a_hold_is_gone_at_release(world: &World) {
    let until = world.now().await.after(1_000);
    let id = world.submit(Submit { delay_until: Some(until), held: true, ..world.work() }).await;
    world.pass(1_000).await;
    let state = world.describe(id).await.state;
    assert_eq!(state.eligibility_state, EligibilityState::BlockedByOperator);
    assert_eq!(world.claim_ids(1).await, []);
    world.act(Release { execution_id: id }).await;
    assert_eq!(world.public_state(id).await, PublicState::Waiting);
    assert_eq!(world.claim_ids(1).await, [id]);
    // It was at no time eligible before its release.
    let kinds = [EventKind::Submitted, EventKind::Unblocked, EventKind::Claimed];
    assert_eq!(world.history(id).await, kinds);
}

pub async fn a_backoff_goes_on_under_a_hold(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    world.act(fail(&task, "transient")).await;
    world.act(hold(id)).await;
    world.pass(500).await;
    world.act(Release { execution_id: id }).await;
    let state = world.describe(id).await.state;
    assert_eq!(state.blocking_reason, BlockingReason::WaitingForRetryBackoff);
    world.pass(500).await;
    assert_eq!(world.claim_one().await.attempt_type, AttemptType::Retry);
}

pub async fn a_hold_keeps_what_the_next_claim_opens(world: &World) {
    let lost = world.start(world.work()).await;
    world.act(revoke(lost.execution_id)).await;
    world.act(hold(lost.execution_id)).await;
    let state = world.describe(lost.execution_id).await.state;
    assert_eq!(state.ownership_state, OwnershipState::LeaseRevoked);
    world.act(Release { execution_id: lost.execution_id }).await;
    assert_eq!(world.claim_one().await.attempt_type, AttemptType::Reclaim);
    let aside = world.start(world.work()).await;
    world.act(delay(&aside, 0)).await;
    world.act(hold(aside.execution_id)).await;
    assert_eq!(world.public_state(aside.execution_id).await, PublicState::Waiting);
    world.act(Release { execution_id: aside.execution_id }).await;
    assert_eq!(world.public_state(aside.execution_id).await, PublicState::Resumable);
    assert_eq!(world.claim_one().await.attempt_id, aside.attempt_id);
}

pub async fn the_detail_has_a_limit(world: &World) {
    let id = world.submit(world.work()).await;
    let detail = |bytes| Hold { detail: "x".repeat(bytes), ..hold(id) };
    world.refuses(detail(limits::REASON_BYTES + 1), Code::InvalidInput).await;
    world.act(detail(limits::REASON_BYTES)).await;
    let shown = world.describe(id).await.state.blocking_detail;
    assert_eq!(shown.len(), limits::REASON_BYTES);
}
