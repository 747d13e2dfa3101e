//! What a lost worker held is claimable again, whoever stops in between.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::{LeaseId, Namespace};
use ff_core::limits;
use ff_core::operation::{
    Claim, Errand, LaneShare, LoseLease, LostWorker, RegisterWorker, Renew, SettleWorkerLoss,
    Settled, Task, Tick, WorkerGone,
};
use ff_core::read::{Due, ListExpiredLeases};
use ff_core::state::{AttemptType, LostBy, OwnershipState, PublicState};
use ff_engine::acts;

use crate::fleet::{TTL, deregister, leases_of, lose, mark_dead, register};
use crate::grants::instance;
use crate::world::{World, complete, lane, namespace, renew};

const SILENCE: i64 = TTL.cast_signed();

/// Registers, and claims one execution whose lease outlives the registration.
async fn start_by(world: &World, name: &str) -> Task {
    world.act(register(name)).await;
    claim_by(world, name).await
}

async fn claim_by(world: &World, name: &str) -> Task {
    world.submit(world.work()).await;
    let claim = Claim {
        worker_instance_id: instance(name),
        lease_ttl_ms: limits::LEASE_TTL_MAX_MS,
        ..world.claim_request(1)
    };
    world.claim_as(claim).await.pop().expect("a task")
}

fn boot(name: &str, boot: &str) -> RegisterWorker {
    RegisterWorker { boot_id: boot.to_owned(), ..register(name) }
}

/// It is claimable as a reclaim, and its old attempt cannot come back.
async fn is_lost(world: &World, task: &Task, ownership: OwnershipState, refused: Code) {
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.ownership_state, ownership);
    assert_eq!(record.state.public_state, PublicState::Waiting);
    assert_eq!(record.lease_reclaim_count, 1);
    world.refuses(renew(task), refused).await;
    world.refuses(complete(task), refused).await;
}

fn gone(reply: WorkerGone) -> LostWorker {
    match reply {
        WorkerGone::Gone(lost) => lost,
        WorkerGone::NotRegistered => panic!("there was a worker"),
    }
}

pub async fn the_leases_of_a_silent_worker_are_lost_by_time(world: &World) {
    let task = start_by(world, "w-1").await;
    let other = start_by(world, "w-2").await;
    world.act(renew(&other)).await;
    world.pass(SILENCE - 1).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Active);
    world.act(register("w-2")).await;
    world.pass(1).await;
    let expired = OwnershipState::LeaseExpiredReclaimable;
    is_lost(world, &task, expired, Code::LeaseExpired).await;
    assert_eq!(world.public_state(other.execution_id).await, PublicState::Active);
    let last = world.history(task.execution_id).await.pop();
    assert_eq!(last, Some(EventKind::LeaseExpired));
    let again = world.claim_one().await;
    assert_eq!((again.execution_id, again.attempt_type), (task.execution_id, AttemptType::Reclaim));
}

pub async fn the_leases_of_a_worker_that_leaves_are_revoked_at_once(world: &World) {
    let task = start_by(world, "w-1").await;
    let reply = acts::deregister(&*world.backend, deregister("w-1")).await.unwrap();
    assert_eq!(gone(reply).worker_instance_id, instance("w-1"));
    is_lost(world, &task, OwnershipState::LeaseRevoked, Code::LeaseRevoked).await;
    assert_eq!(world.history(task.execution_id).await.pop(), Some(EventKind::LeaseRevoked));
    let nobody = acts::deregister(&*world.backend, deregister("w-1")).await.unwrap();
    assert_eq!(nobody, WorkerGone::NotRegistered);
}

pub async fn the_leases_of_a_worker_called_dead_are_revoked_at_once(world: &World) {
    let task = start_by(world, "w-1").await;
    gone(acts::mark_dead(&*world.backend, mark_dead("w-1")).await.unwrap());
    is_lost(world, &task, OwnershipState::LeaseRevoked, Code::LeaseRevoked).await;
    assert_eq!(world.claim_one().await.execution_id, task.execution_id);
}

pub async fn who_stops_after_the_word_leaves_the_rest_to_the_timer(world: &World) {
    let task = start_by(world, "w-1").await;
    world.act(deregister("w-1")).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Active);
    world.settle().await;
    is_lost(world, &task, OwnershipState::LeaseRevoked, Code::LeaseRevoked).await;
}

pub async fn who_stops_half_way_leaves_the_rest_to_the_timer(world: &World) {
    let first = start_by(world, "w-1").await;
    let second = claim_by(world, "w-1").await;
    world.act(mark_dead("w-1")).await;
    assert_eq!(world.act(lose(&first)).await, Settled::Done);
    assert_eq!(world.act(lose(&first)).await, Settled::AlreadySatisfied);
    world.settle().await;
    for task in [first, second] {
        is_lost(world, &task, OwnershipState::LeaseRevoked, Code::LeaseRevoked).await;
    }
}

