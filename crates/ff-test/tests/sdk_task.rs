//! Tasks of the SDK: each ends in exactly one way, also when replies are lost.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use ff_core::backend::BackendExt as _;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::limits;
use ff_core::operation::{Submit, UsageReported};
use ff_core::read::{GetBudgetStatus, ListAttempts, ReadResult};
use ff_core::state::PublicState;
use ff_sdk::{FailOutcome, SdkError, Usage};
use ff_test::limits::{budget, dimension};
use ff_test::sdk::{Fault, Workshop};
use ff_test::world::{PATIENCE, cancel, policy, tags};
use tokio::time::timeout;

ff_test::on_every_way! {
    getters_show_the_task
    a_result_is_kept_as_it_was_given
    a_completion_counts_once_when_its_reply_is_lost
    a_call_that_does_not_arrive_is_sent_again
    what_could_not_be_sent_gives_the_task_back
    what_is_refused_for_its_shape_gives_the_task_back
    failures_are_retried_as_the_policy_says
    a_failure_that_is_permanent_is_the_end
    a_failure_counts_once_when_its_reply_is_lost
    a_task_can_be_cancelled_by_its_worker
    another_outcome_is_told_with_details
    a_task_can_be_put_aside
    completions_bring_the_next_task
    progress_is_shown
    usage_counts_once_when_its_reply_is_lost
    usage_goes_to_all_budgets
    a_dropped_task_is_given_back
}

/// Retries three times, with a second in between.
const RETRIES: &str =
    r#"{"retry_policy":{"max_retries":3,"backoff":{"type":"fixed","delay_ms":1000}}}"#;

async fn getters_show_the_task(workshop: &Workshop) {
    let submit = Submit { tags: tags(&[("team", "media")]), ..workshop.work() };
    let (_worker, task) = workshop.started(submit).await;
    let inner = task.task();
    assert_eq!(task.attempt_id(), inner.attempt_id);
    assert_eq!((task.lease_id(), task.lease_epoch()), (inner.lease_id, 1));
    assert_eq!(task.lane_id().to_string(), "work");
    assert_eq!(task.execution_kind().to_string(), "test");
    assert_eq!(task.content_type().to_string(), "application/json");
    assert_eq!(task.tags(), &tags(&[("team", "media")]));
    assert_eq!((task.inputs(), task.metadata()), (&BTreeMap::new(), None));
    assert!(task.is_lease_healthy() && !task.is_cancelled() && task.stop_reason().is_none());
    assert!(!format!("{task:?}").contains("\"n\""), "a payload is nobody's log's business");
}

async fn result(workshop: &Workshop, id: ff_core::id::ExecutionId) -> Option<Content> {
    let read = ReadResult { execution_id: id, attempt_index: None };
    match workshop.store().ask(read).await {
        Err(error) if error.code() == Code::ResultNotFound => None,
        other => Some(other.unwrap()),
    }
}

async fn a_result_is_kept_as_it_was_given(workshop: &Workshop) {
    let worker = workshop.worker().await;
    for given in [None, Some(Bytes::new()), Some(Bytes::from_static(b"\xff\0"))] {
        let task = workshop.start(&worker, workshop.work()).await;
        let id = task.execution_id();
        task.complete(given.clone()).await.unwrap();
        assert_eq!(result(workshop, id).await, given.map(Content::new));
    }
    let task = workshop.start(&worker, workshop.work()).await;
    let (id, json) = (task.execution_id(), Content::json("[1]"));
    task.complete_with(Some(json.clone())).await.unwrap();
    assert_eq!(result(workshop, id).await, Some(json));
}

async fn a_completion_counts_once_when_its_reply_is_lost(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    let id = task.execution_id();
    workshop.wire.plan("complete_execution", [Fault::ReplyLost, Fault::CallLost, Fault::ReplyLost]);
    task.complete(Some("once".into())).await.unwrap();
    assert_eq!(workshop.wire.sent("complete_execution"), 4);
    let record = workshop.describe(id).await;
    assert_eq!(record.state.public_state, PublicState::Completed);
    assert_eq!(result(workshop, id).await, Some(Content::new("once")));
}

async fn a_call_that_does_not_arrive_is_sent_again(workshop: &Workshop) {
    let worker = workshop.worker().await;
    let task = workshop.start(&worker, workshop.work()).await;
    workshop.wire.cut();
    let ending = task.complete(None);
    let mending = async {
        workshop.wire.until_sent("complete_execution", 3).await;
        workshop.wire.mend();
    };
    let (ended, ()) = tokio::join!(ending, mending);
    ended.unwrap();
}

