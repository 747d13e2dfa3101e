//! Bulk operations: one act on many executions.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::{BulkId, ExecutionId, Namespace};
use ff_core::limits;
use ff_core::operation::{
    AdvanceBulk, BulkCreated, BulkWish, CreateBulk, Errand, SetBulk, Settled, Submit, Tick,
};
use ff_core::read::{Filter, GetBulk, ListBulks};
use ff_core::state::{Bulk, BulkAction, BulkState, BulkTargets, PublicState};
use ff_engine::acts::{self, Preview};

use crate::world::{World, code, lane, namespace};

fn on(targets: BulkTargets, action: BulkAction) -> CreateBulk {
    CreateBulk {
        bulk_id: BulkId::mint(),
        namespace: Namespace::default(),
        action,
        targets,
        reason: "not needed".to_owned(),
        matched: 0,
    }
}

/// Holds all executions of a lane.
pub(super) fn on_lane(name: &str) -> CreateBulk {
    on(filter(name), BulkAction::Hold)
}

fn of_lane(name: &str) -> Filter {
    let namespace = Some(Namespace::default());
    Filter { namespace, lanes: vec![lane(name)], ..Filter::default() }
}

fn filter(name: &str) -> BulkTargets {
    BulkTargets::Filter(Box::new(of_lane(name)))
}

async fn bulk(world: &World, bulk_id: BulkId) -> Bulk {
    *world.backend.ask(GetBulk { bulk_id }).await.expect("an answer").expect("a bulk operation")
}

async fn make(world: &World, create: CreateBulk) -> BulkId {
    let bulk_id = create.bulk_id;
    let (created, _) = acts::create_bulk(&*world.backend, create).await.expect("made");
    assert_eq!(created, BulkCreated::Created);
    bulk_id
}

/// Carries it on until it has ended: how many steps that took.
async fn carry_out(world: &World, id: BulkId) -> Bulk {
    for _ in 0..100 {
        acts::carry_on(&*world.backend, id).await.expect("a step");
        let found = bulk(world, id).await;
        if found.state.has_ended() {
            return found;
        }
    }
    panic!("it does not end");
}

async fn submits(world: &World, count: usize) -> Vec<ExecutionId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(world.submit(world.work()).await);
    }
    ids
}

pub async fn a_preview_counts_and_changes_nothing(world: &World) {
    let mut ids = submits(world, 25).await;
    world.submit(world.work_on("other")).await;
    let namespace = Namespace::default();
    let found = acts::preview(&*world.backend, &namespace, &filter("work")).await.unwrap();
    ids.sort_unstable_by_key(|id| std::cmp::Reverse(id.uuid()));
    assert_eq!((found.matched, found.sample.len()), (25, 20));
    assert!(found.sample.iter().all(|id| ids.contains(id)));
    let gone = ExecutionId::new(0, uuid::Uuid::nil());
    let named = BulkTargets::Ids(vec![ids[0], gone]);
    let found = acts::preview(&*world.backend, &namespace, &named).await.unwrap();
    assert_eq!(found, Preview { matched: 1, sample: vec![ids[0]] });
    assert_eq!(world.claim_ids(50).await.len(), 25);
}

pub async fn all_that_a_filter_finds_is_cancelled(world: &World) {
    world.finish(world.work()).await;
    let ids = submits(world, 5).await;
    let other = world.submit(world.work_on("other")).await;
    let id = make(world, on(filter("work"), BulkAction::Cancel)).await;
    let found = carry_out(world, id).await;
    assert_eq!((found.state, found.matched), (BulkState::Completed, 6));
    assert_eq!((found.done, found.failed), (5, 1), "what has ended is refused");
    for id in ids {
        let record = world.describe(id).await;
        assert_eq!(record.state.public_state, PublicState::Cancelled);
        assert_eq!(record.cancellation_reason.as_deref(), Some("not needed"));
    }
    assert_eq!(world.public_state(other).await, PublicState::Waiting);
}

