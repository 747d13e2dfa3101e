//! Tasks of the SDK that a scheduler has set aside for a worker.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_core::backend::BackendExt as _;
use ff_core::error::Code;
use ff_core::id::ExecutionId;
use ff_core::operation::{
    ClaimGrant, IssueClaimGrant, IssueReclaimGrant, IssuedReclaimGrant, Resume,
};
use ff_core::state::PublicState;
use ff_sdk::{FlowFabricWorker, ReclaimOutcome, SdkError, Suspension, WorkerConfig};
use ff_test::grants::{GRANT_MS, issue_grant, issue_reclaim};
use ff_test::sdk::Workshop;
use ff_test::world::{lane, revoke};

ff_test::on_every_way! {
    a_grant_becomes_a_task
    a_worker_at_capacity_leaves_the_grant
    a_grant_of_another_lane_or_partition_is_refused
    a_grant_runs_out
    a_grant_for_an_attempt_that_goes_on_resumes_it
    a_lost_execution_is_reclaimed_by_grant
    reclaims_have_other_ends
}

fn config() -> WorkerConfig {
    WorkerConfig::new("pool").worker_instance_id("pool-1").lane("work").max_concurrent_tasks(2)
}

async fn granted(workshop: &Workshop) -> ClaimGrant {
    let id = workshop.submit(workshop.work()).await;
    grant(workshop, issue_grant(id)).await
}

async fn grant(workshop: &Workshop, issue: IssueClaimGrant) -> ClaimGrant {
    workshop.store().call(issue).await.unwrap()
}

async fn reclaimable(workshop: &Workshop, worker: &FlowFabricWorker) -> ExecutionId {
    let task = workshop.start(worker, workshop.work()).await;
    let id = task.execution_id();
    workshop.store().call(revoke(id)).await.unwrap();
    id
}

async fn reclaim_grant(workshop: &Workshop, issue: IssueReclaimGrant) -> ClaimGrant {
    match workshop.store().call(issue).await.unwrap() {
        IssuedReclaimGrant::Granted(grant) => grant,
        other => panic!("{other:?}"),
    }
}

async fn a_grant_becomes_a_task(workshop: &Workshop) {
    let worker = workshop.worker_with(config()).await;
    let grant = granted(workshop).await;
    assert!(worker.claim_next().await.unwrap().is_none(), "it is set aside");
    let task = worker.claim_from_grant(&lane("work"), &grant).await.unwrap();
    assert_eq!((task.execution_id(), task.attempt_index()), (grant.execution_id, 0));
    let again = worker.claim_from_resume_grant(&grant).await.unwrap_err();
    assert!(matches!(again, SdkError::Config { field: "grant", .. }), "{again}");
    assert!(!task.is_cancelled());
    task.complete(None).await.unwrap();
}

async fn a_worker_at_capacity_leaves_the_grant(workshop: &Workshop) {
    let worker = workshop.worker_with(config().max_concurrent_tasks(1)).await;
    let task = workshop.start(&worker, workshop.work()).await;
    let grant = granted(workshop).await;
    let full = worker.claim_from_grant(&lane("work"), &grant).await.unwrap_err();
    assert!(matches!(full, SdkError::WorkerAtCapacity) && full.is_retryable());
    let full = worker.claim_from_resume_grant(&grant).await.unwrap_err();
    assert!(matches!(full, SdkError::WorkerAtCapacity));
    let full = worker.claim_from_reclaim_grant(&grant).await.unwrap_err();
    assert!(matches!(full, SdkError::WorkerAtCapacity));
    task.complete(None).await.unwrap();
    worker.claim_from_grant(&lane("work"), &grant).await.unwrap().complete(None).await.unwrap();
}

async fn a_grant_of_another_lane_or_partition_is_refused(workshop: &Workshop) {
    let worker = workshop.worker_with(config()).await;
    let grant = granted(workshop).await;
    let refused = worker.claim_from_grant(&lane("else"), &grant).await.unwrap_err();
    assert!(matches!(refused, SdkError::Config { field: "lane", .. }), "{refused}");
    let other = loop {
        let other = granted(workshop).await;
        if other.partition_key != grant.partition_key {
            break other;
        }
    };
    let mixed = ClaimGrant { partition_key: other.partition_key, ..grant.clone() };
    let refused = worker.claim_from_grant(&lane("work"), &mixed).await.unwrap_err();
    assert!(matches!(refused, SdkError::Config { field: "partition_key", .. }), "{refused}");
    worker.claim_from_grant(&lane("work"), &grant).await.unwrap().complete(None).await.unwrap();
}

async fn a_grant_runs_out(workshop: &Workshop) {
    let worker = workshop.worker_with(config()).await;
    let grant = granted(workshop).await;
    workshop.advance(i64::try_from(GRANT_MS).unwrap() + 1).await;
    let late = worker.claim_from_grant(&lane("work"), &grant).await.unwrap_err();
    assert!(
        matches!(late.code(), Some(Code::ClaimGrantExpired | Code::InvalidClaimGrant)),
        "{late}"
    );
    assert_eq!(worker.running_tasks(), 0, "its permit is free again");
}

async fn a_grant_for_an_attempt_that_goes_on_resumes_it(workshop: &Workshop) {
    let worker = workshop.worker_with(config()).await;
    for by_name in [false, true] {
        let task = workshop.start(&worker, workshop.work()).await;
        let id = task.execution_id();
        task.suspend_on(Suspension::approval("k").unwrap()).await.unwrap();
        let resume = Resume { execution_id: id, trigger: "operator".to_owned(), delay_ms: None };
        workshop.store().call(resume).await.unwrap();
        let grant = grant(workshop, issue_grant(id)).await;
        let task = match by_name {
            true => worker.claim_from_resume_grant(&grant).await.unwrap(),
            false => worker.claim_from_grant(&lane("work"), &grant).await.unwrap(),
        };
        assert_eq!((task.attempt_index(), task.lease_epoch()), (0, 2));
        task.complete(None).await.unwrap();
    }
}

async fn a_lost_execution_is_reclaimed_by_grant(workshop: &Workshop) {
    let worker = workshop.worker_with(config()).await;
    let id = reclaimable(workshop, &worker).await;
    let grant = reclaim_grant(workshop, issue_reclaim(id)).await;
    let reclaimed = worker.claim_from_reclaim_grant(&grant).await.unwrap();
    let ReclaimOutcome::Claimed(task) = reclaimed else { panic!("{reclaimed:?}") };
    assert_eq!((task.execution_id(), task.lease_epoch()), (id, 2));
    task.complete(None).await.unwrap();
    assert_eq!(workshop.state(id).await, PublicState::Completed);
}

async fn reclaims_have_other_ends(workshop: &Workshop) {
    let worker = workshop.worker_with(config()).await;
    let id = reclaimable(workshop, &worker).await;
    let grant = reclaim_grant(workshop, issue_reclaim(id)).await;
    workshop.pass(i64::try_from(GRANT_MS).unwrap() + 1).await;
    let late = worker.claim_from_reclaim_grant(&grant).await.unwrap_err();
    assert_eq!(late.code(), Some(Code::ClaimGrantExpired));
    let task = worker.claim_next().await.unwrap().unwrap();
    let running = worker.claim_from_reclaim_grant(&grant).await.unwrap();
    assert!(
        matches!(running, ReclaimOutcome::GrantNotFound | ReclaimOutcome::NotReclaimable { .. }),
        "{running:?}"
    );
    task.complete(None).await.unwrap();
}
