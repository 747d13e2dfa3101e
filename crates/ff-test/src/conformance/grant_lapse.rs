//! A grant that is not used lapses, and the execution is where it was.

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::ExecutionId;
use ff_core::operation::{
    ChangePriority, ClaimNext, Complete, IssueClaimGrant, LaneShare, Submit, Tick, Ticked,
};
use ff_core::read::Due;
use ff_core::state::{DueKind, PublicState};
use tokio::time::timeout;
use uuid::Uuid;

use crate::grants::{GRANT_MS, claim_granted, grant_and_claim, issue_grant, worker};
use crate::world::{PATIENCE, World, complete, lane};

const MS: i64 = GRANT_MS.cast_signed();

fn tick() -> Tick {
    Tick { home: None, most: 10 }
}

pub async fn a_grant_that_lapses_gives_the_old_place_back(world: &World) {
    let first = world.submit(world.work()).await;
    world.advance(1).await;
    let second = world.submit(world.work()).await;
    world.advance(1).await;
    let third = world.submit(world.work()).await;
    world.act(issue_grant(second)).await;
    world.act(issue_grant(first)).await;
    world.pass(MS - 1).await;
    assert_eq!(world.describe(first).await.grant.map(|grant| grant.lapsed), Some(false));
    world.pass(1).await;
    assert_eq!(world.claim_ids(10).await, [first, second, third]);
}

pub async fn a_lapse_is_no_transition(world: &World) {
    let id = world.granted(world.work()).await;
    let before = world.describe(id).await;
    let [(_, at)] = world.backend.ask(Due).await.unwrap().items.try_into().unwrap();
    assert_eq!(at, world.now().await.after(GRANT_MS));
    world.advance(MS).await;
    let fired = vec![(DueKind::GrantExpiry, 1)];
    assert_eq!(world.act(tick()).await, Ticked { fired, more: false, ..Ticked::default() });
    assert_eq!(DueKind::GrantExpiry.scanner(), "grant_expiry");
    let after = world.describe(id).await;
    assert_eq!((after.state, after.grant), (before.state, None));
    assert_eq!(after.revision, before.revision + 1);
    assert_eq!(after.last_transition_at, before.last_transition_at);
    assert_eq!(world.history(id).await, [EventKind::Submitted]);
    assert_eq!(world.backend.ask(Due).await.unwrap().items, []);
    assert_eq!(world.act(tick()).await, Ticked::default());
}

pub async fn a_lapse_wakes_who_waits(world: &World) {
    let id = world.granted(world.work()).await;
    let claim = world.backend.claim(world.claim_request(1), PATIENCE);
    let (tasks, ()) = tokio::join!(timeout(PATIENCE, claim), world.pass(MS));
    let tasks = tasks.expect("in time").expect("a claim");
    assert_eq!(tasks.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [id]);
    let none = world.backend.claim(world.claim_request(1), Duration::ZERO).await;
    assert_eq!(none.expect("a claim"), []);
}

pub async fn a_grant_past_its_time_makes_room_for_the_next(world: &World) {
    let id = world.granted(world.work()).await;
    world.advance(MS).await;
    let other = IssueClaimGrant { worker_id: worker("other"), ..issue_grant(id) };
    world.act(other.clone()).await;
    world.refuses(claim_granted(id), Code::InvalidClaimGrant).await;
    world.settle().await;
    assert_eq!(world.claim_ids(1).await, [], "the new one lives");
    world.pass(MS).await;
    world.act(issue_grant(id)).await;
    assert_eq!(world.claim_ids(1).await, [], "also behind a timer");
    assert_eq!(world.act(claim_granted(id)).await.lease_epoch, 1);
}

pub async fn a_change_of_priority_holds_for_the_place_that_comes_back(world: &World) {
    let low = world.granted(world.work()).await;
    let high = world.submit(Submit { priority: 5, ..world.work() }).await;
    world.act(ChangePriority { execution_id: low, priority: 9 }).await;
    world.pass(MS).await;
    assert_eq!(world.claim_ids(10).await, [low, high]);
}

pub async fn a_deadline_comes_before_the_end_of_a_grant(world: &World) {
    let json = r#"{"timeout_policy":{"execution_deadline_ms":5000}}"#;
    let id = world.granted(world.work_with(json)).await;
    world.advance(MS).await;
    let fired = vec![(DueKind::ExecutionDeadline, 1)];
    assert_eq!(world.act(tick()).await, Ticked { fired, more: false, ..Ticked::default() });
    assert_eq!(world.public_state(id).await, PublicState::Expired);
}

pub async fn a_used_grant_leaves_no_timer(world: &World) {
    let id = world.granted(world.work()).await;
    let task = world.act(claim_granted(id)).await;
    let [(_, at)] = world.backend.ask(Due).await.unwrap().items.try_into().unwrap();
    assert_eq!(at, task.expires_at);
    world.pass(MS).await;
    assert_eq!(world.public_state(id).await, PublicState::Active);
}

pub async fn completing_does_not_take_what_is_set_aside(world: &World) {
    let task = world.start(world.work()).await;
    let partition = task.execution_id.partition();
    let partitions = &world.backend.settings().partitions;
    let beside = || ExecutionId::solo_in(partition, partitions);
    let granted = world.granted(Submit { execution_id: beside(), ..world.work() }).await;
    let next = |seed| ClaimNext {
        max: 10,
        lanes: vec![LaneShare::new(lane("work"))],
        order: Default::default(),
        capabilities: Default::default(),
        lease_ttl_ms: 30_000,
        seed,
    };
    let done = Complete { next: Some(next(Uuid::now_v7())), ..complete(&task) };
    assert_eq!(world.act(done).await.tasks, []);
    let task = world.act(grant_and_claim(granted)).await;
    let granted = world.granted(Submit { execution_id: beside(), ..world.work() }).await;
    world.pass(MS).await;
    let done = Complete { next: Some(next(Uuid::now_v7())), ..complete(&task) };
    let tasks = world.act(done).await.tasks;
    assert_eq!(tasks.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [granted]);
}