pub async fn every_action_is_carried_out(world: &World) {
    let held = submits(world, 3).await;
    let id = make(world, on(BulkTargets::Ids(held.clone()), BulkAction::Hold)).await;
    assert_eq!(carry_out(world, id).await.done, 3);
    assert_eq!(world.claim_ids(5).await, []);
    let id = make(world, on(BulkTargets::Ids(held.clone()), BulkAction::Release)).await;
    assert_eq!(carry_out(world, id).await.done, 3);
    for task in world.claim(5).await {
        world.complete(&task).await.expect("completed");
    }
    let completed = Filter { states: vec![PublicState::Completed], ..of_lane("work") };
    let completed = BulkTargets::Filter(Box::new(completed));
    let id = make(world, on(completed.clone(), BulkAction::Replay)).await;
    assert_eq!(carry_out(world, id).await.done, 3);
    assert_eq!(world.public_state(held[0]).await, PublicState::Waiting);
    for task in world.claim(5).await {
        world.complete(&task).await.expect("completed");
    }
    let id = make(world, on(completed, BulkAction::Delete)).await;
    assert_eq!(carry_out(world, id).await.done, 3);
    assert_eq!(world.find(held[0]).await, None);
}

pub async fn many_take_several_steps(world: &World) {
    let count = limits::BULK_STEP as usize + 20;
    let submits: Vec<Submit> = (0..count).map(|_| world.work()).collect();
    world.backend.submit_batch(submits).await.expect("a batch");
    let id = make(world, on(filter("work"), BulkAction::Hold)).await;
    acts::carry_on(&*world.backend, id).await.expect("a step");
    let after_one = bulk(world, id).await;
    assert_eq!((after_one.state, after_one.steps), (BulkState::Running, 1));
    assert_eq!(after_one.done, u64::from(limits::BULK_STEP));
    let found = carry_out(world, id).await;
    assert_eq!((found.done, found.failed), (count as u64, 0));
}

pub async fn strangers_are_not_touched(world: &World) {
    let elsewhere = Submit { namespace: namespace("elsewhere"), ..world.work() };
    let stranger = world.submit(elsewhere).await;
    let own = world.submit(world.work()).await;
    let id = make(world, on(BulkTargets::Ids(vec![stranger, own]), BulkAction::Cancel)).await;
    let found = carry_out(world, id).await;
    assert_eq!((found.matched, found.done, found.failed), (1, 1, 1));
    assert_eq!(world.public_state(stranger).await, PublicState::Waiting);
}

pub async fn it_is_paused_and_goes_on_and_ends(world: &World) {
    submits(world, 2).await;
    let id = make(world, on(filter("work"), BulkAction::Hold)).await;
    let wish = |to| SetBulk { bulk_id: id, to };
    assert_eq!(world.act(wish(BulkWish::Pause)).await, Settled::Done);
    assert_eq!(world.act(wish(BulkWish::Pause)).await, Settled::AlreadySatisfied);
    acts::carry_on(&*world.backend, id).await.expect("nothing");
    assert_eq!((bulk(world, id).await.state, bulk(world, id).await.done), (BulkState::Paused, 0));
    assert_eq!(world.act(wish(BulkWish::Resume)).await, Settled::Done);
    assert_eq!(carry_out(world, id).await.done, 2);
    for to in [BulkWish::Pause, BulkWish::Resume, BulkWish::Abort] {
        assert_eq!(code(world.backend.call(wish(to)).await), Code::Terminal);
    }
    let id = make(world, on(filter("work"), BulkAction::Cancel)).await;
    assert_eq!(world.act(SetBulk { bulk_id: id, to: BulkWish::Abort }).await, Settled::Done);
    acts::carry_on(&*world.backend, id).await.expect("nothing");
    assert_eq!((bulk(world, id).await.state, bulk(world, id).await.done), (BulkState::Aborted, 0));
    let missing = SetBulk { bulk_id: BulkId::mint(), to: BulkWish::Abort };
    assert_eq!(code(world.backend.call(missing).await), Code::BulkNotFound);
}

pub async fn a_step_counts_once(world: &World) {
    submits(world, 2).await;
    let bulk_id = make(world, on(filter("work"), BulkAction::Hold)).await;
    let (cursor, is_last) = (None, false);
    let step = AdvanceBulk { bulk_id, steps: 0, done: 1, failed: 1, cursor, is_last };
    assert_eq!(world.act(step.clone()).await, Settled::Done);
    assert_eq!(world.act(step.clone()).await, Settled::AlreadySatisfied);
    let found = bulk(world, bulk_id).await;
    assert_eq!((found.done, found.failed, found.steps), (1, 1, 1));
    let missing = AdvanceBulk { bulk_id: BulkId::mint(), ..step };
    assert_eq!(code(world.backend.call(missing).await), Code::BulkNotFound);
}

