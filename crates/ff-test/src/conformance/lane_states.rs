//! What an operator says of a lane: who may submit, who may claim, and how priorities age.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::{ExecutionId, Namespace};
use ff_core::limits;
use ff_core::operation::{
    ChangePriority, Claim, ClaimNext, Complete, LaneOrder, LaneSet, LaneShare, RegisterWorker,
    SetLane, Submit, Submitted,
};
use ff_core::read::{Cause, Filter, ListLanes, ReadState, Search};
use ff_core::state::{Attached, BlockingReason, EligibilityState, LaneState, PublicState};
use tokio::time::timeout;
use uuid::Uuid;

use crate::fleet::{register, set_ageing, set_lane};
use crate::grants::{GRANT_MS, issue_grant};
use crate::world::{PATIENCE, World, cancel, code, complete, delay, lane, namespace, renew};

async fn set(world: &World, state: LaneState) -> LaneSet {
    world.act(set_lane("work", state)).await
}

async fn prioritised(world: &World, priority: i64) -> ExecutionId {
    world.submit(Submit { priority, ..world.work() }).await
}

pub async fn a_paused_lane_takes_submits_and_gives_nothing(world: &World) {
    set(world, LaneState::Paused).await;
    let id = world.submit(world.work()).await;
    assert_eq!(world.claim_ids(1).await, []);
    set(world, LaneState::Active).await;
    assert_eq!(world.claim_ids(1).await, [id]);
}

pub async fn a_draining_lane_is_emptied(world: &World) {
    let id = world.submit(world.work()).await;
    set(world, LaneState::Draining).await;
    assert_eq!(code(world.backend.call(world.work()).await), Code::LaneNotAccepting);
    assert_eq!(world.claim_ids(2).await, [id]);
}

pub async fn a_disabled_lane_does_neither(world: &World) {
    world.submit(world.work()).await;
    set(world, LaneState::Disabled).await;
    assert_eq!(code(world.backend.call(world.work()).await), Code::LaneNotAccepting);
    assert_eq!(world.claim_ids(1).await, []);
}

pub async fn running_work_is_untouched(world: &World) {
    let task = world.start(world.work()).await;
    set(world, LaneState::Disabled).await;
    world.act(renew(&task)).await;
    world.act(complete(&task)).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Completed);
}

pub async fn a_repeated_submit_is_known_whatever_its_lane_takes(world: &World) {
    let (keyed, named) = (world.work_keyed("k"), world.work());
    let ids = [world.submit(keyed.clone()).await, world.submit(named.clone()).await];
    set(world, LaneState::Disabled).await;
    for (submit, id) in [keyed, named].into_iter().zip(ids) {
        match world.act(submit).await {
            Submitted::Duplicate { execution_id, .. } => assert_eq!(execution_id, id),
            other => panic!("{other:?}"),
        }
    }
}

pub async fn other_lanes_and_namespaces_go_on(world: &World) {
    set(world, LaneState::Disabled).await;
    let other = world.submit(world.work_on("other")).await;
    let elsewhere = Submit { namespace: namespace("other"), ..world.work() };
    world.submit(elsewhere).await;
    let lanes = ["work", "other"].map(|name| LaneShare::new(lane(name))).to_vec();
    let claim = Claim { lanes, ..world.claim_request(5) };
    for order in [LaneOrder::Ordered, LaneOrder::Weighted] {
        let claim = Claim { order, ..claim.clone() };
        let tasks = world.claim_as(claim).await;
        let ids: Vec<_> = tasks.iter().map(|task| task.execution_id).collect();
        match order {
            LaneOrder::Ordered => assert_eq!(ids, [other]),
            LaneOrder::Weighted => assert_eq!(ids, []),
        }
    }
    let claim = Claim { namespace: namespace("other"), ..world.claim_request(1) };
    assert_eq!(world.claim_as(claim).await.len(), 1);
}