pub async fn a_loss_is_told_until_it_is_settled(world: &World) {
    start_by(world, "w-1").await;
    world.act(mark_dead("w-1")).await;
    let tick = || Tick { home: None, most: 10 };
    for _ in 0..3 {
        let ticked = world.act(tick()).await;
        let [Errand::TakeLeases(lost)] = ticked.errands.as_slice() else {
            panic!("one errand: {ticked:?}")
        };
        assert_eq!(lost.worker_instance_id, instance("w-1"));
        assert_eq!(world.act(tick()).await.errands, [], "not to everybody who asks");
        world.advance(1_000).await;
    }
    world.settle().await;
    world.pass(1_000).await;
    assert_eq!(world.act(tick()).await.errands, []);
    let left = world.backend.ask(Due).await.unwrap().items;
    assert_eq!(left, [], "nothing is left of the worker");
}

pub async fn only_what_is_over_is_settled(world: &World) {
    start_by(world, "w-1").await;
    let lost = gone(world.act(mark_dead("w-1")).await);
    let settle = lost.settle().expect("a loss");
    let now = world.now().await;
    // A claim may rest on what it read a moment ago.
    assert!(settle.acquired_before > now);
    assert_eq!(world.act(settle.clone()).await, Settled::AlreadySatisfied);
    world.advance(1_000).await;
    let before = SettleWorkerLoss { acquired_before: now, ..settle.clone() };
    assert_eq!(world.act(before).await, Settled::AlreadySatisfied);
    assert_eq!(world.act(settle.clone()).await, Settled::Done);
    assert_eq!(world.act(settle).await, Settled::AlreadySatisfied);
}

pub async fn the_next_boot_keeps_its_leases(world: &World) {
    for revoked in [true, false] {
        let old = start_by(world, "w-1").await;
        let silence = if revoked { 1 } else { SILENCE };
        world.advance(silence).await;
        if revoked {
            world.act(mark_dead("w-1")).await;
        }
        world.act(boot("w-1", "boot-2")).await;
        // Also in the very millisecond in which the name changed hands.
        let new = claim_by(world, "w-1").await;
        assert_ne!(old.execution_id, new.execution_id);
        world.settle().await;
        world.pass(2_000).await;
        assert_eq!(world.public_state(old.execution_id).await, PublicState::Waiting);
        assert_eq!(world.public_state(new.execution_id).await, PublicState::Active);
        world.act(renew(&new)).await;
        world.act(complete(&new)).await;
        let again = world.claim_one().await;
        world.act(complete(&again)).await;
        world.act(deregister("w-1")).await;
    }
}

pub async fn a_loss_told_before_takes_none_of_the_next_boots_leases(world: &World) {
    let old = start_by(world, "w-1").await;
    world.advance(1).await;
    let lost = gone(world.act(mark_dead("w-1")).await);
    world.act(boot("w-1", "boot-2")).await;
    let new = claim_by(world, "w-1").await;
    assert_ne!(old.execution_id, new.execution_id);
    // It was told of leases that lie ahead, when nobody knew of a next boot.
    assert!(lost.takes(world.now().await).is_some());
    assert_eq!(acts::take_leases(&*world.backend, &lost).await.unwrap().done, 1);
    assert_eq!(world.public_state(old.execution_id).await, PublicState::Waiting);
    assert_eq!(world.public_state(new.execution_id).await, PublicState::Active);
}

pub async fn every_boot_is_lost_in_its_own_way(world: &World) {
    let first = start_by(world, "w-1").await;
    world.advance(SILENCE).await;
    world.act(boot("w-1", "boot-2")).await;
    let second = claim_by(world, "w-1").await;
    world.advance(1).await;
    world.act(mark_dead("w-1")).await;
    world.settle().await;
    is_lost(world, &first, OwnershipState::LeaseExpiredReclaimable, Code::LeaseExpired).await;
    is_lost(world, &second, OwnershipState::LeaseRevoked, Code::LeaseRevoked).await;
}

pub async fn a_lease_that_another_holds_is_not_taken(world: &World) {
    let task = start_by(world, "w-1").await;
    let (execution_id, by) = (task.execution_id, LostBy::Time);
    let lease_id = LeaseId::mint();
    let other = world.act(LoseLease { execution_id, lease_id, by }).await;
    assert_eq!(other, Settled::AlreadySatisfied);
    assert_eq!(world.public_state(execution_id).await, PublicState::Active);
    world.act(complete(&task)).await;
    let ended = world.act(LoseLease { execution_id, lease_id: task.lease_id, by }).await;
    assert_eq!(ended, Settled::AlreadySatisfied);
}

