//! Routes: what no live worker can run is blocked after a while, and let go once one can.

use ff_core::backend::BackendExt;
use ff_core::event::EventKind;
use ff_core::id::{ExecutionId, Namespace};
use ff_core::limits;
use ff_core::operation::{
    Claim, CreateBudget, CreateFlow, CreateQuotaPolicy, IssueReclaimGrant, MarkWorkerDead,
    RegisterWorker, Submit,
};
use ff_core::read::{
    ListFleets, ListNamespaces, ListOffers, ListQueued, ListRoutes, ListUnrouted, Nearest, Offer,
    Unrouted,
};
use ff_core::state::{BlockingReason, EligibilityState, LaneState, PublicState, Route};
use ff_engine::RouteCheck;
use tokio::time::timeout;

use crate::fleet::{TTL, block, deregister, drain, mark_dead, register, set_lane};
use crate::grants::issue_reclaim;
use crate::graphs::create_flow;
use crate::limits::{budget, cap, quota};
use crate::world::{PATIENCE, World, cancel, capabilities, lane, namespace, revoke};

const ROUTE: BlockingReason = BlockingReason::WaitingForCapableWorker;
const A_WHILE: i64 = limits::ROUTE_PATIENCE_MS.cast_signed();
const BATCH: usize = limits::ROUTE_BATCH as usize;

/// An engine that looks at routes, and its memory.
#[derive(Default)]
struct Engine(RouteCheck);

impl Engine {
    /// How many a round has blocked and let go.
    async fn round(&mut self, world: &World) -> (u32, u32) {
        let checked = self.0.round(&*world.backend).await.expect("a round");
        (checked.blocked, checked.let_go)
    }

    /// Rounds until nothing is left to do at once.
    async fn rounds(&mut self, world: &World) -> (u32, u32) {
        let mut all = (0, 0);
        loop {
            let checked = self.0.round(&*world.backend).await.expect("a round");
            all = (all.0 + checked.blocked, all.1 + checked.let_go);
            if checked.next_in_ms != Some(0) {
                return all;
            }
        }
    }
}

/// A new engine looks, and again after a while.
async fn check(world: &World) -> (u32, u32) {
    let mut engine = Engine::default();
    engine.round(world).await;
    world.advance(A_WHILE).await;
    engine.rounds(world).await
}

fn able(name: &str, tokens: &[&str]) -> RegisterWorker {
    RegisterWorker { capabilities: capabilities(tokens), ..register(name) }
}

async fn eligibility(world: &World, id: ExecutionId) -> EligibilityState {
    world.describe(id).await.state.eligibility_state
}

async fn blocked(world: &World, tokens: &[&str]) -> ExecutionId {
    let id = world.submit(world.needing(tokens)).await;
    world.act(block(id, ROUTE)).await;
    id
}

fn route(lane_name: &str, tokens: &[&str]) -> Route {
    let (namespace, lane) = (Namespace::default(), lane(lane_name));
    Route { namespace, lane, required: capabilities(tokens) }
}

async fn unrouted(world: &World, question: ListUnrouted) -> Vec<Unrouted> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = world.backend.ask(ListUnrouted { cursor, ..question.clone() }).await.unwrap();
        found.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return found;
        }
    }
}

fn all_unrouted() -> ListUnrouted {
    let namespace = Namespace::default();
    ListUnrouted { namespace, lane: None, behind: None, cursor: None, limit: 50 }
}

pub async fn what_nobody_can_run_is_blocked_after_a_while(world: &World) {
    let id = world.submit(world.needing(&["gpu", "eu"])).await;
    world.act(able("w-1", &["eu"])).await;
    let mut engine = Engine::default();
    let first = engine.0.round(&*world.backend).await.unwrap();
    assert_eq!((first.blocked, first.next_in_ms), (0, Some(limits::ROUTE_LOOK_MS)));
    world.advance(A_WHILE - 1).await;
    assert_eq!(engine.round(world).await, (0, 0));
    assert_eq!(eligibility(world, id).await, EligibilityState::EligibleNow);
    world.advance(1).await;
    assert_eq!(engine.round(world).await, (1, 0));
    let state = world.describe(id).await.state;
    assert_eq!(state.eligibility_state, EligibilityState::BlockedByRoute);
    assert_eq!((state.blocking_reason, state.public_state), (ROUTE, PublicState::Waiting));
    assert_eq!(state.blocking_detail, "\"w-1\" is nearest and lacks gpu");
    assert_eq!(world.history(id).await, [EventKind::Submitted, EventKind::Blocked]);
    assert_eq!(engine.round(world).await, (0, 0), "it is left alone");
    // What comes later to a route that is forgotten has its own while.
    let later = world.submit(world.needing(&["gpu", "eu"])).await;
    assert_eq!(engine.round(world).await, (0, 0));
    assert_eq!(eligibility(world, later).await, EligibilityState::EligibleNow);
}

