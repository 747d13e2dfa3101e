//! Resume: by an operator, and once only whoever does it.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::limits;
use ff_core::operation::{Command, DeliverSignal, Reply, Resume, ResumedNow, Signalled, Suspend};
use ff_core::state::{
    BlockingReason, Condition, CountKind, PublicState, ResumePolicy, SetMode, SignalEffect,
};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::waits::{
    count, fresh, named, names, resume, set, signal, suspend, suspend_on, wildcard,
};
use crate::world::{PATIENCE, World, delay};

/// Deliveries sent at the same time.
const SENDERS: u32 = 32;

/// How many of the replies say that theirs was the signal that resumed.
fn resumers(effects: &[SignalEffect]) -> usize {
    effects.iter().filter(|effect| **effect == SignalEffect::ResumeConditionSatisfied).count()
}

fn effect_of(reply: Reply) -> SignalEffect {
    match reply {
        Reply::DeliverSignal(Signalled::Accepted { effect, .. }) => effect,
        other => panic!("{other:?}"),
    }
}

/// Sends all at once, each from a task of its own; refusals are told as their code.
async fn send_at_once(
    world: &World,
    signals: Vec<DeliverSignal>,
) -> (Vec<SignalEffect>, Vec<Code>) {
    let mut senders = JoinSet::new();
    for signal in signals {
        let backend = world.backend.clone();
        senders.spawn(async move { backend.apply(vec![signal.into()]).await.remove(0) });
    }
    let (mut effects, mut refused) = (Vec::new(), Vec::new());
    for reply in timeout(PATIENCE, senders.join_all()).await.expect("replies in time") {
        match reply {
            Ok(reply) => effects.push(effect_of(reply)),
            Err(error) => refused.push(error.code()),
        }
    }
    (effects, refused)
}

async fn count_events(world: &World, signal: &DeliverSignal, kind: EventKind) -> usize {
    let history = world.history(signal.execution_id).await;
    history.into_iter().filter(|other| *other == kind).count()
}

pub async fn an_operator_resumes_whatever_the_condition(world: &World) {
    let conditions = [
        Condition::OperatorOnly,
        named("a", "go"),
        Condition::AllOf(vec![wildcard("a"), Condition::OperatorOnly]),
        set("a", &["x", "y"], SetMode::All),
        count(2, CountKind::DistinctSources, &["a", "b"]),
    ];
    for condition in conditions {
        let (task, _) = world.suspended(condition).await;
        let reply = world.act(resume(task.execution_id)).await;
        assert_eq!(reply, ResumedNow { public_state: PublicState::Resumable });
        let next = world.claim_one().await;
        assert_eq!((next.attempt_id, next.lease_epoch), (task.attempt_id, 2));
        assert_eq!(next.extras.resume_signals, []);
        world.complete(&next).await.unwrap();
    }
}

pub async fn an_operators_resume_closes_the_waitpoints(world: &World) {
    let keep = ResumePolicy { close_waitpoint_on_resume: false, ..ResumePolicy::default() };
    for resume_policy in [ResumePolicy::default(), keep] {
        let task = world.start(world.work()).await;
        let asked = suspend(&task, count(2, CountKind::DistinctSignals, &["a", "b"]));
        let [a, _] = world.suspend(Suspend { resume_policy, ..asked }).await.try_into().unwrap();
        world.act(resume(task.execution_id)).await;
        assert_eq!(world.waitpoints(task.execution_id).await, []);
        let late = signal(task.execution_id, &a, "go");
        world.refuses(late, Code::TargetNotSignalable).await;
        let history = world.history(task.execution_id).await;
        use EventKind::{Resumed, WaitpointClosed};
        assert!(history.ends_with(&[WaitpointClosed, WaitpointClosed, Resumed]), "{history:?}");
        world.claim_one().await;
    }
}

