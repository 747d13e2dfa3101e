//! What a worker hears, whatever store it works for: each case is a row of the contract on replies.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_core::error::{Code, Refusal};
use ff_core::id::BudgetId;
use ff_core::operation::UsageReported;
use ff_core::state::{FailureClass, LifecyclePhase, Outcome};
use ff_sdk::{
    ClaimedTask, FailOutcome, FlowFabricWorker, NewBudget, SdkError, Signal, SignalOutcome,
    Submission, SuspendOutcome, Suspension, Usage,
};
use ff_test::sdk::Workshop;

ff_test::on_every_way! {
    ok_status
    already_applied_status
    soft_breach_status
    hard_breach_status
    empty_suspension_has_no_resume_signals
    stale_prior_attempt_has_no_resume_signals
    non_resumed_close_has_no_resume_signals
    resumed_same_attempt_has_its_resume_signals
    parse_success_result_extracts_all_four_detail_slots
    parse_success_result_missing_slots_defaults_to_empty
    parse_fail_result_tells_the_retry_or_the_end
    parse_suspend_result_echoes_ids_and_gives_a_token
    parse_signal_result_tells_the_effect
}

fn work() -> Submission {
    Submission::new("test").lane("work")
}

async fn started(workshop: &Workshop) -> (FlowFabricWorker, ClaimedTask) {
    let worker = workshop.worker().await;
    workshop.client().submit(work()).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    (worker, task)
}

async fn budget(workshop: &Workshop) -> BudgetId {
    let budget = NewBudget::new("tokens").soft_limit("input_tokens", 5).limit("input_tokens", 10);
    workshop.client().create_budget(budget).await.unwrap()
}

async fn reported(workshop: &Workshop, tokens: u64) -> UsageReported {
    let (_worker, task) = started(workshop).await;
    let usage = Usage::new().input_tokens(tokens);
    task.report_usage(budget(workshop).await, &usage, None).await.unwrap()
}

async fn ok_status(workshop: &Workshop) {
    assert_eq!(reported(workshop, 5).await, UsageReported::Ok);
}

async fn already_applied_status(workshop: &Workshop) {
    let (_worker, task) = started(workshop).await;
    let (budget, usage) = (budget(workshop).await, Usage::new().input_tokens(1));
    let mut heard = Vec::new();
    for _ in 0..2 {
        heard.push(task.report_usage(budget, &usage, Some("call-1")).await.unwrap());
    }
    assert_eq!(heard, [UsageReported::Ok, UsageReported::AlreadyApplied]);
}

async fn soft_breach_status(workshop: &Workshop) {
    let UsageReported::SoftBreach(breach) = reported(workshop, 6).await else { panic!() };
    assert_eq!((breach.dimension.as_str(), breach.current, breach.limit), ("input_tokens", 6, 5));
}

async fn hard_breach_status(workshop: &Workshop) {
    let UsageReported::HardBreach(breach) = reported(workshop, 11).await else { panic!() };
    assert_eq!((breach.dimension.as_str(), breach.current, breach.limit), ("input_tokens", 11, 10));
}

async fn empty_suspension_has_no_resume_signals(workshop: &Workshop) {
    let (_worker, task) = started(workshop).await;
    assert!(task.resume_signals().await.unwrap().is_empty());
}

/// Suspended at `gate`, and resumed by a signal.
async fn resumed(workshop: &Workshop) -> (FlowFabricWorker, ClaimedTask) {
    let (worker, task) = started(workshop).await;
    let id = task.execution_id();
    let on = Suspension::signal("gate", "open").unwrap();
    let SuspendOutcome::Suspended(at) = task.suspend_on(on).await.unwrap() else { panic!() };
    let ticket = at.waitpoint().unwrap();
    let open = Signal::new("open", ticket.token.clone());
    workshop.client().deliver_signal(id, ticket.waitpoint_id, open).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    (worker, task)
}

async fn resumed_same_attempt_has_its_resume_signals(workshop: &Workshop) {
    let (_worker, task) = resumed(workshop).await;
    let signals = task.resume_signals().await.unwrap();
    assert_eq!((task.attempt_index(), signals.len()), (0, 1));
    assert_eq!(signals[0].name.as_str(), "open");
}

async fn stale_prior_attempt_has_no_resume_signals(workshop: &Workshop) {
    let (worker, task) = resumed(workshop).await;
    task.fail("broken", "transient").await.unwrap();
    workshop.pass(60_000).await;
    let task = worker.claim_next().await.unwrap().unwrap();
    assert_eq!(task.attempt_index(), 1);
    assert!(task.resume_signals().await.unwrap().is_empty());
}

async fn non_resumed_close_has_no_resume_signals(workshop: &Workshop) {
    let (worker, task) = started(workshop).await;
    let id = task.execution_id();
    task.suspend_on(Suspension::signal("gate", "open").unwrap()).await.unwrap();
    workshop.client().resume(id, "an operator").await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    assert!(task.resume_signals().await.unwrap().is_empty());
}

