//! Leases of the SDK: renewed together, and tasks are told at once when theirs is over.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::{Duration, Instant};

use ff_core::backend::BackendExt as _;
use ff_core::error::Code;
use ff_core::operation::Submit;
use ff_core::state::PublicState;
use ff_sdk::{ClaimedTask, SdkError, StopReason};
use ff_test::sdk::{Fault, Workshop};
use ff_test::world::{PATIENCE, cancel, policy, revoke};
use tokio::time::timeout;

ff_test::on_every_way! {
    leases_are_renewed
    a_lease_can_be_renewed_by_hand
    many_leases_travel_together
    renewals_end_with_the_task
    failed_renewals_are_counted_until_one_succeeds
    a_lease_that_cannot_be_renewed_is_lost
    a_cancel_reaches_the_task_within_a_second
    a_cancel_reaches_each_of_many
    a_revoked_lease_reaches_the_task_within_a_second
    a_deadline_reaches_the_task
    a_lost_lease_is_noticed_by_a_renewal
    waiting_for_nothing_sends_nothing
}

/// Waits until the task should stop: why.
async fn stopped(task: &ClaimedTask) -> StopReason {
    timeout(PATIENCE, task.cancelled()).await.expect("it is stopped");
    assert!(task.is_cancelled() && task.cancellation().is_cancelled());
    task.stop_reason().unwrap()
}

async fn leases_are_renewed(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().lease_ttl_ms(300)).await;
    let task = workshop.start(&worker, workshop.work()).await;
    let id = task.execution_id();
    let before = workshop.describe(id).await.lease_expires_at.unwrap();
    workshop.advance(50).await;
    let sent = workshop.wire.sent("renew_lease");
    workshop.wire.until_sent("renew_lease", sent + 2).await;
    let after = workshop.describe(id).await.lease_expires_at.unwrap();
    assert_eq!(after.since(before), 50);
    assert!(task.is_lease_healthy() && task.consecutive_renewal_failures() == 0);
}

async fn a_lease_can_be_renewed_by_hand(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    workshop.advance(1_000).await;
    let expires_at = task.renew_lease().await.unwrap();
    assert_eq!(expires_at, workshop.now().await.after(30_000));
    workshop.store().call(revoke(task.execution_id())).await.unwrap();
    let refused = task.renew_lease().await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::LeaseRevoked), "{refused}");
    assert!(task.is_cancelled(), "whoever hears so tells the task");
}

async fn many_leases_travel_together(workshop: &Workshop) {
    const TASKS: usize = 200;
    let config = workshop.config().max_concurrent_tasks(TASKS).lease_ttl_ms(1_500);
    let worker = workshop.worker_with(config).await;
    let submits = (0..TASKS).map(|_| workshop.work()).collect();
    workshop.store().submit_batch(submits).await.unwrap();
    let mut tasks = Vec::new();
    while tasks.len() < TASKS {
        tasks.extend(worker.claim(TASKS, PATIENCE).await.unwrap());
    }
    let (sent, calls) = (workshop.wire.sent("renew_lease"), workshop.wire.calls("renew_lease"));
    workshop.wire.until_sent("renew_lease", sent + 2 * TASKS).await;
    let (sent, calls) =
        (workshop.wire.sent("renew_lease") - sent, workshop.wire.calls("renew_lease") - calls);
    assert!(calls * 20 <= sent, "{sent} renewals in {calls} calls");
    assert!(tasks.iter().all(ClaimedTask::is_lease_healthy));
    for task in tasks {
        task.complete(None).await.unwrap();
    }
}

async fn renewals_end_with_the_task(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().lease_ttl_ms(100)).await;
    let ended = workshop.start(&worker, workshop.work()).await;
    let kept = workshop.start(&worker, workshop.work()).await;
    workshop.wire.until_sent("renew_lease", 2).await;
    ended.complete(None).await.unwrap();
    assert_eq!(worker.running_tasks(), 1);
    // The other one goes on alone: one renewal in each call.
    let sent = workshop.wire.sent("renew_lease");
    workshop.wire.until_sent("renew_lease", sent + 4).await;
    let (sent, calls) = (workshop.wire.sent("renew_lease"), workshop.wire.calls("renew_lease"));
    workshop.wire.until_sent("renew_lease", sent + 3).await;
    let sent_since = workshop.wire.sent("renew_lease") - sent;
    assert_eq!(workshop.wire.calls("renew_lease") - calls, sent_since);
    assert!(kept.is_lease_healthy());
}

