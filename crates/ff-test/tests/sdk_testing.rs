//! The test kit of the SDK: a clock that the test moves, under workers as users write them.

use std::time::Duration;

use ff_core::error::Code;
use ff_core::state::{Outcome, PublicState, QuotaSpec};
use ff_sdk::runtime::{Failure, Outcome as AnswerOf, TaskInfo};
use ff_sdk::testing::TestEngine;
use ff_sdk::{
    ClaimedTask, Flow, NewBudget, SdkError, Signal, Submission, SuspendOutcome, Suspension,
    TimeoutBehavior, Usage, WorkerConfig,
};
use ff_test::world::PATIENCE;
use tokio::task::JoinHandle;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// A worker as users write it: claims, waits, claims again.
async fn looping<F>(engine: &TestEngine, handle: fn(ClaimedTask) -> F) -> JoinHandle<()>
where
    F: Future<Output = Result<(), SdkError>> + Send + 'static,
{
    let worker = engine.worker(WorkerConfig::new("w").max_concurrent_tasks(4)).await;
    tokio::spawn(async move {
        while let Ok(tasks) = worker.claim(4, worker.claim_wait()).await {
            for task in tasks {
                tokio::spawn(handle(task));
            }
        }
    })
}

async fn completes(task: ClaimedTask) -> Result<(), SdkError> {
    Ok(task.complete(None).await?)
}

/// Fails until the fourth attempt.
async fn fails_three_times(task: ClaimedTask) -> Result<(), SdkError> {
    if task.attempt_index() < 3 {
        task.fail("no answer", "transient").await?;
        return Ok(());
    }
    completes(task).await
}

/// Once suspended, it sleeps a day more each time; then it is done.
async fn sleeps_a_week(task: ClaimedTask) -> Result<(), SdkError> {
    let slept = task.metadata().map_or(0, |bytes| bytes[0]);
    if slept == 7 {
        return completes(task).await;
    }
    task.suspend_on(Suspension::sleep(DAY).metadata(vec![slept + 1])).await?;
    Ok(())
}

fn exactly(engine: &TestEngine, expected: Duration) {
    assert_eq!(engine.elapsed(), expected);
}

#[tokio::test]
async fn retries_happen_each_at_its_own_time() {
    let engine = TestEngine::start().await;
    let _worker = looping(&engine, fails_three_times).await;
    let execution = engine.client().submit(Submission::new("mail").max_retries(5)).await.unwrap();
    engine.run_until(execution.id(), Outcome::Success).await;
    // The backoff of the policy: one second, two, four.
    exactly(&engine, 7 * SECOND);
    let events = engine.events(execution.id()).await;
    let claims = events.iter().filter(|event| event.kind.as_str() == "execution.claimed");
    let begun = events[0].time;
    let claims: Vec<u64> = claims.map(|event| event.time.since(begun)).collect();
    assert_eq!(claims, [0, 1_000, 3_000, 7_000]);
}

#[tokio::test]
async fn a_week_of_sleep_is_over_at_once() {
    let engine = TestEngine::start().await;
    let _worker = looping(&engine, sleeps_a_week).await;
    let execution = engine.client().submit(Submission::new("nap")).await.unwrap();
    engine.run_until_idle().await;
    engine.assert_completed(execution.id()).await;
    exactly(&engine, 7 * DAY);
}

#[tokio::test]
async fn advancing_passes_one_due_time_after_another() {
    let engine = TestEngine::start().await;
    let _worker = looping(&engine, fails_three_times).await;
    let late = Submission::new("mail").delay(DAY);
    let execution = engine.client().submit(late).await.unwrap();
    engine.advance(DAY - Duration::from_millis(1)).await;
    engine.assert_state(execution.id(), PublicState::Delayed).await;
    engine.advance(Duration::from_millis(1)).await;
    let record = engine.assert_state(execution.id(), PublicState::Delayed).await;
    assert_eq!(record.retry_count, 1);
    // Three more retries lie on the way, each after the one before.
    engine.advance(DAY).await;
    engine.assert_completed(execution.id()).await;
    exactly(&engine, 2 * DAY);
}

