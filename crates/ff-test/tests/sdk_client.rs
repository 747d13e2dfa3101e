//! Clients of the SDK: submitting, waiting, reading, managing.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ff_core::backend::{Backend, Pending};
use ff_core::error::{Code, EngineError};
use ff_core::id::ExecutionId;
use ff_core::layer::{Layer, Layered};
use ff_core::read::{Answer, Cause, Filter, Query};
use ff_core::state::{BulkAction, BulkState, Limits, Outcome, PublicState, QuotaSpec};
use ff_sdk::{Client, NewBudget, NewBulk, ResultError, SdkError, Submission, Usage};
use ff_test::sdk::Workshop;
use ff_test::world::PATIENCE;
use uuid::Uuid;

ff_test::on_every_way! {
    what_is_submitted_arrives_whole
    a_key_finds_the_first_submit
    bad_input_is_told_by_its_field_and_nothing_is_sent
    a_batch_of_any_size_is_made_in_order
    a_wait_ends_with_the_execution
    a_wait_that_is_over_says_so
    a_wait_goes_on_over_faults
    a_result_is_read_as_what_it_is
    no_result_of_what_did_not_succeed
    closing_ends_waits
    executions_are_found_held_and_replayed
    budgets_are_made_spent_and_reset
    quotas_lanes_and_workers_are_seen
    namespaces_are_apart
}

fn work() -> Submission {
    Submission::new("test").lane("work")
}