pub async fn it_is_told_until_it_has_ended(world: &World) {
    submits(world, 2).await;
    let bulk_id = make(world, on(filter("work"), BulkAction::Hold)).await;
    let tick = Tick { home: None, most: 10 };
    for _ in 0..2 {
        let errands = world.act(tick.clone()).await.errands;
        assert_eq!(errands, [Errand::CarryOn { bulk_id }]);
        assert_eq!(world.act(tick.clone()).await.errands, [], "not at once");
        world.advance(1_000).await;
    }
    carry_out(world, bulk_id).await;
    assert_eq!(world.act(tick.clone()).await.errands, []);
    world.pass(limits::RETENTION_MS.cast_signed()).await;
    assert_eq!(world.backend.ask(GetBulk { bulk_id }).await.unwrap(), None, "it goes");
}

pub async fn made_again_it_is_the_same_or_another(world: &World) {
    submits(world, 3).await;
    let create = on(filter("work"), BulkAction::Hold);
    make(world, create.clone()).await;
    carry_out(world, create.bulk_id).await;
    let again = acts::create_bulk(&*world.backend, create.clone()).await.unwrap();
    assert_eq!(again, (BulkCreated::AlreadySatisfied { matched: 3 }, 3));
    let other = CreateBulk { action: BulkAction::Cancel, ..create };
    let refused = acts::create_bulk(&*world.backend, other).await;
    assert_eq!(code(refused), Code::IdempotencyMismatch);
}

pub async fn a_malformed_one_is_refused(world: &World) {
    let empty = Filter { namespace: Some(Namespace::default()), ..Filter::default() };
    let strange = Filter { namespace: Some(namespace("elsewhere")), ..of_lane("work") };
    let many = (0..65).map(|n| (format!("k{n}"), String::new())).collect();
    let long = Filter { tags: many, ..of_lane("work") };
    let hold = |targets| on(targets, BulkAction::Hold);
    for bad in [
        hold(BulkTargets::Filter(Box::new(empty))),
        hold(BulkTargets::Filter(Box::new(strange))),
        hold(BulkTargets::Filter(Box::new(long))),
        hold(BulkTargets::Ids(Vec::new())),
        hold(BulkTargets::Ids(vec![ExecutionId::new(0, uuid::Uuid::nil()); 1001])),
        CreateBulk { reason: "x".repeat(4097), ..hold(filter("work")) },
    ] {
        let refused = acts::create_bulk(&*world.backend, bad).await;
        assert!(matches!(code(refused), Code::InvalidInput | Code::PayloadTooLarge));
    }
    let page = ListBulks { namespace: Namespace::default(), cursor: None, limit: 5 };
    assert!(world.backend.ask(page).await.unwrap().items.is_empty(), "nothing was made");
}

pub async fn they_are_listed_newest_first_and_told(world: &World) {
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(make(world, on(filter("work"), BulkAction::Hold)).await);
        world.advance(1).await;
    }
    let elsewhere = namespace("elsewhere");
    let of_it = Filter { namespace: Some(elsewhere.clone()), ..of_lane("work") };
    let targets = BulkTargets::Filter(Box::new(of_it));
    make(world, CreateBulk { namespace: elsewhere, ..on(targets, BulkAction::Hold) }).await;
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = ListBulks { namespace: Namespace::default(), cursor, limit: 2 };
        let page = world.backend.ask(page).await.expect("a page");
        found.extend(page.items.into_iter().map(|bulk| bulk.id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    made.reverse();
    assert_eq!(found, made);
    carry_out(world, made[0]).await;
    let log = world.log().await;
    let of_it = log.iter().filter(|e| e.event.subject.to_string() == made[0].to_string());
    let told: Vec<_> = of_it.map(|e| (e.event.kind, e.event.data["state"].clone())).collect();
    let state = |text: &str| (EventKind::BulkChanged, Detail::from(text));
    assert_eq!(told, [state("running"), state("completed")]);
}
