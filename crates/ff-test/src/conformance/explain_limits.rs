//! Explain where a limit keeps an execution back, or would: as the limit is now.

use ff_core::id::{ExecutionId, QuotaPolicyId};
use ff_core::operation::{CreateBudget, DeleteQuotaPolicy, UpdateBudget, UpdateQuotaPolicy};
use ff_core::read::Cause;
use ff_core::state::PublicState;

use super::explain::explain;
use crate::limits::{budget, cap, limits_of, rate, under, usage};
use crate::world::World;

/// Under a quota that somebody has filled: who, and who waits.
async fn behind(world: &World, quota: QuotaPolicyId) -> (ExecutionId, ExecutionId) {
    let holder = world.start(under(world, &[], Some(quota))).await.execution_id;
    let waits = world.submit(under(world, &[], Some(quota))).await;
    assert_eq!(world.claim_ids(1).await, []);
    (holder, waits)
}

pub async fn a_used_up_budget_says_how_much_more_it_takes(world: &World) {
    let create = CreateBudget { reset_interval_ms: 60_000, ..budget(&[("tokens", 10, 5)]) };
    let spent = world.budget(create).await;
    let resets = world.now().await.after(60_000);
    world.act(usage(spent, &[("tokens", 12)])).await;
    let id = world.submit(under(world, &[spent], None)).await;
    assert_eq!(world.claim_ids(1).await, []);
    let told = explain(world, id).await;
    assert_eq!((told.cause, told.earliest_start_at), (Cause::Budget, Some(resets)));
    assert_eq!(told.evidence["budget_id"], spent.to_string());
    assert_eq!(told.evidence["dimension"], "tokens");
    assert_eq!(told.evidence["next_reset_at"], resets.rfc3339());
    assert_eq!((&told.evidence["used"], &told.evidence["limit"]), (&12.into(), &10.into()));
    assert_eq!(
        told.unblock[0].cli,
        format!("ff budget set {spent} --hard tokens=13 --soft tokens=5")
    );
    assert_eq!(told.unblock[0].route, format!("PATCH /v1/budgets/{spent}"));
    assert_eq!(told.unblock[1].cli, format!("ff budget reset {spent}"));
}

pub async fn all_that_is_used_up_is_raised_at_once(world: &World) {
    let limits = [("calls", 3, 0), ("tokens", 10, 5), ("watts", 9, 0)];
    let spent = world.budget(budget(&limits)).await;
    world.act(usage(spent, &[("calls", 7), ("tokens", 12), ("watts", 1)])).await;
    let id = world.submit(under(world, &[spent], None)).await;
    assert_eq!(world.claim_ids(1).await, []);
    let told = explain(world, id).await;
    let both = "calls is at 7 of 3, tokens is at 12 of 10";
    assert_eq!(told.summary, format!("Budget {spent} is used up: {both}."));
    let named: Vec<_> =
        told.evidence["used_up"].as_array().unwrap().iter().map(|it| &it["dimension"]).collect();
    assert_eq!(named, ["calls", "tokens"]);
    assert_eq!(told.unblock[0].summary, "raise calls above 7 and tokens above 12");
    let raise = "--hard calls=8 --hard tokens=13 --soft tokens=5";
    assert_eq!(told.unblock[0].cli, format!("ff budget set {spent} {raise}"));
}

pub async fn a_budget_is_told_as_it_is_now(world: &World) {
    let spent = world.budget(budget(&[("tokens", 10, 0)])).await;
    world.act(usage(spent, &[("tokens", 10)])).await;
    let id = world.submit(under(world, &[spent], None)).await;
    assert_eq!(world.claim_ids(1).await, []);
    let set = async |hard| {
        let dimensions = limits_of(&[("tokens", hard, 0)]);
        let update = UpdateBudget { dimensions, ..UpdateBudget::new(spent) };
        world.command(update.into()).await.unwrap();
    };
    world.command(usage(spent, &[("tokens", 90)]).into()).await.unwrap();
    set(50).await;
    let told = explain(world, id).await;
    let summary = format!("Budget {spent} is used up: tokens is at 100 of 50.");
    assert_eq!((told.cause, told.summary), (Cause::Budget, summary));
    assert!(!told.evidence.to_string().contains("of 10"), "{}", told.evidence);
    set(101).await;
    let told = explain(world, id).await;
    assert_eq!((told.cause, &told.evidence["used"].as_u64()), (Cause::Budget, &None));
    assert_eq!(told.earliest_start_at, Some(world.now().await));
    assert!(told.summary.contains("room again"), "{}", told.summary);
    assert!(told.unblock[0].summary.contains("room"), "{:?}", told.unblock);
}