pub async fn what_requires_nothing_is_never_blocked(world: &World) {
    let id = world.submit(world.work()).await;
    assert_eq!(check(world).await, (0, 0));
    assert_eq!(eligibility(world, id).await, EligibilityState::EligibleNow);
}

pub async fn only_live_workers_of_the_lane_count(world: &World) {
    let elsewhere = namespace("elsewhere");
    world.act(able("w-1", &["gpu"])).await;
    world.act(able("w-2", &["cpu", "eu"])).await;
    let other_lane = RegisterWorker { lanes: vec![lane("other")], ..able("w-3", &["gpu", "eu"]) };
    world.act(other_lane).await;
    world.act(RegisterWorker { namespace: elsewhere, ..able("w-4", &["gpu", "eu"]) }).await;
    for name in ["w-5", "w-6", "w-7"] {
        world.act(able(name, &["gpu", "eu"])).await;
    }
    let id = world.submit(world.needing(&["gpu", "eu"])).await;
    let both = world.submit(world.needing(&["gpu"])).await;
    assert_eq!(check(world).await, (0, 0), "three can run it");
    world.act(drain("w-5")).await;
    world.act(mark_dead("w-6")).await;
    assert_eq!(check(world).await, (0, 0), "one can");
    world.advance(TTL.cast_signed()).await;
    for name in ["w-1", "w-2"] {
        world.act(able(name, if name == "w-1" { &["gpu"] } else { &["cpu", "eu"] })).await;
    }
    assert_eq!(check(world).await, (1, 0), "it was silent too long");
    assert_eq!(eligibility(world, id).await, EligibilityState::BlockedByRoute);
    assert_eq!(eligibility(world, both).await, EligibilityState::EligibleNow);
}

pub async fn a_worker_in_between_begins_the_while_anew(world: &World) {
    let id = world.submit(world.needing(&["gpu"])).await;
    let mut engine = Engine::default();
    engine.round(world).await;
    world.advance(A_WHILE - 1).await;
    world.act(able("w-1", &["gpu"])).await;
    assert_eq!(engine.round(world).await, (0, 0));
    world.act(drain("w-1")).await;
    world.advance(1).await;
    assert_eq!(engine.round(world).await, (0, 0));
    assert_eq!(eligibility(world, id).await, EligibilityState::EligibleNow);
    world.advance(A_WHILE).await;
    assert_eq!(engine.round(world).await, (1, 0));
}

/// Nothing of the engine has looked while there was a worker.
pub async fn a_worker_that_came_and_went_begins_the_while_anew(world: &World) {
    let id = world.submit(world.needing(&["gpu"])).await;
    let mut engine = Engine::default();
    engine.round(world).await;
    world.advance(A_WHILE).await;
    assert_eq!(engine.round(world).await, (1, 0));
    world.act(able("w-1", &["gpu"])).await;
    world.act(deregister("w-1")).await;
    assert_eq!(engine.round(world).await, (0, 0));
    assert_eq!(eligibility(world, id).await, EligibilityState::EligibleNow);
    world.advance(A_WHILE - 1).await;
    assert_eq!(engine.round(world).await, (0, 0));
    world.advance(1).await;
    assert_eq!(engine.round(world).await, (1, 0));
}

/// Another engine may have seen a worker meanwhile.
pub async fn who_has_not_looked_for_long_begins_the_while_anew(world: &World) {
    world.submit(world.needing(&["gpu"])).await;
    let mut engine = Engine::default();
    engine.round(world).await;
    world.act(able("w-1", &["gpu"])).await;
    world.act(deregister("w-1")).await;
    world.advance(A_WHILE + 1).await;
    assert_eq!(engine.round(world).await, (0, 0));
    world.advance(A_WHILE).await;
    assert_eq!(engine.round(world).await, (1, 0));
}

