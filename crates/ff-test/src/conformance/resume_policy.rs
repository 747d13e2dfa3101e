//! The resume policy: what becomes of signals and waitpoints when an execution goes on, and when
//! it does.

use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::operation::{
    CreatePendingWaitpoint, IssuedWaitpoint, Release, Settled, Suspend, Task,
};
use ff_core::state::{
    BlockingReason, Condition, EligibilityState, PublicState, ResumePolicy, SetMode, SignalEffect,
    TimeoutBehavior, WaitpointState,
};

use crate::waits::{
    named, names, pending, set, signal, suspend, suspend_on, use_pending, wildcard, within,
};
use crate::world::{World, hold};

/// Waitpoints stay, and so do the signals that were not used up.
const KEEP: ResumePolicy = ResumePolicy {
    consume_matched_signals: true,
    close_waitpoint_on_resume: false,
    retain_signal_buffer_until_closed: true,
    resume_delay_ms: 0,
};
const REUSE: ResumePolicy = ResumePolicy { consume_matched_signals: false, ..KEEP };
const DROP: ResumePolicy = ResumePolicy { retain_signal_buffer_until_closed: false, ..KEEP };
const DROP_ALL: ResumePolicy = ResumePolicy { consume_matched_signals: false, ..DROP };

/// A new execution with a waitpoint `a`, suspended on a condition.
async fn waiting(
    world: &World,
    policy: ResumePolicy,
    condition: Condition,
) -> (Task, IssuedWaitpoint) {
    let task = world.start(world.work()).await;
    let a = world.pending(&task, "a").await;
    world.suspend(again(&task, &a, policy, condition)).await;
    (task, a)
}

/// A suspend on a waitpoint that is there.
fn again(
    task: &Task,
    at: &IssuedWaitpoint,
    resume_policy: ResumePolicy,
    condition: Condition,
) -> Suspend {
    Suspend { resume_policy, ..suspend_on(task, vec![use_pending(at)], condition) }
}

/// Signals that the condition ignores, one that it takes, and the claim that follows.
async fn resumed_over(world: &World, policy: ResumePolicy) -> (Task, IssuedWaitpoint) {
    let (task, a) = waiting(world, policy, named("a", "go")).await;
    assert_eq!(world.signal(&task, &a, "left").await, SignalEffect::IgnoredMatcherFailed);
    assert_eq!(world.signal(&task, &a, "go").await, SignalEffect::ResumeConditionSatisfied);
    (world.claim_one().await, a)
}

pub async fn by_default_all_waitpoints_close(world: &World) {
    let task = world.start(world.work()).await;
    let both = Condition::AllOf(vec![wildcard("a"), wildcard("b")]);
    let waitpoints = world.suspend(suspend(&task, both)).await;
    for waitpoint in &waitpoints {
        world.signal(&task, waitpoint, "go").await;
    }
    assert_eq!(world.waitpoints(task.execution_id).await, []);
    let late = || signal(task.execution_id, &waitpoints[0], "go");
    world.refuses(late(), Code::TargetNotSignalable).await;
    let task = world.claim_one().await;
    world.pending(&task, "c").await;
    world.refuses(late(), Code::WaitpointClosed).await;
}

pub async fn a_waitpoint_that_is_not_closed_is_pending_again(world: &World) {
    for policy in [KEEP, REUSE, DROP, DROP_ALL] {
        let (task, a) = waiting(world, policy, wildcard("a")).await;
        world.signal(&task, &a, "go").await;
        let [listed] = world.waitpoints(task.execution_id).await.try_into().unwrap();
        assert_eq!((listed.waitpoint_id, listed.state), (a.waitpoint_id, WaitpointState::Pending));
        assert_eq!(listed.fingerprint, a.token.hash().fingerprint(), "the same token");
        let later = world.signal(&task, &a, "later").await;
        assert_eq!(later, SignalEffect::BufferedForPendingWaitpoint);
        let task = world.claim_one().await;
        assert_eq!(names(&task.extras.resume_signals), ["go"]);
        let bound = world.act(again(&task, &a, policy, named("a", "later"))).await;
        assert!(bound.already_satisfied, "what came after the resume is there: {policy:?}");
        assert_eq!(bound.waitpoints, std::slice::from_ref(&a));
        let history = world.history(task.execution_id).await;
        assert!(!history.contains(&EventKind::WaitpointClosed), "{history:?}");
        world.complete(&task).await.unwrap();
    }
}