pub async fn an_operators_resume_is_one_event_that_says_by_what(world: &World) {
    let task = world.start(world.work()).await;
    let asked = suspend(&task, Condition::OperatorOnly);
    world.suspend(asked.clone()).await;
    let trigger = "nightly job".to_owned();
    world.act(Resume { trigger, ..resume(task.execution_id) }).await;
    let event = world.events(task.execution_id).await.pop().unwrap();
    assert_eq!(event.kind, EventKind::Resumed);
    assert_eq!(event.data["trigger"], Detail::from("nightly job"));
    let suspension_id = asked.suspension_id.to_string();
    assert_eq!(event.data["suspension_id"], Detail::from(suspension_id.as_str()));
}

pub async fn an_operators_resume_hands_over_no_signals(world: &World) {
    let (task, waitpoints) = world.suspended(set("a", &["x", "y"], SetMode::All)).await;
    let effect = world.signal(&task, &waitpoints[0], "x").await;
    assert_eq!(effect, SignalEffect::AppendedToWaitpoint);
    world.act(resume(task.execution_id)).await;
    let next = world.claim_one().await;
    assert_eq!(next.extras.resume_signals, []);
    assert_eq!(world.observe(&next).await, []);
}

pub async fn an_operators_resume_may_be_delayed(world: &World) {
    let (task, _) = world.suspended(wildcard("a")).await;
    let delayed = Resume { delay_ms: Some(5_000), ..resume(task.execution_id) };
    let reply = world.act(delayed).await;
    assert_eq!(reply, ResumedNow { public_state: PublicState::Delayed });
    let until = world.now().await.after(5_000);
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.blocking_reason, BlockingReason::WaitingForResumeDelay);
    assert_eq!((record.delay_until, record.waitpoint_ids), (Some(until), vec![]));
    world.pass(4_999).await;
    assert_eq!(world.claim_ids(1).await, []);
    world.pass(1).await;
    assert_eq!(world.claim_one().await.attempt_id, task.attempt_id);
}

pub async fn an_operators_resume_waits_as_the_suspension_asked(world: &World) {
    let asked_for = ResumePolicy { resume_delay_ms: 3_000, ..ResumePolicy::default() };
    for (delay_ms, waits_ms) in [(None, 3_000), (Some(1_000), 1_000), (Some(0), 0)] {
        let task = world.start(world.work()).await;
        let asked = suspend(&task, Condition::OperatorOnly);
        world.suspend(Suspend { resume_policy: asked_for, ..asked }).await;
        world.act(Resume { delay_ms, ..resume(task.execution_id) }).await;
        if waits_ms > 0 {
            let until = world.now().await.after(waits_ms);
            assert_eq!(world.describe(task.execution_id).await.delay_until, Some(until));
            world.pass(waits_ms.cast_signed() - 1).await;
            assert_eq!(world.claim_ids(1).await, []);
            world.pass(1).await;
        }
        assert_eq!(world.claim_one().await.attempt_id, task.attempt_id);
    }
}

pub async fn only_a_suspended_execution_is_resumed(world: &World) {
    let waiting = world.submit(world.work()).await;
    world.refuses(resume(waiting), Code::ExecutionNotSuspended).await;
    let task = world.claim_one().await;
    world.refuses(resume(waiting), Code::ExecutionNotSuspended).await;
    world.act(delay(&task, 1_000)).await;
    world.refuses(resume(waiting), Code::ExecutionNotSuspended).await;
    world.pass(1_000).await;
    let task = world.claim_one().await;
    world.suspend(suspend(&task, wildcard("a"))).await;
    world.act(resume(waiting)).await;
    world.refuses(resume(waiting), Code::ExecutionNotSuspended).await;
    let task = world.claim_one().await;
    world.complete(&task).await.unwrap();
    world.refuses(resume(waiting), Code::ExecutionNotSuspended).await;
}

pub async fn what_a_resume_says_has_limits(world: &World) {
    let (task, _) = world.suspended(wildcard("a")).await;
    let asked = || resume(task.execution_id);
    let trigger = "x".repeat(limits::REASON_BYTES + 1);
    world.refuses(Resume { trigger, ..asked() }, Code::InvalidInput).await;
    let delay_ms = Some(limits::DURATION_MAX_MS + 1);
    world.refuses(Resume { delay_ms, ..asked() }, Code::InvalidInput).await;
    let trigger = "x".repeat(limits::REASON_BYTES);
    world.act(Resume { trigger, delay_ms: Some(limits::DURATION_MAX_MS), ..asked() }).await;
}