pub async fn a_refresh_that_covers_lets_go_at_once(world: &World) {
    let id = blocked(world, &["gpu"]).await;
    world.act(able("w-1", &[])).await;
    assert_eq!(eligibility(world, id).await, EligibilityState::BlockedByRoute);
    world.act(able("w-1", &["gpu", "eu"])).await;
    assert_eq!(eligibility(world, id).await, EligibilityState::EligibleNow);
    world.act(block(id, ROUTE)).await;
    world.act(able("w-1", &["gpu", "eu"])).await;
    assert_eq!(eligibility(world, id).await, EligibilityState::EligibleNow, "the same again");
    world.act(drain("w-1")).await;
    world.act(block(id, ROUTE)).await;
    world.act(able("w-1", &["gpu"])).await;
    assert_eq!(eligibility(world, id).await, EligibilityState::BlockedByRoute, "it drains");
}

pub async fn what_is_let_go_is_claimed_by_who_came(world: &World) {
    let id = blocked(world, &["gpu"]).await;
    let claim = Claim { capabilities: capabilities(&["gpu"]), ..world.claim_request(1) };
    let tasks = timeout(PATIENCE, world.backend.claim(claim, PATIENCE)).await.expect("in time");
    assert_eq!(tasks.unwrap()[0].execution_id, id);
}

pub async fn a_worker_lets_go_all_that_it_can_run(world: &World) {
    let mut covered = Vec::new();
    for tokens in [&["gpu"][..], &["gpu", "eu"], &["eu"]] {
        for _ in 0..40 {
            covered.push(world.needing(tokens));
        }
    }
    let beyond = ["us", "uk", "de"].map(|token| world.needing(&[token, "gpu"]));
    let elsewhere = Submit { lane: lane("other"), ..world.needing(&["gpu"]) };
    let ids = |submits: &[Submit]| submits.iter().map(|s| s.execution_id).collect::<Vec<_>>();
    let (covered_ids, beyond_ids) = (ids(&covered), ids(&beyond));
    let stays = elsewhere.execution_id;
    covered.extend(beyond);
    covered.push(elsewhere);
    world.backend.submit_batch(covered).await.unwrap();
    assert_eq!(check(world).await, (124, 0));
    world.act(able("w-1", &["gpu", "eu"])).await;
    for id in covered_ids {
        assert_eq!(eligibility(world, id).await, EligibilityState::EligibleNow);
    }
    for id in beyond_ids.into_iter().chain([stays]) {
        assert_eq!(eligibility(world, id).await, EligibilityState::BlockedByRoute);
    }
}

pub async fn a_worker_lets_go_as_much_as_it_can_claim(world: &World) {
    for count in [limits::CLAIM_TASKS, 10] {
        let submits = (0..count).map(|_| world.needing(&["gpu"])).collect();
        world.backend.submit_batch(submits).await.unwrap();
    }
    assert_eq!(check(world).await, (limits::CLAIM_TASKS + 10, 0));
    world.act(able("w-1", &["gpu"])).await;
    assert_eq!(unrouted(world, all_unrouted()).await.len(), 10);
    assert_eq!(Engine::default().rounds(world).await, (0, 10), "the rest is the engine's");
}

pub async fn many_are_blocked_and_let_go_in_batches(world: &World) {
    let submits = (0..2 * BATCH + 10).map(|_| world.needing(&["gpu"])).collect();
    world.backend.submit_batch(submits).await.unwrap();
    let mut engine = Engine::default();
    engine.round(world).await;
    world.advance(A_WHILE).await;
    for expected in [BATCH, BATCH, 10, 0] {
        assert_eq!(engine.round(world).await, (expected as u32, 0));
    }
    // The registration is written, and whoever made it stops there.
    world.command(able("w-1", &["gpu"]).into()).await.unwrap();
    for expected in [BATCH, BATCH, 10, 0] {
        assert_eq!(engine.round(world).await, (0, expected as u32));
    }
}

/// A worker that registers between the engine's look and its block has not found it.
pub async fn a_block_that_comes_too_late_is_taken_back(world: &World) {
    world.act(able("w-1", &["gpu"])).await;
    let late = blocked(world, &["gpu"]).await;
    let other = blocked(world, &["eu"]).await;
    assert_eq!(Engine::default().round(world).await, (0, 1));
    assert_eq!(eligibility(world, late).await, EligibilityState::EligibleNow);
    assert_eq!(eligibility(world, other).await, EligibilityState::BlockedByRoute);
}