async fn what_is_submitted_arrives_whole(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let submission = work().json(&["a", "b"]).unwrap().priority(7).tag("for", "ada");
    let submission = submission.max_retries(9).creator_identity("me").delay(Duration::from_secs(5));
    let execution = client.submit(submission.deadline(Duration::from_secs(60))).await.unwrap();
    assert!(!execution.was_there_already());
    let record = execution.describe().await.unwrap();
    assert_eq!(record.state.public_state, PublicState::Delayed);
    let created = record.created_at;
    assert_eq!(record.delay_until, Some(created.after(5_000)));
    assert_eq!(record.deadline_at, Some(created.after(60_000)));
    assert_eq!((record.priority, record.policy.retry.max_retries), (7, 9));
    assert_eq!((record.tags.get("for"), record.creator_identity.as_str()), (Some("ada"), "me"));
    assert_eq!(execution.explain().await.unwrap().cause, Cause::Delayed);
    workshop.pass(5_000).await;
    let task = worker.claim_next().await.unwrap().unwrap();
    assert_eq!(task.execution_id(), execution.id());
    assert_eq!(&task.input_payload()[..], br#"["a","b"]"#);
    assert_eq!(task.content_type().as_str(), "application/json");
    task.complete(None).await.unwrap();
    let context = client.read_context(execution.id()).await.unwrap();
    assert_eq!(&context.payload[..], br#"["a","b"]"#);
    assert_eq!(client.list_attempts(execution.id(), None).await.unwrap().items.len(), 1);
    let events = client.list_events(execution.id(), 0).await.unwrap().items;
    let events: Vec<_> = events.iter().map(|it| it.event.kind.as_str()).collect();
    assert_eq!(
        (events[0], *events.last().unwrap()),
        ("execution.submitted", "execution.completed")
    );
}

async fn a_key_finds_the_first_submit(workshop: &Workshop) {
    let client = workshop.client();
    let first = client.submit(work().idempotency_key("k").payload("a")).await.unwrap();
    let again = client.submit(work().idempotency_key("k").payload("a")).await.unwrap();
    assert_eq!(first.id(), again.id());
    assert!(!first.was_there_already() && again.was_there_already());
    let other = client.submit(work().idempotency_key("k").payload("b")).await.unwrap_err();
    assert_eq!(other.code(), Some(Code::IdempotencyMismatch));
}

async fn bad_input_is_told_by_its_field_and_nothing_is_sent(workshop: &Workshop) {
    let client = workshop.client();
    let large = vec![0_u8; ff_core::limits::PAYLOAD_BYTES + 1];
    assert_eq!(
        client.submit(work().payload(large)).await.unwrap_err().code(),
        Some(Code::PayloadTooLarge)
    );
    let cases = [
        (work().lane(""), "lane"),
        (Submission::new(""), "kind"),
        (work().idempotency_key(""), "idempotency_key"),
        (work().content_type("\u{7}"), "content_type"),
        (work().requires("a b"), "capabilities"),
        (work().tag("", "x"), "tags"),
        (work().max_retries(u32::MAX), "max_retries"),
    ];
    for (submission, expected) in cases {
        let refused = client.submit(submission.clone()).await.unwrap_err();
        let SdkError::Config { field, .. } = &refused else { panic!("{submission:?}: {refused}") };
        assert_eq!(*field, expected, "{submission:?}");
        let batch = client.submit_batch([work(), submission]).await.unwrap_err();
        assert!(matches!(batch, SdkError::Config { .. }), "{batch}");
    }
    assert!(work().policy_json("{\"no\":1}").is_err());
    assert!(client.in_namespace("Not A Namespace").is_err());
    assert!(client.search(Filter::default(), None, 50).await.unwrap().items.is_empty());
}

async fn a_batch_of_any_size_is_made_in_order(workshop: &Workshop) {
    let client = workshop.client();
    assert!(client.submit_batch([]).await.unwrap().is_empty());
    let submissions = (0..1_200).map(|n| work().payload(format!("{n}")));
    let made = client.submit_batch(submissions).await.unwrap();
    assert_eq!(made.len(), 1_200);
    for n in [0, 999, 1_000, 1_199] {
        let id = made[n].as_ref().unwrap().id();
        assert_eq!(client.read_context(id).await.unwrap().payload, n.to_string());
    }
}

async fn a_wait_ends_with_the_execution(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let execution = client.submit(work()).await.unwrap();
    let waiting = tokio::spawn({
        let execution = execution.clone();
        async move { execution.wait(PATIENCE).await }
    });
    let task = worker.claim_next().await.unwrap().unwrap();
    task.fail("no disk", "permanent").await.unwrap();
    let finished = waiting.await.unwrap().unwrap();
    assert_eq!((finished.outcome, finished.is_success()), (Outcome::Failed, false));
    assert_eq!(finished.to_string(), "failed: no disk (permanent)");
    // Of one that has ended before there is no wait.
    assert_eq!(execution.wait(Duration::ZERO).await.unwrap().outcome, Outcome::Failed);
}

async fn a_wait_that_is_over_says_so(workshop: &Workshop) {
    let client = workshop.client();
    let execution = client.submit(work()).await.unwrap();
    for timeout in [Duration::ZERO, Duration::from_millis(20)] {
        let late = execution.wait(timeout).await.unwrap_err();
        assert!(late.to_string().contains("has not ended"), "{late}");
        assert!(late.is_retryable());
    }
    let nobody = ExecutionId::solo(Uuid::now_v7(), &workshop.backend.settings().partitions);
    let missing = client.wait_for_outcome(nobody, PATIENCE).await.unwrap_err();
    assert_eq!(missing.code(), Some(Code::ExecutionNotFound));
}

/// A way to a store on which questions get lost.
struct Deaf {
    inner: Arc<dyn Backend>,
    left: AtomicU32,
}

impl Layer for Deaf {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        let take = |left: u32| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
            return Box::pin(async { Err(EngineError::unavailable("lost")) });
        }
        self.inner.query(query)
    }
}

async fn a_wait_goes_on_over_faults(workshop: &Workshop) {
    let inner = Arc::clone(&workshop.backend);
    let deaf = Arc::new(Layered(Deaf { inner, left: AtomicU32::new(0) }));
    let execution = Client::connect_with(Arc::clone(&deaf) as Arc<dyn Backend>);
    let execution = execution.submit(work()).await.unwrap();
    deaf.left.store(3, Ordering::SeqCst);
    let waiting = tokio::spawn({
        let execution = execution.clone();
        async move { execution.wait(PATIENCE).await }
    });
    workshop.client().cancel(execution.id(), "enough").await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().outcome, Outcome::Cancelled);
    assert_eq!(deaf.left.load(Ordering::SeqCst), 0);
    // Without time there is nothing to wait for.
    deaf.left.store(1, Ordering::SeqCst);
    assert!(execution.wait(Duration::ZERO).await.is_err());
}