#[tokio::test]
async fn a_task_that_the_test_holds_keeps_its_lease() {
    let engine = TestEngine::start().await;
    let worker = engine.worker(WorkerConfig::new("w")).await;
    let execution = engine.client().submit(Submission::new("long")).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    engine.advance(DAY).await;
    let record = engine.assert_state(execution.id(), PublicState::Active).await;
    assert_eq!(record.lease_expires_at, Some(engine.now().after(30_000)));
    task.complete(None).await.unwrap();
    engine.assert_completed(execution.id()).await;
    assert_eq!(engine.describe(execution.id()).await.lease_reclaim_count, 0);
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_ended() {
    let engine = TestEngine::start().await;
    let worker = engine.worker(WorkerConfig::new("w")).await;
    let slow = Submission::new("slow").attempt_timeout(90 * SECOND).max_retries(0);
    let execution = engine.client().submit(slow).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    engine.advance(89 * SECOND).await;
    engine.assert_state(execution.id(), PublicState::Active).await;
    engine.advance(SECOND).await;
    engine.assert_outcome(execution.id(), Outcome::Expired).await;
    assert!(task.complete(None).await.is_err());
}

#[tokio::test]
async fn suspensions_wait_for_a_word_or_their_time() {
    let engine = TestEngine::start().await;
    let worker = engine.worker(WorkerConfig::new("w")).await;
    let (client, mut made) = (engine.client(), Vec::new());
    for behavior in [TimeoutBehavior::Fail, TimeoutBehavior::Fail] {
        let execution = client.submit(Submission::new("ask")).await.unwrap();
        let task = worker.claim_next().await.unwrap().unwrap();
        let on = Suspension::signal("gate", "open").unwrap().timeout(DAY).on_timeout(behavior);
        let SuspendOutcome::Suspended(at) = task.suspend_on(on).await.unwrap() else { panic!() };
        made.push((execution, at.waitpoint().unwrap().clone()));
    }
    engine.advance(DAY / 2).await;
    let (heard, ticket) = &made[0];
    let signal = Signal::new("open", ticket.token.clone());
    client.deliver_signal(heard.id(), ticket.waitpoint_id, signal).await.unwrap();
    worker.claim_next().await.unwrap().unwrap().complete(None).await.unwrap();
    engine.run_until_idle().await;
    engine.assert_completed(heard.id()).await;
    engine.assert_outcome(made[1].0.id(), Outcome::Failed).await;
    exactly(&engine, DAY);
}

#[tokio::test]
async fn what_only_a_word_can_end_is_idle() {
    let engine = TestEngine::start().await;
    let worker = engine.worker(WorkerConfig::new("w")).await;
    let client = engine.client();
    let waits = client.submit(Submission::new("ask")).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    task.suspend_on(Suspension::approval("gate").unwrap()).await.unwrap();
    client.submit(Submission::new("held").held()).await.unwrap();
    let unserved = client.submit(Submission::new("far").lane("nobody")).await.unwrap();
    let expires = Submission::new("old").lane("nobody").deadline(DAY);
    let expires = client.submit(expires).await.unwrap();
    engine.run_until_idle().await;
    exactly(&engine, DAY);
    engine.assert_state(waits.id(), PublicState::Suspended).await;
    engine.assert_state(unserved.id(), PublicState::Waiting).await;
    engine.assert_outcome(expires.id(), Outcome::Expired).await;
}

#[tokio::test]
async fn limits_let_go_in_their_time() {
    let engine = TestEngine::start().await;
    let _worker = looping(&engine, completes).await;
    let client = engine.client();
    let budget = NewBudget::new("tokens").limit("input_tokens", 1).reset_every(DAY);
    let budget = client.create_budget(budget).await.unwrap();
    client.report_usage(budget, &Usage::new().input_tokens(1), None).await.unwrap();
    let spec = QuotaSpec {
        window_seconds: 3600,
        max_requests_per_window: 1,
        max_concurrent: 0,
        jitter_ms: 0,
    };
    let quota = client.create_quota_policy(spec).await.unwrap();
    let mut made = vec![client.submit(Submission::new("spend").budget(budget)).await.unwrap()];
    for _ in 0..3 {
        made.push(client.submit(Submission::new("call").quota(quota)).await.unwrap());
    }
    engine.run_until_idle().await;
    for execution in made {
        engine.assert_completed(execution.id()).await;
    }
    assert!((DAY..2 * DAY).contains(&engine.elapsed()), "{:?}", engine.elapsed());
}

#[tokio::test]
async fn a_flow_runs_to_its_end() {
    let engine = TestEngine::start().await;
    let _worker = looping(&engine, fails_three_times).await;
    let flow = Flow::new("report")
        .step("fetch", Submission::new("fetch").delay(DAY))
        .step("print", Submission::new("print"))
        .after("fetch");
    let flow = engine.client().submit_flow(flow).await.unwrap();
    engine.run_until_idle().await;
    assert!(flow.wait(PATIENCE).await.unwrap().is_success());
    exactly(&engine, DAY + 14 * SECOND);
}

#[tokio::test]
async fn a_lost_lease_is_taken_up_by_another() {
    let engine = TestEngine::start().await;
    let first = engine.worker(WorkerConfig::new("first")).await;
    let second = engine.worker(WorkerConfig::new("second")).await;
    let execution = engine.client().submit(Submission::new("work")).await.unwrap();
    let lost = first.claim_next().await.unwrap().unwrap();
    engine.lose_lease(execution.id()).await;
    exactly(&engine, 30 * SECOND);
    let task = second.claim_next().await.unwrap().unwrap();
    assert_eq!(task.execution_id(), execution.id());
    task.complete(None).await.unwrap();
    let error = lost.complete(None).await.unwrap_err().error;
    assert!(matches!(error.code(), Some(Code::StaleLease | Code::ExecutionNotActive)), "{error}");
    assert!(engine.history(execution.id()).await.contains(&"execution.lease_expired"));
}

#[tokio::test]
async fn faults_and_lost_replies_change_nothing_of_what_is_done() {
    let engine = TestEngine::start().await;
    let (client, worker) = (engine.client(), engine.worker(WorkerConfig::new("w")).await);
    engine.fail_next(2);
    let first = client.submit(Submission::new("work")).await.unwrap();
    assert!(!first.was_there_already());
    engine.lose_reply_of("submit_execution", 2);
    let made = client.submit_batch((0..3).map(|_| Submission::new("work"))).await.unwrap();
    assert!(made.iter().all(|it| !it.as_ref().unwrap().was_there_already()));
    engine.lose_reply_of("submit_flow", 1);
    let flow = Flow::new("one").step("a", Submission::new("work").held());
    assert!(!client.submit_flow(flow).await.unwrap().was_there_already());
    engine.fail_next_of("claim", 1);
    assert!(worker.claim_next().await.unwrap_err().is_retryable());
    engine.lose_reply_of("complete_execution", 1);
    worker.claim_next().await.unwrap().unwrap().complete(None).await.unwrap();
}

#[tokio::test]
async fn a_cancel_reaches_whoever_runs_it() {
    let engine = TestEngine::start().await;
    let worker = engine.worker(WorkerConfig::new("w")).await;
    let execution = engine.client().submit(Submission::new("work")).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    engine.cancel(execution.id(), "enough").await;
    tokio::time::timeout(PATIENCE, task.cancelled()).await.unwrap();
    engine.assert_outcome(execution.id(), Outcome::Cancelled).await;
}

#[tokio::test]
async fn a_handler_runs_until_all_is_idle() {
    async fn third_time(info: TaskInfo) -> Result<u32, Failure> {
        match info.attempt_index() {
            2 => Ok(info.retry_count()),
            _ => Err(Failure::transient("no answer")),
        }
    }
    async fn asks() -> Result<AnswerOf, Failure> {
        Ok(AnswerOf::suspend(Suspension::approval("go")?))
    }
    let engine = TestEngine::start().await;
    let other = engine.client().submit(Submission::new("other")).await.unwrap();
    let on_a_lane = Submission::new("call").lane("calls").requires("phone");
    let called = engine.run_handler(on_a_lane, third_time).await;
    assert_eq!(called.result::<u32>().await.unwrap(), 2);
    exactly(&engine, 3 * SECOND);
    let asked = engine.run_handler(Submission::new("ask").lane("questions"), asks).await;
    engine.assert_state(asked.id(), PublicState::Suspended).await;
    engine.assert_state(other.id(), PublicState::Waiting).await;
    let workers = engine.client().list_workers(None).await.unwrap();
    assert!(workers.items.is_empty(), "its worker is gone: {:?}", workers.items);
}

#[tokio::test]
async fn work_is_claimed_by_name_whatever_else_waits() {
    let engine = TestEngine::start().await;
    let first = engine.client().submit(Submission::new("first").priority(9)).await.unwrap();
    let task = engine.claimed(Submission::new("second").requires("gpu")).await;
    assert_eq!(task.execution_kind().as_str(), "second");
    engine.assert_state(first.id(), PublicState::Waiting).await;
    let id = task.execution_id();
    task.complete(None).await.unwrap();
    engine.assert_completed(id).await;
}

#[tokio::test]
async fn what_cannot_be_claimed_says_why() {
    let engine = TestEngine::start().await;
    let claiming =
        tokio::spawn(async move { engine.claimed(Submission::new("mail").held()).await });
    let panic = claiming.await.unwrap_err().into_panic();
    let told = panic.downcast_ref::<String>().unwrap();
    assert!(told.contains("cannot set the work aside"), "{told}");
}

#[tokio::test]
async fn failures_tell_the_story() {
    let engine = TestEngine::start().await;
    let held = engine.client().submit(Submission::new("mail").held()).await.unwrap();
    let panic = tokio::spawn({
        let (engine, id) = (engine.clone(), held.id());
        async move { engine.assert_completed(id).await }
    });
    let panic = panic.await.unwrap_err().into_panic();
    let told = panic.downcast_ref::<String>().unwrap();
    for word in ["expected the outcome success", "it has not ended", "(mail)", "submitted", "hold"]
    {
        assert!(told.contains(word), "no {word:?} in {told}");
    }
}