pub async fn fresh_waitpoints_are_pending_again_too(world: &World) {
    let task = world.start(world.work()).await;
    let asked = Suspend { resume_policy: DROP, ..suspend(&task, wildcard("a")) };
    let [a] = world.suspend(asked).await.try_into().unwrap();
    world.signal(&task, &a, "go").await;
    let task = world.claim_one().await;
    world.suspend(again(&task, &a, ResumePolicy::default(), wildcard("a"))).await;
    world.signal(&task, &a, "go").await;
    assert_eq!(world.waitpoints(task.execution_id).await, []);
}

pub async fn consumed_signals_are_not_weighed_again(world: &World) {
    let (task, a) = resumed_over(world, KEEP).await;
    world.suspend(again(&task, &a, KEEP, named("a", "go"))).await;
    assert_eq!(world.signal(&task, &a, "go").await, SignalEffect::ResumeConditionSatisfied);
    let task = world.claim_one().await;
    assert_eq!(task.extras.resume_signals.len(), 1);
    world.suspend(again(&task, &a, KEEP, named("a", "go"))).await;
}

pub async fn signals_that_are_not_consumed_are_weighed_again(world: &World) {
    let (task, a) = resumed_over(world, REUSE).await;
    let first = world.observe(&task).await;
    assert!(world.act(again(&task, &a, REUSE, named("a", "go"))).await.already_satisfied);
    assert_eq!(world.observe(&task).await, first);
    let both = set("a", &["left", "go"], SetMode::All);
    assert!(world.act(again(&task, &a, KEEP, both)).await.already_satisfied);
    assert_eq!(names(&world.observe(&task).await), ["left", "go"]);
    world.suspend(again(&task, &a, KEEP, set("a", &["left", "go"], SetMode::Any))).await;
}

pub async fn a_retained_buffer_keeps_what_was_not_consumed(world: &World) {
    for policy in [KEEP, REUSE] {
        let (task, a) = resumed_over(world, policy).await;
        assert!(world.act(again(&task, &a, policy, named("a", "left"))).await.already_satisfied);
        assert_eq!(names(&world.observe(&task).await), ["left"]);
        world.complete(&task).await.unwrap();
    }
}

pub async fn a_buffer_that_is_not_retained_is_dropped(world: &World) {
    for policy in [DROP, DROP_ALL] {
        let (task, a) = resumed_over(world, policy).await;
        world.suspend(again(&task, &a, policy, wildcard("a"))).await;
        assert_eq!(world.signal(&task, &a, "new").await, SignalEffect::ResumeConditionSatisfied);
        world.signal(&task, &a, "newer").await;
        let task = world.claim_one().await;
        assert_eq!(names(&task.extras.resume_signals), ["new"]);
        assert!(world.act(again(&task, &a, policy, wildcard("a"))).await.already_satisfied);
        assert_eq!(names(&world.observe(&task).await), ["newer"], "{policy:?}");
        let record = world.describe(task.execution_id).await;
        assert_eq!(record.signal_count, 4, "all signals are kept with the execution");
        world.complete(&task).await.unwrap();
    }
}

pub async fn a_kept_waitpoint_works_as_a_mailbox(world: &World) {
    let task = world.start(world.work()).await;
    let a = world.pending(&task, "a").await;
    for name in ["1", "2", "3"] {
        world.signal(&task, &a, name).await;
    }
    for name in ["1", "2", "3"] {
        assert!(world.act(again(&task, &a, KEEP, wildcard("a"))).await.already_satisfied);
        assert_eq!(names(&world.observe(&task).await), [name]);
    }
    world.suspend(again(&task, &a, KEEP, wildcard("a"))).await;
    world.signal(&task, &a, "4").await;
    assert_eq!(names(&world.claim_one().await.extras.resume_signals), ["4"]);
}