pub async fn a_lane_that_opens_wakes_those_who_wait(world: &World) {
    for closed in [LaneState::Paused, LaneState::Disabled] {
        set(world, LaneState::Active).await;
        let id = world.submit(world.work()).await;
        set(world, closed).await;
        let waiting = world.backend.claim(world.claim_request(1), PATIENCE);
        let (tasks, _) = tokio::join!(timeout(PATIENCE, waiting), set(world, LaneState::Active));
        let tasks = tasks.expect("in time").unwrap();
        assert_eq!(tasks[0].execution_id, id);
    }
}

pub async fn a_complete_that_claims_on_passes_a_closed_lane_over(world: &World) {
    let task = world.start(world.work()).await;
    world.submit(world.work()).await;
    set(world, LaneState::Paused).await;
    let next = ClaimNext {
        max: 1,
        lanes: vec![LaneShare::new(lane("work"))],
        order: LaneOrder::default(),
        capabilities: Default::default(),
        lease_ttl_ms: limits::LEASE_TTL_MS,
        seed: Uuid::now_v7(),
    };
    let completed = world.act(Complete { next: Some(next), ..complete(&task) }).await;
    assert_eq!(completed.tasks, []);
}

pub async fn what_waits_in_a_closed_lane_says_so(world: &World) {
    let running = world.start(world.work()).await;
    set(world, LaneState::Paused).await;
    let waiting = world.submit(world.work()).await;
    let state = world.describe(waiting).await.state;
    assert_eq!(state.eligibility_state, EligibilityState::BlockedByLaneState);
    assert_eq!(state.blocking_reason, BlockingReason::PausedByOperator);
    assert_eq!(state.public_state, PublicState::Waiting);
    let read = world.backend.ask(ReadState { execution_id: waiting }).await.unwrap();
    assert_eq!(read, Some(state.clone()));
    let search = Search { filter: Filter::default(), cursor: None, limit: 10 };
    let found = world.backend.ask(search).await.unwrap().items;
    let found = found.into_iter().find(|record| record.execution_id == waiting);
    assert_eq!(found.map(|record| record.state), Some(state));
    let told = world.backend.explain(waiting).await.unwrap().unwrap();
    assert_eq!((told.cause, told.cause.as_str()), (Cause::LanePaused, "lane_paused"));
    assert_eq!(told.evidence["lane_state"], "paused");
    let active = world.describe(running.execution_id).await.state;
    assert_eq!(active.eligibility_state, EligibilityState::NotApplicable);
    set(world, LaneState::Draining).await;
    let state = world.describe(waiting).await.state;
    assert_eq!(state.eligibility_state, EligibilityState::EligibleNow, "it may be claimed");
}

pub async fn a_change_leaves_what_is_not_named(world: &World) {
    let attached = Attached::default();
    let lane_set = |state, priority_ageing_ms, revision| {
        let attached = attached.clone();
        LaneSet { state, priority_ageing_ms, attached, revision }
    };
    let paused = LaneState::Paused;
    assert_eq!(set(world, LaneState::Active).await, lane_set(LaneState::Active, 0, 0), "as ever");
    assert_eq!(set(world, paused).await, lane_set(paused, 0, 1));
    assert_eq!(world.act(set_ageing(5)).await, lane_set(paused, 5, 2));
    assert_eq!(set(world, paused).await, lane_set(paused, 5, 2), "no change");
    let found = world.lane("work").await;
    assert_eq!((found.state, found.priority_ageing_ms, found.revision), (paused, 5, 2));
    let long = SetLane { priority_ageing_ms: Some(limits::DURATION_MAX_MS + 1), ..set_ageing(0) };
    assert_eq!(code(world.backend.call(long).await), Code::InvalidInput);
}