/// Each engine stops after one round: the next goes on.
pub async fn whoever_stops_leaves_the_rest_to_the_next(world: &World) {
    let submits = (0..BATCH + 10).map(|_| world.needing(&["gpu"])).collect();
    world.backend.submit_batch(submits).await.unwrap();
    let (mut first, mut second) = (Engine::default(), Engine::default());
    first.round(world).await;
    second.round(world).await;
    world.advance(A_WHILE).await;
    assert_eq!(first.round(world).await, (BATCH as u32, 0));
    drop(first);
    assert_eq!(second.round(world).await, (10, 0));
    world.command(able("w-1", &["gpu"]).into()).await.unwrap();
    assert_eq!(Engine::default().round(world).await, (0, BATCH as u32));
    assert_eq!(second.round(world).await, (0, 10));
    assert_eq!(unrouted(world, all_unrouted()).await, []);
}

pub async fn what_was_claimed_meanwhile_is_not_blocked(world: &World) {
    let id = world.submit(world.needing(&["gpu"])).await;
    let mut engine = Engine::default();
    engine.round(world).await;
    world.advance(A_WHILE).await;
    let claim = Claim { capabilities: capabilities(&["gpu"]), ..world.claim_request(1) };
    assert_eq!(world.claim_as(claim).await[0].execution_id, id);
    assert_eq!(engine.round(world).await, (0, 0));
    assert_eq!(world.public_state(id).await, PublicState::Active);
}

pub async fn time_alone_lets_nothing_go(world: &World) {
    let id = blocked(world, &["gpu"]).await;
    world.pass(3_600_000).await;
    assert_eq!(eligibility(world, id).await, EligibilityState::BlockedByRoute);
    assert_eq!(world.history(id).await.len(), 2);
}

pub async fn a_reclaim_grant_lets_go_what_its_worker_can_run(world: &World) {
    let id = world.submit(world.needing(&["gpu"])).await;
    let claim = Claim { capabilities: capabilities(&["gpu"]), ..world.claim_request(1) };
    world.claim_as(claim).await;
    world.act(revoke(id)).await;
    world.act(block(id, ROUTE)).await;
    world.act(issue_reclaim(id)).await;
    assert_eq!(eligibility(world, id).await, EligibilityState::BlockedByRoute, "it cannot");
    let able = IssueReclaimGrant { capabilities: capabilities(&["gpu"]), ..issue_reclaim(id) };
    world.act(able).await;
    assert_eq!(eligibility(world, id).await, EligibilityState::EligibleNow);
    assert!(world.describe(id).await.grant.is_some());
}

pub async fn a_paused_lane_is_looked_at_all_the_same(world: &World) {
    world.act(set_lane("work", LaneState::Paused)).await;
    let id = world.submit(world.needing(&["gpu"])).await;
    assert_eq!(check(world).await, (1, 0));
    assert_eq!(eligibility(world, id).await, EligibilityState::BlockedByRoute);
}

pub async fn routes_are_listed_while_something_stands_in_their_queues(world: &World) {
    let gpu = world.submit(world.needing(&["gpu"])).await;
    let more = world.submit(Submit { priority: 5, ..world.needing(&["gpu"]) }).await;
    let eu = world.submit(Submit { lane: lane("other"), ..world.needing(&["eu"]) }).await;
    world.submit(world.work()).await;
    let listed = async || {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = world.backend.ask(ListRoutes { cursor, limit: 1 }).await.unwrap();
            found.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                found.sort();
                return found;
            }
        }
    };
    assert_eq!(listed().await, [route("other", &["eu"]), route("work", &["gpu"])]);
    let queued = async |route, limit| world.backend.ask(ListQueued { route, limit }).await.unwrap();
    assert_eq!(queued(route("work", &["gpu"]), 10).await, [more, gpu], "best first");
    assert_eq!(queued(route("work", &["gpu"]), 1).await, [more]);
    assert_eq!(queued(route("other", &["eu"]), 10).await, [eu]);
    assert_eq!(queued(route("other", &["gpu"]), 10).await, []);
    world.act(cancel(eu)).await;
    assert_eq!(listed().await, [route("work", &["gpu"])]);
}