async fn a_result_is_read_as_what_it_is(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let execution = client.submit(work()).await.unwrap();
    let missing = execution.result_bytes().await.unwrap_err();
    assert_eq!(missing.code(), Some(Code::ResultNotFound));
    let task = worker.claim_next().await.unwrap().unwrap();
    task.complete(Some("[1,2]".into())).await.unwrap();
    assert_eq!(execution.wait_for_result::<Vec<u8>>(PATIENCE).await.unwrap(), [1, 2]);
    assert_eq!(execution.result_bytes().await.unwrap(), "[1,2]");
    let wrong = execution.result::<String>().await.unwrap_err();
    assert!(matches!(wrong, SdkError::Config { field: "result", .. }), "{wrong}");
}

async fn no_result_of_what_did_not_succeed(workshop: &Workshop) {
    let execution = workshop.client().submit(work()).await.unwrap();
    execution.cancel("enough").await.unwrap();
    let ended = execution.wait_for_result::<u8>(PATIENCE).await.unwrap_err();
    let ResultError::Ended(finished) = ended else { panic!("{ended}") };
    assert_eq!((finished.outcome, finished.reason()), (Outcome::Cancelled, Some("enough")));
    // Cancelled again, it stays so.
    assert!(execution.cancel("enough").await.unwrap().replayed);
}

async fn closing_ends_waits(workshop: &Workshop) {
    let client = workshop.client();
    let execution = client.submit(work()).await.unwrap();
    let (execution, waiting) = (execution.clone(), execution);
    let waiting = tokio::spawn(async move { waiting.wait(PATIENCE).await });
    tokio::task::yield_now().await;
    client.close().await.unwrap();
    assert!(waiting.await.unwrap().is_err());
    // The store itself is somebody else's, and stays open.
    execution.describe().await.unwrap();
}

async fn executions_are_found_held_and_replayed(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let execution = client.submit(work().held().tag("for", "ada")).await.unwrap();
    assert!(worker.claim_next().await.unwrap().is_none());
    client.release(execution.id()).await.unwrap();
    client.hold(execution.id(), "audit").await.unwrap();
    assert_eq!(execution.explain().await.unwrap().cause, Cause::OperatorHold);
    client.release(execution.id()).await.unwrap();
    assert_eq!(client.change_priority(execution.id(), 5).await.unwrap().new, 5);
    let tags = BTreeMap::from([("me.seen".to_owned(), "yes".to_owned())]);
    assert_eq!(client.set_tags(execution.id(), tags).await.unwrap().count, 2);
    let task = worker.claim_next().await.unwrap().unwrap();
    client.revoke_lease(execution.id(), "elsewhere").await.unwrap();
    assert!(task.complete(None).await.is_err());
    let task = worker.claim_next().await.unwrap().unwrap();
    task.complete(None).await.unwrap();
    assert_eq!(client.replay(execution.id(), false).await.unwrap().replay_count, 1);
    execution.cancel("enough").await.unwrap();
    let filter = Filter { tags: vec![("me.seen".into(), "yes".into())], ..Filter::default() };
    let found = client.search(filter.clone(), None, 50).await.unwrap().items;
    assert_eq!(found.len(), 1);
    client.delete(execution.id()).await.unwrap();
    assert!(client.search(filter, None, 50).await.unwrap().items.is_empty());
}

async fn budgets_are_made_spent_and_reset(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let budget = NewBudget::new("tokens").limit("output_tokens", 10);
    let budget = client.create_budget(budget).await.unwrap();
    let usage = Usage::new().output_tokens(10);
    client.report_usage(budget, &usage, Some("a")).await.unwrap();
    client.report_usage(budget, &usage, Some("a")).await.unwrap();
    let status = client.budget_status(budget).await.unwrap();
    assert_eq!(status.dimensions.values().next().unwrap().used, 10);
    let execution = client.submit(work().budget(budget)).await.unwrap();
    assert!(worker.claim_next().await.unwrap().is_none());
    assert_eq!(execution.explain().await.unwrap().cause, Cause::Budget);
    client.reset_budget(budget).await.unwrap();
    workshop.pass(1_000).await;
    let task = worker.claim_next().await.unwrap().unwrap();
    task.complete(None).await.unwrap();
    let more = BTreeMap::from([("output_tokens".to_owned(), Limits { hard: 99, soft: 0 })]);
    client.set_budget_limits(budget, more).await.unwrap();
    assert_eq!(client.list_budgets(None).await.unwrap().items.len(), 1);
    client.delete_budget(budget).await.unwrap();
    let gone = client.budget_status(budget).await.unwrap_err();
    assert_eq!(gone.code(), Some(Code::BudgetNotFound));
    let bad = client.create_budget(NewBudget::new("x").limit("NO", 1)).await.unwrap_err();
    assert!(matches!(bad, SdkError::Config { field: "dimensions", .. }), "{bad}");
}