/// It is of the state that it was given with.
pub async fn a_lane_tells_why_it_is_closed(world: &World) {
    let say = async |state, reason: &str| {
        world.act(SetLane { reason: reason.to_owned(), ..set_lane("work", state) }).await;
        world.lane("work").await.reason
    };
    let (active, paused, draining) = (LaneState::Active, LaneState::Paused, LaneState::Draining);
    let id = world.submit(world.work()).await;
    assert_eq!(say(paused, "deploy").await, "deploy");
    let told = world.backend.explain(id).await.unwrap().unwrap();
    assert_eq!(told.evidence["lane_reason"], "deploy");
    assert_eq!(told.summary, "It is ready; its lane \"work\" is paused (deploy).");
    assert_eq!(say(paused, "").await, "deploy", "nothing new was said");
    world.act(SetLane { reason: "slower".to_owned(), ..set_ageing(5) }).await;
    assert_eq!(world.lane("work").await.reason, "deploy", "that was about something else");
    assert_eq!(say(paused, "a long deploy").await, "a long deploy");
    assert_eq!(say(draining, "").await, "", "why it was paused is over");
    assert_eq!(say(draining, "moved").await, "moved");
    assert_eq!(say(active, "done").await, "");
    assert_eq!(say(paused, "").await, "");
    let told = world.backend.explain(id).await.unwrap().unwrap();
    assert_eq!(told.evidence.get("lane_reason"), None);
    assert_eq!(told.summary, "It is ready; its lane \"work\" is paused.");
}

pub async fn a_change_of_a_lane_is_one_event(world: &World) {
    set(world, LaneState::Paused).await;
    set(world, LaneState::Paused).await;
    world.act(set_ageing(7)).await;
    let log: Vec<_> = world.log().await.into_iter().map(|envelope| envelope.event).collect();
    assert!(log.iter().all(|event| event.kind == EventKind::LaneChanged));
    let [first, second] = &log[..] else { panic!("{log:?}") };
    assert_eq!(first.data.get("state"), Some(&Detail::Text("paused".to_owned())));
    assert_eq!(second.data.get("priority_ageing_ms"), Some(&Detail::Number(7)));
    assert_eq!((first.subject.to_string(), first.seq, second.seq), ("work".to_owned(), 1, 2));
}

pub async fn waiting_is_worth_priority_where_priorities_age(world: &World) {
    world.act(set_ageing(1_000)).await;
    let old = prioritised(world, 0).await;
    world.advance(1_500).await;
    let one = prioritised(world, 1).await;
    let two = prioritised(world, 2).await;
    world.advance(1_600).await;
    let late = prioritised(world, 3).await;
    assert_eq!(world.claim_ids(9).await, [two, old, late, one]);
}

pub async fn a_change_of_ageing_holds_for_what_becomes_eligible_afterwards(world: &World) {
    let strict = prioritised(world, 1).await;
    let until = Some(world.now().await.after(10));
    let delayed = world.submit(Submit { delay_until: until, priority: 2, ..world.work() }).await;
    world.advance(1).await;
    world.act(set_ageing(1)).await;
    let aged = prioritised(world, 9_000).await;
    world.pass(10).await;
    // A strict level is worth more than any age.
    assert_eq!(world.claim_ids(9).await, [strict, aged, delayed]);
}

pub async fn a_place_in_the_queue_is_kept_over_a_grant(world: &World) {
    world.act(set_ageing(1_000)).await;
    let first = prioritised(world, 1).await;
    let second = prioritised(world, 0).await;
    world.act(issue_grant(first)).await;
    world.act(set_ageing(0)).await;
    world.pass(GRANT_MS.cast_signed()).await;
    let third = prioritised(world, 1).await;
    assert_eq!(world.claim_ids(9).await, [third, first, second]);
}

pub async fn a_new_priority_is_weighed_as_the_lane_weighs(world: &World) {
    world.act(set_ageing(1_000)).await;
    let first = prioritised(world, 0).await;
    world.advance(2_500).await;
    let second = prioritised(world, 0).await;
    world.act(ChangePriority { execution_id: second, priority: 2 }).await;
    assert_eq!(world.claim_ids(9).await, [first, second]);
    let third = prioritised(world, 0).await;
    world.advance(2_500).await;
    let fourth = prioritised(world, 0).await;
    world.act(ChangePriority { execution_id: fourth, priority: 3 }).await;
    assert_eq!(world.claim_ids(9).await, [fourth, third]);
}

