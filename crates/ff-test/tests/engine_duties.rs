//! Every scanner does its work, and counts it under its own name.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_core::id::{BulkId, Namespace, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{
    BlockForAdmission, Claim, CreateBudget, CreateBulk, CreatePendingWaitpoint, RegisterWorker,
    Submit,
};
use ff_core::policy::Policy;
use ff_core::read::Filter;
use ff_core::state::{BulkAction, BulkTargets, CancelPolicy, LimitId, TimeoutBehavior};
use ff_engine::{Engine, EngineOptions, Intervals, Report, ScannerStatus, Shutdown, acts};
use ff_test::fleet::block;
use ff_test::grants::issue_grant;
use ff_test::graphs::any_of;
use ff_test::limits::{budget, cap};
use ff_test::stages;
use ff_test::waits::{pending, suspend, wildcard, within};
use ff_test::world::{World, capabilities, complete, lane};

const PATIENCE: Duration = Duration::from_secs(60);

/// More than one step takes.
const MANY: usize = 200;

/// Scanners that each have something to do.
const BUSY: [&str; 22] = [
    "lease_expiry",
    "delayed_promoter",
    "attempt_timeout",
    "execution_deadline",
    "suspension_timeout",
    "pending_wp_expiry",
    "grant_expiry",
    "retention_trimmer",
    "budget_reset",
    "unblock",
    "route_check",
    "worker_ttl",
    "outbox",
    "bulk_runner",
    "flow_builder",
    "dependency_reconciler",
    "edge_cancel_dispatcher",
    "cancel_reconciler",
    "budget_reconciler",
    "quota_reconciler",
    "flow_projector",
    "index_reconciler",
];

/// Flows of which a step has left something.
async fn leave_work_of_flows(world: &World) {
    let wide = world.submit_flow(world.draw_out(MANY)).await;
    let joined = world.submit_flow(world.draw_in(MANY).join("x", any_of())).await;
    let stopped = world.submit_flow(world.draw_out(MANY)).await;
    let first = world.take(&wide, "x").await;
    let one = world.take(&joined, "m0").await;
    world.act(complete(&first)).await;
    world.act(complete(&one)).await;
    world.act(stopped.cancel(CancelPolicy::CancelAll)).await;
    world.act(world.draw_out(MANY).submit).await;
}

/// Executions that time does something to, each something else. Lanes keep them from the claims of others.
async fn leave_timers(world: &World) {
    let on = |name: &str, submit: Submit| Submit { lane: lane(name), ..submit };
    let start = async |name: &str, submit: Submit| {
        world.submit(on(name, submit)).await;
        let mut claim = world.claim_request(1);
        claim.lanes[0].lane = lane(name);
        world.claim_as(claim).await.pop().unwrap()
    };
    let soon = world.now().await.after(1_000);
    start("lease", world.work()).await;
    world.submit(Submit { delay_until: Some(soon), ..on("delay", world.work()) }).await;
    start("timeout", world.work_with(r#"{"timeout_policy":{"attempt_timeout_ms":1000}}"#)).await;
    let deadline = world.work_with(r#"{"timeout_policy":{"execution_deadline_ms":1000}}"#);
    world.submit(on("deadline", deadline)).await;
    let task = start("suspended", world.work()).await;
    world.act(within(1_000, TimeoutBehavior::Fail, suspend(&task, wildcard("a")))).await;
    let task = start("waitpoint", world.work()).await;
    world.act(CreatePendingWaitpoint { expires_at: Some(soon), ..pending(&task, "b") }).await;
    let task = start("kept", world.work_with(r#"{"retention":{"success_ms":1000}}"#)).await;
    world.complete(&task).await.unwrap();
    let id = world.submit(world.work()).await;
    world.act(issue_grant(id)).await;
}

/// A worker that falls silent with a lease, one that goes on, and what workers wait for.
async fn leave_work_of_fleets(world: &World) {
    let by = |instance: &str, name: &str| {
        let worker_instance_id = WorkerInstanceId::new(instance).unwrap();
        let mut claim = Claim { worker_instance_id, ..world.claim_request(1) };
        claim.lanes[0].lane = lane(name);
        Claim { lease_ttl_ms: limits::LEASE_TTL_MAX_MS, ..claim }
    };
    let silent = by("silent", "silent");
    world.act(RegisterWorker::for_claim(&silent, "boot", 1_000)).await;
    world.act(RegisterWorker::for_claim(&by("steady", "gpu"), "boot", 3_600_000)).await;
    world.submit(Submit { lane: lane("silent"), ..world.work() }).await;
    assert_eq!(world.claim_as(silent).await.len(), 1);
    let required_capabilities = capabilities(&["gpu"]);
    let policy = Arc::new(Policy { required_capabilities, ..Policy::default() });
    let gpu = Submit { lane: lane("gpu"), policy, ..world.work() };
    world.submit(gpu).await;
    world.submit(Submit { lane: lane("bulk"), ..world.work() }).await;
    let namespace = Some(Namespace::default());
    let filter = Filter { namespace, lanes: vec![lane("bulk")], ..Filter::default() };
    let bulk = CreateBulk {
        bulk_id: BulkId::mint(),
        namespace: Namespace::default(),
        action: BulkAction::Hold,
        targets: BulkTargets::Filter(Box::new(filter)),
        reason: "not needed".to_owned(),
        matched: 0,
    };
    acts::create_bulk(&*world.backend, bulk).await.unwrap();
}

/// Limits with room, of which one keeps an execution back all the same.
async fn leave_work_of_limits(world: &World) {
    let create = CreateBudget { reset_interval_ms: 1_000, ..budget(&[("tokens", 9, 0)]) };
    world.budget(create).await;
    world.quota(cap(1)).await;
    let by = LimitId::Budget(world.budget(budget(&[("tokens", 9, 0)])).await);
    let id = world.submit(Submit { lane: lane("limited"), ..world.work() }).await;
    let reason = by.reason().blocking_reason();
    world.act(BlockForAdmission { by: Some(by), ..block(id, reason) }).await;
}

fn status(report: &Report, name: &str) -> ScannerStatus {
    report.status().into_iter().find(|status| status.name == name).unwrap()
}

async fn every_scanner_does_its_work(world: World) {
    // First: what is due by then is carried out with it.
    leave_work_of_flows(&world).await;
    leave_timers(&world).await;
    leave_work_of_fleets(&world).await;
    leave_work_of_limits(&world).await;
    world.advance(60_000).await;
    let intervals = Intervals::all(Duration::from_millis(100));
    let options = EngineOptions { intervals, ..EngineOptions::default() };
    let engine = Engine::new(Arc::clone(&world.backend), options);
    let report = engine.report();
    let (stop, shutdown) = Shutdown::channel();
    let engine = tokio::spawn(engine.run(shutdown));
    let idle =
        || BUSY.into_iter().filter(|name| status(&report, name).processed == 0).collect::<Vec<_>>();
    // A route is blocked once nobody has covered it for a while of the store's time.
    let busy = async {
        let mut rounds = 0;
        while !idle().is_empty() {
            if status(&report, "route_check").cycles > rounds {
                rounds = status(&report, "route_check").cycles;
                world.advance(2_000).await;
            }
            tokio::task::yield_now().await;
        }
    };
    let done = tokio::time::timeout(PATIENCE, busy).await;
    assert!(done.is_ok(), "these have done nothing: {:?}", idle());
    stop.send_replace(true);
    engine.await.unwrap();
    world.settle().await;
    world.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite() {
    every_scanner_does_its_work(stages::sqlite_memory().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_valkey() {
    every_scanner_does_its_work(stages::valkey_standalone().await).await;
}
