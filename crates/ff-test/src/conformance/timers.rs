//! What time does: the tick over everything due, its parts for one execution, and the watch on it.

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::{DocumentId, ExecutionId, Home, QuotaPolicyId};
use ff_core::limits;
use ff_core::operation::{
    CreateBudget, CreatePendingWaitpoint, Errand, ExpireExecution, Fired, MarkLeaseExpired, NotDue,
    PromoteDelayed, RegisterWorker, Submit, Suspend, SuspendTimeout, Tick, Ticked,
};
use ff_core::policy::Policy;
use ff_core::read::Due;
use ff_core::state::{Attached, DueKind, PublicState};
use tokio::time::timeout;

use crate::fleet::register;
use crate::graphs::FLOW_WORK;
use crate::limits::{budget, cap};
use crate::waits::{pending, suspend, wildcard};
use crate::world::{PATIENCE, World, code, complete, hold};

const TTL: i64 = limits::LEASE_TTL_MS.cast_signed();
const NOT_YET: Fired = Fired::AlreadySatisfied(NotDue::NotYetDue);
const ENDED: Fired = Fired::AlreadySatisfied(NotDue::AlreadyTerminal);

fn tick(most: u32) -> Tick {
    Tick { home: None, most }
}

async fn delayed(world: &World, ms: u64) -> ExecutionId {
    let until = Some(world.now().await.after(ms));
    world.submit(Submit { delay_until: until, ..world.work() }).await
}

/// An execution whose lease has ended and whose slot nobody has given back.
async fn owing(world: &World, quota: QuotaPolicyId) {
    let attached = Attached::new([], Some(quota));
    let policy = Policy { attached, ..Policy::default() };
    let task = world.start(Submit { policy: policy.into(), ..world.work() }).await;
    world.backend.apply(vec![complete(&task).into()]).await.pop().unwrap().unwrap();
}

