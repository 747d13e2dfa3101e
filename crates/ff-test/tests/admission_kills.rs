//! The process is killed between any two steps of an admission, of what follows from the end of a
//! lease, of a budget that acts, and of a worker that is lost: no slot leaks, and nothing is stuck.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::id::{ExecutionId, QuotaPolicyId};
use ff_core::layer::Layered;
use ff_core::limits;
use ff_core::operation::{Attach, Claim, CreateBudget, SetLane, Task, UpdateBudget};
use ff_core::partition::PartitionConfig;
use ff_core::state::{HardAction, LaneState, PublicState};
use ff_engine::acts;
use ff_test::fleet::{mark_dead, set_lane};
use ff_test::limits::{budget, cap, limits_of, under, usage};
use ff_test::lives::{Doomed, Lives, Mortal};
use ff_test::stages::{SqliteStage, ValkeyStage};
use ff_test::world::{World, complete, settle};

/// Longer than all that is tried takes: leases end by an act, not by time.
const LONG_LEASE_MS: u64 = limits::LEASE_TTL_MAX_MS;

/// More than slots are pending, leases last, and holders go without being looked at.
const LIVES: usize = 20;
const LIFE_MS: i64 = 5_000;

/// Tries `act` in a scene of its own, killed after no step, after one, and so on, until it gets to its
/// end, and looks at what became of each scene.
async fn at_every_step<S: Mortal, T>(
    lives: &mut Lives<S>,
    scene: impl AsyncFn(&World) -> T,
    act: impl AsyncFn(&Layered<Doomed>, &World, &T),
    outcome: impl AsyncFn(&World, &T),
) -> usize {
    for steps in 0.. {
        let (scene, killed) = lives
            .once(async |world| {
                let scene = scene(world).await;
                let doomed = Doomed::before(&world.backend, steps);
                act(&doomed, world, &scene).await;
                (scene, doomed.is_dead())
            })
            .await;
        lives.pass(LIVES, LIFE_MS).await;
        lives.once(async |world| outcome(world, &scene).await).await;
        lives.once(async |world| world.audit().await).await;
        if !killed {
            return steps;
        }
    }
    unreachable!("counting does not end");
}

/// A claim whose leases last.
fn claim(world: &World, max: u32) -> Claim {
    Claim { lease_ttl_ms: LONG_LEASE_MS, ..world.claim_request(max) }
}

async fn is_free(world: &World, id: QuotaPolicyId) {
    let holders = world.describe_quota(id).await.holders;
    assert_eq!(holders, [], "a slot is held for nothing");
}

/// All of these are given out, and no others.
async fn are_claimed(world: &World, ids: &[ExecutionId]) -> Vec<Task> {
    let tasks = world.claim(10).await;
    let mut found: Vec<_> = tasks.iter().map(|task| task.execution_id).collect();
    let mut wanted = ids.to_vec();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    tasks
}

async fn complete_all(world: &World, tasks: &[Task]) {
    for task in tasks {
        world.complete(task).await.unwrap();
    }
}

/// A lane and an execution with a policy each, and a budget with room.
struct Limited {
    id: ExecutionId,
    quotas: [QuotaPolicyId; 2],
}

async fn limited(world: &World) -> Limited {
    let (of_lane, own) = (world.quota(cap(1)).await, world.quota(cap(1)).await);
    let quota_policy_id = Some(Some(of_lane));
    let attach = Attach { quota_policy_id, ..Attach::default() };
    world.act(SetLane { attach, ..set_lane("work", LaneState::Active) }).await;
    let roomy = world.budget(budget(&[("tokens", 10, 0)])).await;
    let id = world.submit(under(world, &[roomy], Some(own))).await;
    Limited { id, quotas: [of_lane, own] }
}

/// Should it get so far, its lease ends by time.
async fn claim_one(doomed: &Layered<Doomed>, world: &World, _: &Limited) {
    let _ = doomed.claim(world.claim_request(1), Duration::ZERO).await;
}

async fn is_claimable_and_holds_nothing(world: &World, it: &Limited) {
    for id in it.quotas {
        is_free(world, id).await;
    }
    complete_all(world, &are_claimed(world, &[it.id]).await).await;
}

async fn slots_of_a_claim(lives: &mut Lives<impl Mortal>) {
    let steps = at_every_step(lives, limited, claim_one, is_claimable_and_holds_nothing).await;
    assert!(steps >= 5, "a look, a budget, two policies and a lease: {steps}");
}

async fn slots_of_a_refused_claim(lives: &mut Lives<impl Mortal>) {
    let steps = at_every_step(
        lives,
        async |world| {
            let it = limited(world).await;
            let holder = world.somebody();
            let slot = ff_test::limits::first_lease(holder);
            // Somebody else holds the slot, and is not asked in this life.
            world.act(ff_test::limits::check(it.quotas[1], slot)).await;
            it
        },
        claim_one,
        is_claimable_and_holds_nothing,
    )
    .await;
    assert!(steps >= 5, "two policies, a slot that goes back and a block: {steps}");
}