fn refusal(error: &SdkError) -> &Refusal {
    error.engine_error().unwrap().refusal().unwrap()
}

async fn parse_success_result_extracts_all_four_detail_slots(workshop: &Workshop) {
    let (_worker, task) = started(workshop).await;
    let (id, epoch, attempt) = (task.execution_id(), task.lease_epoch(), task.attempt_id());
    workshop.client().cancel(id, "enough").await.unwrap();
    let refused = task.complete(None).await.unwrap_err().error;
    assert_eq!(refused.code(), Some(Code::ExecutionNotActive));
    let current = refusal(&refused).current.as_ref().unwrap();
    assert_eq!(current.terminal_outcome, Some(Outcome::Cancelled));
    assert_eq!((current.lease_epoch, current.attempt_id), (epoch, Some(attempt)));
    assert_eq!(current.phase, LifecyclePhase::Terminal);
}

async fn parse_success_result_missing_slots_defaults_to_empty(workshop: &Workshop) {
    let (_worker, task) = started(workshop).await;
    let partitions = &workshop.backend.settings().partitions;
    let nobody = ff_core::id::ExecutionId::solo(uuid::Uuid::now_v7(), partitions);
    let refused = workshop.client().cancel(nobody, "enough").await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::ExecutionNotFound));
    assert_eq!(refusal(&refused).current, None);
    task.complete(None).await.unwrap();
}

async fn parse_fail_result_tells_the_retry_or_the_end(workshop: &Workshop) {
    let (worker, task) = started(workshop).await;
    let claimed_at = workshop.describe(task.execution_id()).await.last_transition_at;
    let retry = task.fail("broken", "transient").await.unwrap();
    let delay_until = claimed_at.after(1_000);
    assert_eq!(retry, FailOutcome::RetryScheduled { delay_until, retry_count: 1 });
    workshop.pass(1_000).await;
    let task = worker.claim_next().await.unwrap().unwrap();
    assert_eq!(task.fail("broken", "permanent").await.unwrap(), FailOutcome::TerminalFailed);
}

async fn parse_suspend_result_echoes_ids_and_gives_a_token(workshop: &Workshop) {
    let (worker, task) = started(workshop).await;
    let id = task.execution_id();
    let pending = task.create_pending_waitpoint("gate", None).await.unwrap();
    let open = Signal::new("open", pending.token.clone());
    worker.deliver_signal(id, pending.waitpoint_id, open).await.unwrap();
    let on = Suspension::signal("gate", "open").unwrap().using(&pending);
    let satisfied = task.suspend_on(on).await.unwrap();
    let SuspendOutcome::AlreadySatisfied { at, task } = satisfied else { panic!() };
    assert_eq!(at.waitpoint().unwrap().waitpoint_id, pending.waitpoint_id);
    let on = Suspension::signal("other", "open").unwrap();
    let SuspendOutcome::Suspended(at) = task.suspend_on(on).await.unwrap() else { panic!() };
    let ticket = at.waitpoint().unwrap();
    assert_eq!(ticket.key.as_str(), "other");
    assert!(!ticket.token.expose().is_empty());
    assert_eq!(workshop.describe(id).await.suspension_id, Some(at.suspension_id));
}

async fn parse_signal_result_tells_the_effect(workshop: &Workshop) {
    let (_worker, task) = started(workshop).await;
    let id = task.execution_id();
    let on = Suspension::signal("gate", "open").unwrap();
    let SuspendOutcome::Suspended(at) = task.suspend_on(on).await.unwrap() else { panic!() };
    let (client, ticket) = (workshop.client(), at.waitpoint().unwrap());
    let say = |name: &str| Signal::new(name, ticket.token.clone()).idempotency_key(name);
    let kept = client.deliver_signal(id, ticket.waitpoint_id, say("other")).await.unwrap();
    let SignalOutcome::Accepted { signal_id, .. } = kept else { panic!("{kept:?}") };
    let again = client.deliver_signal(id, ticket.waitpoint_id, say("other")).await.unwrap();
    assert_eq!(again, SignalOutcome::Duplicate { existing: signal_id });
    let last = client.deliver_signal(id, ticket.waitpoint_id, say("open")).await.unwrap();
    assert!(matches!(last, SignalOutcome::TriggeredResume { .. }), "{last:?}");
}

#[test]
fn error_category_to_class() {
    let cases = [
        ("transient", FailureClass::Transient, true),
        ("permanent", FailureClass::Permanent, false),
        ("infra_crash", FailureClass::InfraCrash, true),
        ("timeout", FailureClass::Timeout, true),
        ("cancelled", FailureClass::Cancelled, false),
        ("whatever", FailureClass::Transient, true),
    ];
    for (category, class, may_retry) in cases {
        assert_eq!(FailureClass::of_category(category), class, "{category}");
        assert_eq!(class.may_retry(), may_retry, "{category}");
    }
}