pub async fn a_tick_counts_what_it_did_by_kind(world: &World) {
    assert_eq!(world.act(tick(10)).await, Ticked::default());
    world.start(world.work_with(r#"{"timeout_policy":{"attempt_timeout_ms":500}}"#)).await;
    world.start(world.work_with(r#"{"timeout_policy":{"execution_deadline_ms":500}}"#)).await;
    world.start(world.work()).await;
    world.finish(world.work_with(r#"{"retention":{"success_ms":500}}"#)).await;
    delayed(world, 500).await;
    let listening = world.start(world.work()).await;
    let soon = Some(world.now().await.after(500));
    world.act(CreatePendingWaitpoint { expires_at: soon, ..pending(&listening, "w") }).await;
    let waiting = world.start(world.work()).await;
    let timeout = Some(SuspendTimeout::For(500));
    world.act(Suspend { timeout, ..suspend(&waiting, wildcard("go")) }).await;
    world.granted(world.work()).await;
    world.budget(CreateBudget { reset_interval_ms: 500, ..budget(&[]) }).await;
    let quota = world.quota(cap(2)).await;
    world.admit(quota).await;
    world.act(RegisterWorker { ttl_ms: 1_000, ..register("w-1") }).await;
    world.act(super::bulks::on_lane("work")).await;
    owing(world, quota).await;
    world.advance(TTL).await;
    let ticked = world.act(tick(20)).await;
    for kind in DueKind::ALL.into_iter().filter(|kind| !FLOW_WORK.contains(kind)) {
        assert!(ticked.fired.contains(&(kind, 1)), "{kind:?} in {ticked:?}");
    }
    assert_eq!(ticked.total(), 13);
}

pub async fn a_tick_goes_oldest_first_and_says_when_there_is_more(world: &World) {
    let third = delayed(world, 30).await;
    let first = delayed(world, 10).await;
    let second = delayed(world, 20).await;
    world.advance(30).await;
    for (promoted, more) in [(first, true), (second, true), (third, false)] {
        assert_eq!(world.public_state(promoted).await, PublicState::Delayed);
        let fired = vec![(DueKind::DelayedPromoter, 1)];
        assert_eq!(world.act(tick(1)).await, Ticked { fired, more, ..Ticked::default() });
        assert_eq!(world.public_state(promoted).await, PublicState::Waiting);
    }
    assert_eq!(world.act(tick(1)).await, Ticked::default());
}

pub async fn one_tick_handles_many(world: &World) {
    let until = Some(world.now().await.after(10));
    let submits =
        (0..limits::BATCH_ITEMS).map(|_| Submit { delay_until: until, ..world.work() }).collect();
    world.backend.submit_batch(submits).await.unwrap();
    world.advance(10).await;
    let fired = vec![(DueKind::DelayedPromoter, 1_000)];
    assert_eq!(
        world.act(tick(limits::TICK_ENTRIES)).await,
        Ticked { fired, more: false, ..Ticked::default() }
    );
    assert_eq!(world.claim(limits::CLAIM_TASKS).await.len(), 1_000);
}

pub async fn what_is_due_after_a_transition_is_more(world: &World) {
    let json = r#"{"timeout_policy":{"execution_deadline_ms":50},"retention":{"expired_ms":0}}"#;
    let id = world.submit(world.work_with(json)).await;
    world.advance(50).await;
    let ticked = world.act(tick(10)).await;
    assert_eq!(
        ticked,
        Ticked { fired: vec![(DueKind::ExecutionDeadline, 1)], more: true, ..Ticked::default() }
    );
    let ticked = world.act(tick(10)).await;
    let Submit { namespace, lane, .. } = world.work();
    let (budget_ids, execution_ids) = (Vec::new(), vec![id]);
    let disown = Errand::Disown { namespace, lane, budget_ids, execution_ids };
    assert_eq!(
        ticked,
        Ticked {
            fired: vec![(DueKind::RetentionTrimmer, 1)],
            more: false,
            errands: vec![disown],
            ..Ticked::default()
        }
    );
    assert_eq!(world.find(id).await, None);
}

pub async fn a_tick_has_a_range(world: &World) {
    for most in [0, limits::TICK_ENTRIES + 1, u32::MAX] {
        assert_eq!(code(world.backend.call(tick(most)).await), Code::InvalidInput, "{most}");
    }
}

pub async fn expire_does_it_for_one_execution(world: &World) {
    let id =
        world.submit(world.work_with(r#"{"timeout_policy":{"execution_deadline_ms":50}}"#)).await;
    let none = world.submit(world.work()).await;
    let expire = |execution_id| ExpireExecution { execution_id };
    assert_eq!(world.act(expire(id)).await, NOT_YET);
    world.advance(50).await;
    assert_eq!(world.act(expire(none)).await, NOT_YET);
    assert_eq!(world.act(expire(id)).await, Fired::Done);
    assert_eq!(world.public_state(id).await, PublicState::Expired);
    assert_eq!(world.act(expire(id)).await, ENDED);
    assert_eq!(world.history(id).await, [EventKind::Submitted, EventKind::Expired]);
}

pub async fn promote_does_it_for_one_execution(world: &World) {
    let id = delayed(world, 50).await;
    let promote = |execution_id| PromoteDelayed { execution_id };
    assert_eq!(world.act(promote(id)).await, NOT_YET);
    let held = delayed(world, 50).await;
    world.act(hold(held)).await;
    world.advance(50).await;
    assert_eq!(world.act(promote(held)).await, NOT_YET, "a hold is over its delay");
    assert_eq!(world.act(promote(id)).await, Fired::Done);
    assert_eq!(world.public_state(id).await, PublicState::Waiting);
    assert_eq!(world.act(promote(id)).await, NOT_YET);
    let task = world.claim_one().await;
    world.complete(&task).await.unwrap();
    assert_eq!(world.act(promote(id)).await, ENDED);
}

pub async fn mark_lease_expired_does_it_for_one_execution(world: &World) {
    let task = world.start(world.work()).await;
    let mark = || MarkLeaseExpired { execution_id: task.execution_id };
    world.advance(TTL - 1).await;
    assert_eq!(world.act(mark()).await, NOT_YET);
    world.advance(1).await;
    assert_eq!(world.act(mark()).await, Fired::Done);
    assert_eq!(world.describe(task.execution_id).await.lease_reclaim_count, 1);
    assert_eq!(world.act(mark()).await, NOT_YET);
    let task = world.claim_one().await;
    world.complete(&task).await.unwrap();
    assert_eq!(world.act(mark()).await, ENDED);
}

pub async fn a_tick_of_one_home_leaves_the_others(world: &World) {
    let every = |ms| CreateBudget { reset_interval_ms: ms, ..budget(&[]) };
    let id = world.budget(every(500)).await;
    let home = DocumentId::budget(id, &world.backend.settings().partitions).home;
    delayed(world, 500).await;
    world.admit(world.quota(cap(1)).await).await;
    let due = world.backend.ask(Due).await.unwrap().items;
    assert_eq!(due.iter().map(|(_, at)| *at).min(), Some(world.now().await.after(500)));
    world.advance(TTL).await;
    let ticked = world.act(Tick { home: Some(home.clone()), most: 10 }).await;
    assert_eq!(ticked.fired, [(DueKind::BudgetReset, 1)]);
    assert_eq!(world.act(Tick { home: Some(home), most: 10 }).await.total(), 0);
    let rest = world.act(tick(10)).await;
    let fired = |kind| rest.fired.contains(&(kind, 1));
    assert!(fired(DueKind::DelayedPromoter) && fired(DueKind::QuotaReconciler), "{rest:?}");
    assert_eq!(rest.total(), 2);
}

pub async fn a_tick_of_a_home_that_does_not_exist_is_refused(world: &World) {
    for home in ["{fp:4095}", "{b:4095}", "{q:4095}"] {
        let home = Some(home.parse().unwrap());
        let refused = world.backend.call(Tick { home, most: 10 }).await;
        assert_eq!(code(refused), Code::InvalidInput);
    }
    for home in ["{w:nobody}", "{g}"] {
        let home = Some(home.parse().unwrap());
        assert_eq!(world.act(Tick { home, most: 10 }).await.total(), 0);
    }
}

pub async fn due_tells_the_earliest_time(world: &World) {
    let now = world.now().await;
    let dues = world.backend.ask(Due).await.unwrap();
    assert_eq!((dues.items.len(), dues.now), (0, now));
    for ms in [500, 100, 900] {
        delayed(world, ms).await;
    }
    let earliest = |items: Vec<(Option<Home>, _)>| items.into_iter().map(|(_, at)| at).min();
    let dues = world.backend.ask(Due).await.unwrap();
    assert_eq!(earliest(dues.items), Some(now.after(100)));
    world.pass(100).await;
    let dues = world.backend.ask(Due).await.unwrap();
    assert_eq!((earliest(dues.items), dues.now), (Some(now.after(500)), now.after(100)));
}

pub async fn a_sooner_timer_is_told_at_once(world: &World) {
    let now = world.now().await;
    let sooner = |known| timeout(PATIENCE, world.backend.sooner_timer(known, PATIENCE));
    let (told, _) = tokio::join!(sooner(None), delayed(world, 500));
    assert_eq!(told.expect("told in time"), Ok(Some(now.after(500))));
    let (told, _) = tokio::join!(sooner(Some(now.after(500))), async {
        delayed(world, 900).await;
        delayed(world, 100).await
    });
    assert_eq!(told.expect("told in time"), Ok(Some(now.after(100))));
    let none = world.backend.sooner_timer(Some(now.after(100)), Duration::ZERO).await;
    assert_eq!(none, Ok(None), "as soon as the known one is not sooner");
}