pub async fn a_lane_tells_what_it_holds(world: &World) {
    world.act(register("w-1")).await;
    world.act(RegisterWorker { lanes: vec![lane("else")], ..register("w-2") }).await;
    world.finish(world.work()).await;
    let task = world.start(world.work()).await;
    let resumed = world.start(world.work()).await;
    world.act(delay(&resumed, 0)).await;
    world.advance(50).await;
    world.submit(world.work()).await;
    world.submit(Submit { held: true, ..world.work() }).await;
    let until = Some(world.now().await.after(1_000));
    world.submit(Submit { delay_until: until, ..world.work() }).await;
    let found = world.lane("work").await;
    let depth: Vec<_> = found.depth.iter().collect();
    assert!(depth.contains(&(PublicState::Delayed, 1)), "{depth:?}");
    assert!(depth.contains(&(PublicState::Active, 1)), "{depth:?}");
    assert_eq!(found.depth.of(PublicState::Waiting), 3, "{depth:?}");
    let workers = "w-1, and the one that claims";
    assert_eq!((found.running, found.live_workers), (1, 2), "{workers}");
    assert_eq!(found.oldest_age_ms, Some(50), "since the delay of nothing");
    world.act(complete(&task)).await;
    let empty = world.lane("nothing").await;
    assert_eq!((empty.state, empty.running, empty.oldest_age_ms), (LaneState::Active, 0, None));
    assert_eq!(empty.depth.iter().count(), 0);
}

pub async fn a_lane_without_work_is_forgotten(world: &World) {
    let names = || async {
        let (namespace, cursor) = (Namespace::default(), None);
        let page = world
            .backend
            .ask(ListLanes { namespace, within: None, cursor, limit: 50 })
            .await
            .unwrap();
        page.items.into_iter().map(|item| item.lane.to_string()).collect::<Vec<_>>()
    };
    let waits = world.submit(world.work_on("a: lane")).await;
    world.submit(world.work_on("b/:lane")).await;
    let lanes = vec![LaneShare::new(lane("b/:lane"))];
    let task = world.claim_as(Claim { lanes, ..world.claim_request(1) }).await.remove(0);
    let found = world.lane("b/:lane").await;
    assert_eq!((found.running, found.depth.iter().count()), (1, 1));
    assert_eq!(names().await, ["a: lane", "b/:lane"]);
    world.act(cancel(waits)).await;
    assert_eq!(world.lane("a: lane").await.depth.iter().count(), 0);
    world.act(complete(&task)).await;
    assert_eq!(world.lane("b/:lane").await.depth.iter().count(), 0);
    assert_eq!(names().await, ["b/:lane"], "a worker serves it");
}

pub async fn lanes_are_listed_by_name_in_pages(world: &World) {
    let long = "a name that is longer than all that fits into a place";
    world.submit(world.work_on("work")).await;
    world.submit(world.work_on(&format!("{long} b"))).await;
    world.act(set_lane(&format!("{long} a"), LaneState::Paused)).await;
    world.act(set_lane("work", LaneState::Paused)).await;
    world.act(RegisterWorker { lanes: vec![lane("mail")], ..register("w-1") }).await;
    world.submit(Submit { namespace: namespace("other"), ..world.work_on("hidden") }).await;
    let all = [format!("{long} a"), format!("{long} b"), "mail".to_owned(), "work".to_owned()];
    for limit in 1..=5 {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let question =
                ListLanes { namespace: Namespace::default(), within: None, cursor, limit };
            let page = world.backend.ask(question).await.unwrap();
            seen.extend(page.items.into_iter().map(|item| item.lane.to_string()));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all, "{limit} a page");
    }
    let within = Some(vec![lane("work"), lane("unknown"), lane("mail")]);
    let question = ListLanes { namespace: Namespace::default(), within, cursor: None, limit: 50 };
    let found = world.backend.ask(question).await.unwrap().items;
    assert_eq!(found.iter().map(|item| item.lane.as_str()).collect::<Vec<_>>(), ["mail", "work"]);
}