async fn what_could_not_be_sent_gives_the_task_back(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().lease_ttl_ms(300)).await;
    let task = workshop.start(&worker, workshop.work()).await;
    workshop.wire.cut();
    let back = task.complete(None).await.unwrap_err();
    assert!(matches!(back.error, SdkError::Backend(_)) && back.error.is_retryable(), "{back}");
    let task = back.task.unwrap();
    // Its lease is over by now, as far as anybody here can know.
    timeout(PATIENCE, task.cancelled()).await.unwrap();
    workshop.wire.mend();
    // The store's clock stands still: there it is not.
    task.complete(None).await.unwrap();
}

async fn what_is_refused_for_its_shape_gives_the_task_back(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let large = Bytes::from(vec![0; limits::PAYLOAD_BYTES + 1]);
    let back = task.complete(Some(large)).await.unwrap_err();
    assert_eq!(back.error.code(), Some(Code::PayloadTooLarge));
    let task = back.task.unwrap();
    assert_eq!(worker.running_tasks(), 1, "it is renewed as before");
    let refused = task.update_progress(101, "").await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::InvalidInput));
    let back = task.fail("", "c".repeat(100_000)).await.unwrap_err();
    assert_eq!(back.error.code(), Some(Code::InvalidInput));
    back.task.unwrap().complete(None).await.unwrap();
}

async fn failures_are_retried_as_the_policy_says(workshop: &Workshop) {
    let submit = Submit { policy: policy(RETRIES), ..workshop.work() };
    let (worker, task) = workshop.started(submit).await;
    let (id, now) = (task.execution_id(), workshop.now().await);
    let outcome = task.fail("no answer", "my_category").await.unwrap();
    let FailOutcome::RetryScheduled { delay_until, retry_count } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(delay_until.since(now) >= 1_000 && retry_count == 1, "{outcome:?}");
    assert!(worker.claim_next().await.unwrap().is_none());
    workshop.pass(2_000).await;
    let task = worker.claim_next().await.unwrap().unwrap();
    assert_eq!((task.execution_id(), task.attempt_index()), (id, 1));
    let previous = task.task().previous_failure.clone().unwrap();
    assert_eq!((&previous.reason[..], &previous.category[..]), ("no answer", "my_category"));
}

async fn a_failure_that_is_permanent_is_the_end(workshop: &Workshop) {
    let worker = workshop.worker().await;
    for category in ["permanent", "cancelled"] {
        let submit = Submit { policy: policy(RETRIES), ..workshop.work() };
        let task = workshop.start(&worker, submit).await;
        let id = task.execution_id();
        assert_eq!(task.fail("no", category).await.unwrap(), FailOutcome::TerminalFailed);
        assert_eq!(workshop.state(id).await, PublicState::Failed);
    }
}

async fn a_failure_counts_once_when_its_reply_is_lost(workshop: &Workshop) {
    let submit = Submit { policy: policy(RETRIES), ..workshop.work() };
    let (_worker, task) = workshop.started(submit).await;
    let id = task.execution_id();
    workshop.wire.plan("fail_execution", [Fault::ReplyLost, Fault::ReplyLost]);
    let outcome = task.fail("no", "transient").await.unwrap();
    assert!(matches!(outcome, FailOutcome::RetryScheduled { retry_count: 1, .. }), "{outcome:?}");
    let attempts = ListAttempts { execution_id: id, after: None, limit: 10 };
    assert_eq!(workshop.store().ask(attempts).await.unwrap().items.len(), 1);
}

async fn a_task_can_be_cancelled_by_its_worker(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    let id = task.execution_id();
    workshop.wire.plan("cancel_execution", [Fault::ReplyLost]);
    task.cancel("not worth it").await.unwrap();
    let record = workshop.describe(id).await;
    assert_eq!(record.state.public_state, PublicState::Cancelled);
    assert_eq!(record.cancellation_reason.as_deref(), Some("not worth it"));
}

async fn another_outcome_is_told_with_details(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    workshop.store().call(cancel(task.execution_id())).await.unwrap();
    let refused = task.complete(None).await.unwrap_err();
    assert!(refused.task.is_none());
    assert_eq!(refused.error.code(), Some(Code::ExecutionNotActive));
    let error = refused.error.engine_error().unwrap();
    let current = error.refusal().unwrap().current.clone().unwrap();
    assert_eq!(current.terminal_outcome, Some(ff_core::state::Outcome::Cancelled));
    assert_eq!(current.lease_epoch, 1);
    assert_eq!(worker.running_tasks(), 0);
}