pub async fn a_namesake_in_another_namespace_keeps_its_leases(world: &World) {
    let task = start_by(world, "w-1").await;
    world.act(RegisterWorker { namespace: namespace("other"), ..register("w-1") }).await;
    let elsewhere =
        ff_core::operation::DeregisterWorker { namespace: namespace("other"), ..deregister("w-1") };
    gone(acts::deregister(&*world.backend, elsewhere).await.unwrap());
    world.settle().await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Active);
}

pub async fn at_the_cap_the_loss_is_the_end(world: &World) {
    world.act(register("pool-1")).await;
    let json = r#"{"timeout_policy":{"max_reclaim_count":0}}"#;
    let task = world.start(world.work_with(json)).await;
    acts::mark_dead(&*world.backend, mark_dead("pool-1")).await.unwrap();
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.public_state, PublicState::Failed);
    assert_eq!(record.failure_reason.as_deref(), Some("max_reclaims_exceeded"));
}

pub async fn many_leases_are_taken_page_by_page(world: &World) {
    let count = limits::PAGE_MAX + 3;
    world.act(register("pool-1")).await;
    let submits = (0..count).map(|_| world.work()).collect();
    world.backend.submit_batch(submits).await.unwrap();
    assert_eq!(world.claim(count).await.len(), count as usize);
    let lost = gone(world.act(mark_dead("pool-1")).await);
    assert_eq!(acts::take_leases(&*world.backend, &lost).await.unwrap().done, count);
    assert_eq!(acts::take_leases(&*world.backend, &lost).await.unwrap().done, 0, "once");
    assert_eq!(world.leases_of("pool-1").await, []);
}

pub async fn leases_of_an_instance_come_in_pages(world: &World) {
    let lanes = vec![LaneShare::new(lane("work")), LaneShare::new(lane("mail"))];
    world.act(register("w-1")).await;
    let mut held = Vec::new();
    for name in ["work", "mail", "work", "mail"] {
        world.submit(world.work_on(name)).await;
        let claim = Claim { lanes: lanes.clone(), ..world.claim_request(1) };
        let claim = Claim { worker_instance_id: instance("w-1"), ..claim };
        held.extend(world.claim_as(claim).await.iter().map(|task| task.execution_id));
    }
    start_by(world, "w-2").await;
    held.sort_unstable();
    for limit in 1..=5 {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let question = leases_of(&instance("w-1"), cursor, limit);
            let page = world.backend.ask(question).await.unwrap();
            seen.extend(page.items.iter().map(|lease| lease.execution_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        // The order is the store's own.
        seen.sort_unstable();
        assert_eq!(seen, held, "{limit} a page");
    }
}

pub async fn a_renewal_on_the_way_changes_no_walk(world: &World) {
    world.act(register("w-1")).await;
    let mut held = Vec::new();
    for _ in 0..6 {
        held.push(claim_by(world, "w-1").await);
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = world.backend.ask(leases_of(&instance("w-1"), cursor, 2)).await.unwrap();
        seen.extend(page.items.iter().map(|lease| lease.execution_id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
        world.advance(1).await;
        for (n, task) in held.iter().enumerate() {
            let ttl_ms =
                Some(if n % 2 == 0 { limits::LEASE_TTL_MS } else { limits::LEASE_TTL_MAX_MS });
            world.act(Renew { ttl_ms, ..renew(task) }).await;
        }
    }
    seen.sort_unstable();
    let mut held: Vec<_> = held.iter().map(|task| task.execution_id).collect();
    held.sort_unstable();
    assert_eq!(seen, held, "each once");
}

pub async fn expired_leases_are_listed_until_they_are_handled(world: &World) {
    let late = world.start(world.work()).await;
    start_by(world, "w-1").await;
    let listed = || async {
        let namespace = Namespace::default();
        let question = ListExpiredLeases { namespace, cursor: None, limit: 10 };
        world.backend.ask(question).await.unwrap().items
    };
    world.advance(limits::LEASE_TTL_MS.cast_signed()).await;
    let [lease] = &listed().await[..] else { panic!("one lease is over") };
    assert_eq!((lease.execution_id, lease.lease_id), (late.execution_id, late.lease_id));
    assert_eq!((lease.lease_epoch, &lease.lane), (late.lease_epoch, &late.lane));
    assert_eq!((lease.expires_at, lease.acquired_at), (late.expires_at, late.created_at));
    assert_eq!(lease.worker_instance_id, late.handle.worker_instance_id);
    world.settle().await;
    assert_eq!(listed().await, []);
}