pub async fn a_resume_wakes_a_claim(world: &World) {
    let (task, waitpoints) = world.suspended(wildcard("a")).await;
    let claim = || timeout(PATIENCE, world.backend.claim(world.claim_request(1), PATIENCE));
    let knock = world.signal(&task, &waitpoints[0], "knock");
    let (woken, _) = tokio::join!(claim(), knock);
    let [task] = woken.expect("woken in time").unwrap().try_into().unwrap();
    assert_eq!(names(&task.extras.resume_signals), ["knock"]);
    world.suspend(suspend(&task, Condition::OperatorOnly)).await;
    let (woken, _) = tokio::join!(claim(), world.act(resume(task.execution_id)));
    assert_eq!(woken.expect("woken in time").unwrap().len(), 1);
}

pub async fn of_many_signals_in_a_batch_one_resumes(world: &World) {
    let (task, waitpoints) = world.suspended(wildcard("a")).await;
    let knock = signal(task.execution_id, &waitpoints[0], "knock");
    let batch = (0..SENDERS).map(|_| signal(task.execution_id, &waitpoints[0], "knock").into());
    let mut replies = world.backend.apply(batch.collect::<Vec<Command>>()).await.into_iter();
    let first = effect_of(replies.next().unwrap().unwrap());
    assert_eq!(first, SignalEffect::ResumeConditionSatisfied);
    for reply in replies {
        assert_eq!(reply.unwrap_err().code(), Code::TargetNotSignalable);
    }
    assert_eq!(count_events(world, &knock, EventKind::Resumed).await, 1);
    assert_eq!(world.describe(task.execution_id).await.signal_count, 1);
    assert_eq!(world.claim(SENDERS).await.len(), 1);
}

pub async fn of_many_signals_at_once_one_resumes(world: &World) {
    let keep = ResumePolicy { close_waitpoint_on_resume: false, ..ResumePolicy::default() };
    for (resume_policy, accepted) in [(ResumePolicy::default(), 3), (keep, SENDERS as usize)] {
        let task = world.start(world.work()).await;
        let three = count(3, CountKind::DistinctSignals, &["a"]);
        let asked = suspend_on(&task, vec![fresh("a")], three);
        let [a] = world.suspend(Suspend { resume_policy, ..asked }).await.try_into().unwrap();
        let signals: Vec<_> = (0..SENDERS).map(|_| signal(task.execution_id, &a, "vote")).collect();
        let knock = signals[0].clone();
        let (effects, refused) = send_at_once(world, signals).await;
        assert_eq!((effects.len(), refused.len()), (accepted, SENDERS as usize - accepted));
        assert_eq!(resumers(&effects), 1);
        assert!(refused.iter().all(|code| *code == Code::TargetNotSignalable), "{refused:?}");
        assert_eq!(count_events(world, &knock, EventKind::Resumed).await, 1);
        let tasks = world.claim(SENDERS).await;
        assert_eq!((tasks.len(), tasks[0].lease_epoch), (1, 2));
        assert_eq!(tasks[0].extras.resume_signals.len(), 3);
    }
}

pub async fn an_operator_and_signals_at_once_resume_once(world: &World) {
    for _ in 0..8 {
        let (task, waitpoints) = world.suspended(wildcard("a")).await;
        let knock = signal(task.execution_id, &waitpoints[0], "knock");
        let by_hand = world.command(resume(task.execution_id).into());
        let by_signal = world.command(knock.clone().into());
        let (by_hand, by_signal) = tokio::join!(by_hand, by_signal);
        assert!(by_hand.is_ok() != by_signal.is_ok(), "{by_hand:?} {by_signal:?}");
        assert_eq!(count_events(world, &knock, EventKind::Resumed).await, 1);
        let next = world.claim_one().await;
        assert_eq!(next.extras.resume_signals.len(), usize::from(by_signal.is_ok()));
    }
}