pub async fn a_full_window_says_when_to_come_back(world: &World) {
    let busy = world.quota(rate(1, 60)).await;
    let (holder, waits) = behind(world, busy).await;
    for (passed, left, words) in [(0, 60_000, "1 min"), (12_000, 48_000, "48 s")] {
        world.advance(passed).await;
        let told = explain(world, waits).await;
        assert_eq!((told.cause, &told.evidence["window_seconds"]), (Cause::Quota, &60.into()));
        assert_eq!(told.evidence["max_requests_per_window"], 1);
        assert_eq!(told.evidence["quota_policy_id"], busy.to_string());
        assert_eq!(told.evidence["holders"][0], holder.to_string());
        assert_eq!(told.evidence["waiting"], 1);
        assert_eq!(told.evidence["retry_after_ms"], left);
        assert_eq!(told.earliest_start_at, Some(world.now().await.after(left)));
        let summary = format!("Quota policy {busy} lets in 1 in 60 s, and again in {words}.");
        assert_eq!(told.summary, summary);
        assert_eq!(told.unblock[0].cli, format!("ff quota set {busy} --max-requests 2"));
        assert_eq!(told.unblock[0].route, format!("PATCH /v1/quotas/{busy}"));
    }
    let detail = world.describe(waits).await.state.blocking_detail;
    assert_eq!(detail, format!("quota policy {busy}: the window is full"));
}

pub async fn a_window_that_was_larger_says_how_large_it_must_be(world: &World) {
    let busy = world.quota(rate(5, 60)).await;
    for _ in 0..4 {
        world.start(under(world, &[], Some(busy))).await;
    }
    world.act(UpdateQuotaPolicy::new(busy, rate(2, 60))).await;
    let waits = world.submit(under(world, &[], Some(busy))).await;
    assert_eq!(world.claim_ids(1).await, []);
    let told = explain(world, waits).await;
    assert_eq!(told.evidence["requests_in_window"], 4);
    assert_eq!(told.unblock[0].cli, format!("ff quota set {busy} --max-requests 5"));
    world.act(UpdateQuotaPolicy::new(busy, rate(4, 60))).await;
    assert_eq!(world.claim_ids(1).await, [], "less is not enough");
    world.act(UpdateQuotaPolicy::new(busy, rate(5, 60))).await;
    assert_eq!(world.claim_ids(1).await, [waits]);
}

pub async fn taken_slots_say_who_holds_them(world: &World) {
    let full = world.quota(cap(1)).await;
    let (holder, waits) = behind(world, full).await;
    let told = explain(world, waits).await;
    assert_eq!((told.cause, told.earliest_start_at), (Cause::Quota, None), "nobody knows");
    assert_eq!(told.evidence["max_concurrent"], 1);
    assert_eq!(told.evidence["holders"][0], holder.to_string());
    assert!(told.evidence["retry_after_ms"].is_null(), "{}", told.evidence);
    let summary = format!("All slots of quota policy {full} are taken, by {holder}.");
    assert_eq!(told.summary, summary);
    assert_eq!(told.unblock[0].cli, format!("ff quota set {full} --max-concurrent 2"));
    let detail = world.describe(waits).await.state.blocking_detail;
    assert_eq!(detail, format!("quota policy {full}: all slots are taken"));
    world.command(DeleteQuotaPolicy { quota_policy_id: full }.into()).await.unwrap();
    let told = explain(world, waits).await;
    // Where a server carries the command out, it has let go what waited.
    let gone = told.cause != Cause::Quota || told.summary.contains("is gone");
    assert!(gone, "{}", told.summary);
}

pub async fn a_limit_that_no_claim_has_asked_is_told(world: &World) {
    let spent = world.budget(budget(&[("tokens", 10, 0)])).await;
    world.act(usage(spent, &[("tokens", 10)])).await;
    let full = world.quota(cap(1)).await;
    world.start(under(world, &[], Some(full))).await;
    for (submit, cause) in [
        (under(world, &[spent], Some(full)), Cause::Budget),
        (under(world, &[], Some(full)), Cause::Quota),
        (world.work(), Cause::AllWorkersBusy),
    ] {
        let since = world.now().await.rfc3339();
        let id = world.submit(submit).await;
        let told = explain(world, id).await;
        assert_eq!((told.cause, &told.evidence["eligible_since"]), (cause, &since.into()));
        assert_eq!(world.public_state(id).await, PublicState::Waiting);
    }
}