async fn a_task_can_be_put_aside(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let (id, until) = (task.execution_id(), workshop.now().await.after(5_000));
    task.delay_execution(until).await.unwrap();
    workshop.pass(4_999).await;
    assert!(worker.claim_next().await.unwrap().is_none());
    workshop.pass(1).await;
    let task = worker.claim_next().await.unwrap().unwrap();
    assert_eq!((task.execution_id(), task.attempt_index(), task.lease_epoch()), (id, 0, 2));
    task.delay_for(Duration::from_secs(1)).await.unwrap();
    workshop.pass(1_000).await;
    let task = worker.claim_next().await.unwrap().unwrap();
    let alone = task.move_to_waiting_children().await.unwrap_err();
    assert_eq!(alone.error.code(), Some(Code::ExecutionNotInFlow), "{alone}");
    alone.task.unwrap().complete(None).await.unwrap();
}

async fn completions_bring_the_next_task(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().max_concurrent_tasks(1)).await;
    let mut task = workshop.start(&worker, workshop.work()).await;
    for _ in 0..3 {
        workshop.submit(workshop.work()).await;
    }
    let mut done = 0;
    loop {
        assert_eq!(worker.running_tasks(), 1);
        done += 1;
        let next = task.complete_and_claim(None).await.unwrap();
        // It may come back empty although there is work elsewhere.
        let next = match next {
            Some(next) => Some(next),
            None => worker.claim_next().await.unwrap(),
        };
        let Some(next) = next else { break };
        task = next;
    }
    assert_eq!((done, worker.running_tasks()), (4, 0));
    let last = workshop.start(&worker, workshop.work()).await;
    workshop.submit(workshop.work()).await;
    worker.drain();
    assert!(last.complete_and_claim(None).await.unwrap().is_none(), "a drained worker takes none");
}

async fn progress_is_shown(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    task.update_progress(10, "begun").await.unwrap();
    task.update_progress(60, "more than half").await.unwrap();
    let record = workshop.describe(task.execution_id()).await;
    let message = record.progress_message.unwrap();
    assert_eq!((record.progress_pct, &message[..]), (Some(60), "more than half"));
}

async fn usage_counts_once_when_its_reply_is_lost(workshop: &Workshop) {
    let made = budget(&[("input_tokens", 900, 1_000)]);
    let budget_id = made.budget_id;
    workshop.store().call(made).await.unwrap();
    let (_worker, task) = workshop.started(workshop.work()).await;
    let usage = Usage::new().input_tokens(400).output_tokens(3);
    workshop.wire.plan("report_usage", [Fault::ReplyLost]);
    let reported = task.report_usage(budget_id, &usage, None).await.unwrap();
    assert!(matches!(reported, UsageReported::AlreadyApplied), "{reported:?}");
    let reported = task.report_usage(budget_id, &usage, Some("mine")).await.unwrap();
    assert!(matches!(reported, UsageReported::Ok), "{reported:?}");
    let reported = task.report_usage(budget_id, &usage, Some("mine")).await.unwrap();
    assert!(matches!(reported, UsageReported::AlreadyApplied), "{reported:?}");
    let status = workshop.store().ask(GetBudgetStatus { budget_id }).await.unwrap().unwrap();
    let used = |name| status.dimensions[&dimension(name)].used;
    assert_eq!((used("input_tokens"), used("output_tokens")), (800, 6));
    let bad = task.report_usage(budget_id, &Usage::new().custom("", 1), None).await.unwrap_err();
    assert!(matches!(bad, SdkError::Config { field: "dimensions", .. }), "{bad}");
}

async fn usage_goes_to_all_budgets(workshop: &Workshop) {
    let made = budget(&[("wall_ms", 0, 1_000)]);
    let budget_id = made.budget_id;
    workshop.store().call(made).await.unwrap();
    let named = format!(r#"{{"budget_ids":["{budget_id}"]}}"#);
    let submit = Submit { policy: policy(&named), ..workshop.work() };
    let (_worker, task) = workshop.started(submit).await;
    let told = task.report_usage_to_all(&Usage::new().wall_ms(5), None).await.unwrap();
    assert_eq!(told.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [budget_id]);
}

async fn a_dropped_task_is_given_back(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().max_concurrent_tasks(1)).await;
    let task = workshop.start(&worker, workshop.work()).await;
    let id = task.execution_id();
    drop(task);
    assert_eq!(worker.running_tasks(), 0);
    let other = workshop.worker().await;
    let again = other.claim(1, PATIENCE).await.unwrap().pop().unwrap();
    assert_eq!((again.execution_id(), again.lease_epoch()), (id, 2));
    workshop.start(&worker, workshop.work()).await.complete(None).await.unwrap();
}