pub async fn those_who_wait_are_listed_route_by_route(world: &World) {
    let mut ids = Vec::new();
    for tokens in [&["gpu"][..], &["eu"], &["gpu"], &["eu", "gpu"]] {
        ids.push(blocked(world, tokens).await);
    }
    let other = world.submit(Submit { lane: lane("other"), ..world.needing(&["gpu"]) }).await;
    world.act(block(other, ROUTE)).await;
    let found = unrouted(world, all_unrouted()).await;
    assert_eq!(found.len(), 5);
    let mut routes: Vec<_> = found.iter().map(|it| it.route.clone()).collect();
    routes.dedup();
    assert_eq!(routes.len(), 4, "one after the other");
    assert_eq!(unrouted(world, ListUnrouted { limit: 1, ..all_unrouted() }).await, found);
    for (n, route) in routes.iter().enumerate() {
        let behind = ListUnrouted { behind: Some(route.clone()), ..all_unrouted() };
        let rest: Vec<_> =
            found.iter().filter(|it| routes[n + 1..].contains(&it.route)).cloned().collect();
        assert_eq!(unrouted(world, behind).await, rest);
    }
    let of_other = ListUnrouted { lane: Some(lane("other")), ..all_unrouted() };
    let expected = Unrouted { execution_id: other, route: route("other", &["gpu"]) };
    assert_eq!(unrouted(world, of_other.clone()).await, std::slice::from_ref(&expected));
    let past = ListUnrouted { behind: Some(expected.route), ..of_other };
    assert_eq!(unrouted(world, past).await, []);
    let of_work = ListUnrouted { lane: Some(lane("work")), ..all_unrouted() };
    assert_eq!(unrouted(world, of_work).await.len(), 4);
    world.act(cancel(ids[0])).await;
    assert_eq!(unrouted(world, all_unrouted()).await.len(), 4);
}

pub async fn namespaces_in_which_something_stands_are_listed(world: &World) {
    let names = ["a", "b", "c", "d", "e", "f", "g"].map(namespace);
    for name in &names[..3] {
        world.submit(Submit { namespace: name.clone(), ..world.work() }).await;
    }
    world.act(RegisterWorker { namespace: names[3].clone(), ..register("w-4") }).await;
    world.act(CreateBudget { namespace: names[4].clone(), ..budget(&[("a", 1, 0)]) }).await;
    world.act(CreateQuotaPolicy { namespace: names[5].clone(), ..quota(cap(1)) }).await;
    world.act(CreateFlow { namespace: names[6].clone(), ..create_flow() }).await;
    for limit in [1, 2, 100] {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = world.backend.ask(ListNamespaces { cursor, limit }).await.unwrap();
            found.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        found.retain(|name| names.contains(name));
        assert_eq!(found, names, "each once, in the order of their names");
    }
}

pub async fn fleets_and_what_they_offer_are_listed(world: &World) {
    let listed = async |limit| {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = world.backend.ask(ListFleets { cursor, limit }).await.unwrap();
            found.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return found;
            }
        }
    };
    assert_eq!(listed(1).await, []);
    world.act(able("w-1", &["gpu"])).await;
    world.advance(1).await;
    world.act(register("w-2")).await;
    world.act(drain("w-2")).await;
    world.act(RegisterWorker { namespace: namespace("elsewhere"), ..register("w-3") }).await;
    world.act(set_lane("work", LaneState::Active)).await;
    for limit in [1, 10] {
        assert_eq!(listed(limit).await, [Namespace::default(), namespace("elsewhere")]);
    }
    let offers = ListOffers { namespace: Namespace::default(), cursor: None, limit: 10 };
    let offers = world.backend.ask(offers).await.unwrap().items;
    let names: Vec<_> = offers.iter().map(|offer| offer.worker_instance_id.as_str()).collect();
    assert_eq!(names, ["w-1", "w-2"]);
    assert_eq!(offers.iter().map(|offer| offer.draining).collect::<Vec<_>>(), [false, true]);
    assert!(offers[0].covers(&route("work", &["gpu"])));
    assert!(!offers[0].covers(&route("other", &["gpu"])));
    assert!(!offers[0].covers(&route("work", &["eu"])));
    assert!(!offers[1].covers(&route("work", &[])), "it drains");
    let nearest = |offers: &[Offer]| Nearest::among(offers, &route("work", &["gpu", "eu"]));
    assert_eq!(nearest(&offers).unwrap().missing, capabilities(&["eu"]));
    assert_eq!(nearest(&offers[1..]), None);
    world.act(MarkWorkerDead { namespace: namespace("elsewhere"), ..mark_dead("w-3") }).await;
    assert_eq!(listed(10).await, [Namespace::default()]);
}

pub async fn a_detail_is_bounded(world: &World) {
    let long: Vec<String> = (0..8).map(|n| format!("{n}{}", "x".repeat(400))).collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    let id = world.submit(world.needing(&long)).await;
    assert_eq!(check(world).await, (1, 0));
    let detail = world.describe(id).await.state.blocking_detail;
    assert!(detail.contains(&long[0][..50]) && detail.contains("and 7 more"), "{detail}");
}