pub async fn waitpoints_of_no_suspension_are_left_alone(world: &World) {
    let task = world.start(world.work()).await;
    let (a, spare) = (world.pending(&task, "a").await, world.pending(&task, "spare").await);
    world.signal(&task, &spare, "kept").await;
    world.suspend(again(&task, &a, DROP_ALL, wildcard("a"))).await;
    world.signal(&task, &a, "go").await;
    let task = world.claim_one().await;
    let asked = again(&task, &spare, ResumePolicy::default(), named("spare", "kept"));
    assert!(world.act(asked).await.already_satisfied, "its buffer was not this suspension's");
}

pub async fn a_used_waitpoint_that_is_pending_again_does_not_expire(world: &World) {
    let task = world.start(world.work()).await;
    let expires_at = Some(world.now().await.after(100));
    let a = world.act(CreatePendingWaitpoint { expires_at, ..pending(&task, "a") }).await;
    world.suspend(again(&task, &a, KEEP, wildcard("a"))).await;
    world.pass(1_000).await;
    world.signal(&task, &a, "go").await;
    world.settle().await;
    assert_eq!(world.waitpoints(task.execution_id).await.len(), 1, "it was used in time");
    let task = world.claim_one().await;
    world.suspend(again(&task, &a, KEEP, wildcard("a"))).await;
}

pub async fn a_resume_delay_comes_before_the_next_claim(world: &World) {
    let task = world.start(world.work()).await;
    let resume_policy = ResumePolicy { resume_delay_ms: 5_000, ..ResumePolicy::default() };
    let asked = Suspend { resume_policy, ..suspend(&task, wildcard("a")) };
    let [a] = world.suspend(asked).await.try_into().unwrap();
    assert_eq!(world.signal(&task, &a, "go").await, SignalEffect::ResumeConditionSatisfied);
    let until = world.now().await.after(5_000);
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.public_state, PublicState::Delayed);
    assert_eq!(record.state.eligibility_state, EligibilityState::NotEligibleUntilTime);
    assert_eq!(record.state.blocking_reason, BlockingReason::WaitingForResumeDelay);
    assert_eq!((record.delay_until, record.waitpoint_ids), (Some(until), vec![]));
    world.pass(4_999).await;
    assert_eq!(world.claim_ids(1).await, []);
    world.pass(1).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Resumable);
    let next = world.claim_one().await;
    assert_eq!(
        (next.attempt_id, names(&next.extras.resume_signals)),
        (task.attempt_id, vec!["go"])
    );
    let history = world.history(task.execution_id).await;
    use EventKind::{Claimed, Eligible, Resumed, WaitpointClosed};
    assert!(history.ends_with(&[WaitpointClosed, Resumed, Eligible, Claimed]), "{history:?}");
}

pub async fn a_resume_delay_follows_a_timeout_too(world: &World) {
    let task = world.start(world.work()).await;
    let resume_policy = ResumePolicy { resume_delay_ms: 500, ..KEEP };
    let asked = Suspend { resume_policy, ..suspend(&task, wildcard("a")) };
    let [a] =
        world.suspend(within(100, TimeoutBehavior::AutoResume, asked)).await.try_into().unwrap();
    world.pass(100).await;
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.blocking_reason, BlockingReason::WaitingForResumeDelay);
    assert_eq!(record.waitpoint_ids, [a.waitpoint_id], "pending again");
    world.pass(500).await;
    assert_eq!(world.claim_ids(1).await, [task.execution_id]);
}

pub async fn an_execution_is_held_while_its_resume_is_delayed(world: &World) {
    let task = world.start(world.work()).await;
    let resume_policy = ResumePolicy { resume_delay_ms: 500, ..ResumePolicy::default() };
    let asked = Suspend { resume_policy, ..suspend(&task, wildcard("a")) };
    let [a] = world.suspend(asked).await.try_into().unwrap();
    world.signal(&task, &a, "go").await;
    let execution_id = task.execution_id;
    assert_eq!(world.act(hold(execution_id)).await, Settled::Done);
    world.pass(500).await;
    assert_eq!(world.claim_ids(1).await, []);
    world.act(Release { execution_id }).await;
    assert_eq!(world.public_state(execution_id).await, PublicState::Resumable);
    let next = world.claim_one().await;
    assert_eq!(
        (next.attempt_id, names(&next.extras.resume_signals)),
        (task.attempt_id, vec!["go"])
    );
}