async fn quotas_lanes_and_workers_are_seen(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let spec = QuotaSpec {
        window_seconds: 0,
        max_requests_per_window: 0,
        max_concurrent: 1,
        jitter_ms: 0,
    };
    let quota = client.create_quota_policy(spec).await.unwrap();
    for _ in 0..2 {
        client.submit(work().quota(quota)).await.unwrap();
    }
    let task = worker.claim_next().await.unwrap().unwrap();
    assert!(worker.claim_next().await.unwrap().is_none());
    assert_eq!(client.describe_quota_policy(quota).await.unwrap().policy.slots, 1);
    let name = worker.worker_instance_id();
    assert_eq!(client.describe_worker(name).await.unwrap().running, 1);
    let seen = worker.list_workers(None).await.unwrap().items;
    assert_eq!(seen.len(), 1);
    client.pause_lane("work", "audit").await.unwrap();
    task.complete(None).await.unwrap();
    assert!(worker.claim_next().await.unwrap().is_none());
    client.resume_lane("work", "done").await.unwrap();
    let second = worker.claim_next().await.unwrap().unwrap();
    second.complete(None).await.unwrap();
    assert_eq!(client.describe_lane("work").await.unwrap().live_workers, 1);
    client.drain_worker(name).await.unwrap();
    tokio::time::timeout(PATIENCE, worker.drained()).await.unwrap();
    worker.shutdown(Duration::ZERO).await.unwrap();
    assert!(!client.mark_worker_dead(name, "gone").await.unwrap());
    let gone = client.describe_worker(name).await.unwrap_err();
    assert_eq!(gone.code(), Some(Code::WorkerNotFound));
    client.delete_quota_policy(quota).await.unwrap();
}

async fn namespaces_are_apart(workshop: &Workshop) {
    let (ours, theirs) = (workshop.client(), workshop.client().in_namespace("theirs").unwrap());
    let execution = theirs.submit(work()).await.unwrap();
    assert!(ours.search(Filter::default(), None, 50).await.unwrap().items.is_empty());
    assert_eq!(theirs.search(Filter::default(), None, 50).await.unwrap().items.len(), 1);
    let waiting = tokio::spawn({
        let execution = execution.clone();
        async move { execution.wait(PATIENCE).await }
    });
    execution.cancel("enough").await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().outcome, Outcome::Cancelled);
    assert_eq!(theirs.describe_namespace().await.unwrap().revision, 0);
}

/// No route tells of them.
mod beside_the_store {
    use super::*;

    ff_test::on_both_stores! {
        a_bulk_operation_acts_on_what_a_filter_finds
        leases_of_a_worker_are_listed
    }

    async fn a_bulk_operation_acts_on_what_a_filter_finds(workshop: &Workshop) {
        let client = workshop.client();
        let mut made = Vec::new();
        for _ in 0..3 {
            made.push(client.submit(work()).await.unwrap());
        }
        client.submit(work().lane("other")).await.unwrap();
        let everything = NewBulk::of_found(BulkAction::Cancel, Filter::default());
        let refused = client.preview_bulk(&everything).await.unwrap_err();
        assert!(matches!(refused, SdkError::Config { field: "filter", .. }), "{refused}");
        let filter = Filter { lanes: vec![ff_test::world::lane("work")], ..Filter::default() };
        let cancel = NewBulk::of_found(BulkAction::Cancel, filter).reason("mistake");
        assert_eq!(client.preview_bulk(&cancel).await.unwrap().matched, 3);
        let bulk = client.create_bulk(cancel).await.unwrap();
        workshop.pass(1_000).await;
        assert_eq!(client.bulk(bulk).await.unwrap().state, BulkState::Completed);
        for execution in made {
            assert_eq!(execution.wait(PATIENCE).await.unwrap().outcome, Outcome::Cancelled);
        }
    }

    async fn leases_of_a_worker_are_listed(workshop: &Workshop) {
        let (worker, _task) = workshop.started(workshop.work()).await;
        let name = worker.worker_instance_id();
        let leases = workshop.client().list_leases(Some(name), None).await.unwrap();
        assert_eq!(leases.items.len(), 1);
    }
}