async fn slots_of_a_lease_that_ends(lives: &mut Lives<impl Mortal>) {
    let steps = at_every_step(
        lives,
        async |world| {
            let it = limited(world).await;
            let task = world.claim_as(claim(world, 1)).await.pop().unwrap();
            (it, task)
        },
        async |doomed, _, (_, task)| {
            let _ = doomed.call(complete(task)).await;
        },
        async |world, (it, task)| {
            if world.public_state(it.id).await != PublicState::Completed {
                world.complete(task).await.unwrap();
            }
            for id in it.quotas {
                is_free(world, id).await;
            }
            are_claimed(world, &[]).await;
        },
    )
    .await;
    assert!(steps >= 4, "the end, two slots and that they are settled: {steps}");
}

async fn room_in_a_budget(lives: &mut Lives<impl Mortal>) {
    let steps = at_every_step(
        lives,
        async |world| {
            world.act(free_lane()).await;
            let spent = world.budget(budget(&[("tokens", 10, 0)])).await;
            world.act(usage(spent, &[("tokens", 10)])).await;
            let mut ids = Vec::new();
            for _ in 0..3 {
                ids.push(world.submit(under(world, &[spent], None)).await);
            }
            are_claimed(world, &[]).await;
            (spent, ids)
        },
        async |doomed, _, (budget_id, _)| {
            let raise = UpdateBudget {
                dimensions: limits_of(&[("tokens", 100, 0)]),
                ..UpdateBudget::new(*budget_id)
            };
            let _ = doomed.call(raise).await;
            let _ = settle(doomed).await;
        },
        async |world, (budget_id, ids)| {
            let hard = world.status(*budget_id).await.unwrap();
            let raised = hard.dimensions.values().any(|counter| counter.limits.hard == 100);
            if !raised {
                world.act(ff_core::operation::ResetBudget { budget_id: *budget_id }).await;
                world.settle().await;
            }
            complete_all(world, &are_claimed(world, ids).await).await;
        },
    )
    .await;
    assert!(steps >= 5, "a raise, a list and three that are let go: {steps}");
}

async fn a_budget_that_ends_what_runs(lives: &mut Lives<impl Mortal>) {
    let steps = at_every_step(
        lives,
        async |world| {
            world.act(free_lane()).await;
            let create = budget(&[("tokens", 10, 0)]);
            let create = CreateBudget { on_hard_limit: HardAction::Cancel, ..create };
            let budget_id = world.budget(create).await;
            for _ in 0..2 {
                world.submit(under(world, &[budget_id], None)).await;
            }
            let tasks = world.claim_as(claim(world, 2)).await;
            (budget_id, tasks)
        },
        async |doomed, _, (budget_id, _)| {
            let _ = doomed.call(usage(*budget_id, &[("tokens", 11)])).await;
            let _ = settle(doomed).await;
        },
        async |world, (budget_id, tasks)| {
            let reported = world.used(*budget_id).await.values().any(|used| *used > 10);
            for task in tasks {
                let state = world.public_state(task.execution_id).await;
                assert_eq!(state == PublicState::Cancelled, reported, "{state:?}");
            }
            if !reported {
                complete_all(world, tasks).await;
            }
        },
    )
    .await;
    assert!(steps >= 4, "a report, a list and two that end: {steps}");
}

async fn leases_of_a_lost_worker(lives: &mut Lives<impl Mortal>) {
    let steps = at_every_step(
        lives,
        async |world| {
            world.act(free_lane()).await;
            let mut ids = Vec::new();
            for _ in 0..3 {
                ids.push(world.submit(world.work()).await);
            }
            assert_eq!(world.claim_as(claim(world, 3)).await.len(), 3);
            ids
        },
        async |doomed, _, _| {
            let _ = acts::mark_dead(doomed, mark_dead("pool-1")).await;
        },
        async |world, ids| {
            let first = world.describe(ids[0]).await.state.public_state;
            if first == PublicState::Active {
                acts::mark_dead(&*world.backend, mark_dead("pool-1")).await.unwrap();
            }
            world.act(ff_test::registered::registration_of(&world.claim_request(1))).await;
            complete_all(world, &are_claimed(world, ids).await).await;
        },
    )
    .await;
    assert!(steps >= 5, "the word, a list and three leases: {steps}");
}

/// The lane stands under nothing.
fn free_lane() -> SetLane {
    let attach = Attach { budget_ids: None, quota_policy_id: Some(None) };
    SetLane { attach, ..set_lane("work", LaneState::Active) }
}

async fn all(mut lives: Lives<impl Mortal>) {
    slots_of_a_claim(&mut lives).await;
    slots_of_a_refused_claim(&mut lives).await;
    slots_of_a_lease_that_ends(&mut lives).await;
    room_in_a_budget(&mut lives).await;
    a_budget_that_ends_what_runs(&mut lives).await;
    leases_of_a_lost_worker(&mut lives).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite() {
    all(Lives::new(SqliteStage::on_file(PartitionConfig::default()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_valkey() {
    all(Lives::new(ValkeyStage::standalone(PartitionConfig::default()).await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_valkey_cluster() {
    all(Lives::new(ValkeyStage::cluster(PartitionConfig::default()).await)).await;
}