async fn failed_renewals_are_counted_until_one_succeeds(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().lease_ttl_ms(2_000)).await;
    let task = workshop.start(&worker, workshop.work()).await;
    workshop.wire.plan("renew_lease", [Fault::CallLost; 3]);
    for failures in 1..=3 {
        assert!(task.is_lease_healthy());
        let failed = task.renew_lease().await.unwrap_err();
        assert!(matches!(failed, SdkError::Backend(_)), "{failed}");
        assert_eq!(task.consecutive_renewal_failures(), failures);
    }
    assert!(!task.is_lease_healthy() && !task.is_cancelled());
    task.renew_lease().await.unwrap();
    assert_eq!((task.consecutive_renewal_failures(), task.is_lease_healthy()), (0, true));
}

async fn a_lease_that_cannot_be_renewed_is_lost(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().lease_ttl_ms(300)).await;
    let task = workshop.start(&worker, workshop.work()).await;
    workshop.wire.cut();
    let begun = Instant::now();
    let lost = StopReason::LeaseLost { code: Code::LeaseExpired };
    assert_eq!(stopped(&task).await, lost);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(worker.running_tasks(), 0);
    workshop.wire.mend();
}

async fn a_cancel_reaches_the_task_within_a_second(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    let begun = Instant::now();
    workshop.store().call(cancel(task.execution_id())).await.unwrap();
    let reason = "not wanted".to_owned();
    assert_eq!(stopped(&task).await, StopReason::Cancelled { reason });
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

async fn a_cancel_reaches_each_of_many(workshop: &Workshop) {
    let worker = workshop.worker().await;
    let mut tasks = Vec::new();
    for _ in 0..8 {
        tasks.push(workshop.start(&worker, workshop.work()).await);
    }
    for task in &tasks {
        workshop.store().call(cancel(task.execution_id())).await.unwrap();
    }
    for task in &tasks {
        assert!(matches!(stopped(task).await, StopReason::Cancelled { .. }));
    }
    assert_eq!(worker.running_tasks(), 0);
    drop(tasks);
    workshop.start(&worker, workshop.work()).await.complete(None).await.unwrap();
}

async fn a_revoked_lease_reaches_the_task_within_a_second(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let begun = Instant::now();
    workshop.store().call(revoke(task.execution_id())).await.unwrap();
    assert!(matches!(stopped(&task).await, StopReason::LeaseLost { .. }));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    // The same worker may have it again, under another lease.
    let again = worker.claim(1, PATIENCE).await.unwrap().pop().unwrap();
    assert_eq!(again.lease_epoch(), 2);
    drop(task);
    assert!(!again.is_cancelled());
    again.complete(None).await.unwrap();
}

async fn a_deadline_reaches_the_task(workshop: &Workshop) {
    let short = r#"{"timeout_policy":{"execution_deadline_ms":1000}}"#;
    let submit = Submit { policy: policy(short), ..workshop.work() };
    let (_worker, task) = workshop.started(submit).await;
    workshop.pass(1_001).await;
    assert!(matches!(stopped(&task).await, StopReason::LeaseLost { .. }));
    assert_eq!(workshop.state(task.execution_id()).await, PublicState::Expired);
}

async fn a_lost_lease_is_noticed_by_a_renewal(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().lease_ttl_ms(600)).await;
    let task = workshop.start(&worker, workshop.work()).await;
    // Nobody carries out what is due: there is no event to hear of.
    workshop.advance(601).await;
    let StopReason::LeaseLost { code } = stopped(&task).await else { panic!("not lost") };
    assert!(matches!(code, Code::LeaseExpired | Code::StaleLease), "{code}");
}

async fn waiting_for_nothing_sends_nothing(workshop: &Workshop) {
    let worker = workshop.worker().await;
    // The first heartbeats have been sent by then: one that goes on from nowhere looks twice.
    assert!(worker.claim(1, Duration::from_millis(700)).await.unwrap().is_empty());
    let (beats, waits) = (workshop.wire.sent("heartbeat_worker"), workshop.wire.waits());
    assert!(worker.claim(1, Duration::from_millis(700)).await.unwrap().is_empty());
    assert_eq!(workshop.wire.sent("heartbeat_worker"), beats, "its time has not come");
    assert!(workshop.wire.waits() <= waits + 2, "one claim: {}", workshop.wire.waits() - waits);
}
