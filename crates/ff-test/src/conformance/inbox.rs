//! Who waits in a namespace, in pages: all waitpoints that are not closed, all suspended executions.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::{ExecutionId, WaitpointId};
use ff_core::limits;
use ff_core::operation::{
    Claim, CreatePendingWaitpoint, LaneShare, Submit, Suspend, SuspendTimeout, Task,
};
use ff_core::read::{ListPendingWaitpoints, ListSuspended, ListedSuspension, WaitingFilter};
use ff_core::state::{SuspensionReason, TimeoutBehavior, WaitpointState};
use uuid::Uuid;

use crate::signalling::{close, pending, remint, suspend, waitpoint_key};
use crate::waits::resume;
use crate::world::{World, code, lane, namespace};

fn all() -> WaitingFilter {
    WaitingFilter::default()
}

fn for_reason(reason: &str) -> WaitingFilter {
    WaitingFilter { reason: Some(reason.to_owned()), ..all() }
}

fn older_than(ms: u64) -> WaitingFilter {
    WaitingFilter { older_than_ms: Some(ms), ..all() }
}

/// Submits, and claims it wherever it is.
async fn begin(world: &World, submit: Submit) -> Task {
    let lanes = vec![LaneShare::new(submit.lane.clone())];
    let claim = Claim { namespace: submit.namespace.clone(), lanes, ..world.claim_request(1) };
    world.submit(submit).await;
    world.claim_as(claim).await.pop().expect("a task")
}

/// So many executions that are suspended, a moment apart.
async fn suspended(world: &World, count: usize) -> Vec<ExecutionId> {
    let mut ids = Vec::new();
    for n in 0..count {
        let task = begin(world, world.work()).await;
        world.act(suspend(&task, &format!("k{n}"))).await;
        world.advance(10).await;
        ids.push(task.execution_id);
    }
    ids
}

/// Keys of all waitpoints that a filter names, over pages of this size.
async fn keys(world: &World, filter: &WaitingFilter, limit: u32) -> Vec<String> {
    let listed = world.inbox(filter, limit).await;
    listed.iter().map(|waitpoint| waitpoint.key.to_string()).collect()
}

/// Executions that a filter names, over pages of this size.
async fn ids(world: &World, filter: &WaitingFilter, limit: u32) -> Vec<ExecutionId> {
    world.all_suspended(filter, limit).await.iter().map(|listed| listed.execution_id).collect()
}

pub async fn waitpoints_come_oldest_first_bound_or_not(world: &World) {
    assert_eq!(world.inbox(&all(), 10).await, []);
    let (running, _) = world.start_with("pending").await;
    world.advance(10).await;
    let (waiting, _) = world.listening("bound").await;
    world.advance(10).await;
    world.act(pending(&running, "later")).await;
    let listed = world.inbox(&all(), 10).await;
    let [first, third] = world.waitpoints(running.execution_id).await.try_into().unwrap();
    let [second] = world.waitpoints(waiting.execution_id).await.try_into().unwrap();
    assert_eq!((first.state, &first.reason), (WaitpointState::Pending, &None));
    let reason = Some("waiting_for_signal".to_owned());
    assert_eq!((second.state, &second.reason), (WaitpointState::Open, &reason));
    assert_eq!(listed, [first, second, third]);
}

pub async fn suspensions_come_oldest_first_and_say_why(world: &World) {
    assert_eq!(world.all_suspended(&all(), 10).await, []);
    let task = world.start(world.work()).await;
    let older = world.listening("k").await.0;
    world.advance(10).await;
    let ask = Suspend {
        reason: SuspensionReason("waiting_for_approval".to_owned()),
        requester: Some("ada".to_owned()),
        timeout: Some(SuspendTimeout::For(5_000)),
        timeout_behavior: Some(TimeoutBehavior::Escalate),
        ..suspend(&task, "yes")
    };
    world.act(ask.clone()).await;
    let now = world.now().await;
    let [first, second] = world.all_suspended(&all(), 10).await.try_into().unwrap();
    assert_eq!((first.execution_id, first.timeout_at), (older.execution_id, None));
    let expected = ListedSuspension {
        execution_id: task.execution_id,
        lane: task.lane,
        kind: task.kind,
        suspension_id: ask.suspension_id,
        reason_code: "waiting_for_approval".to_owned(),
        requester: ask.requester,
        suspended_at: now,
        timeout_at: Some(now.after(5_000)),
        escalated: false,
        waitpoint_keys: vec![waitpoint_key("yes")],
    };
    assert_eq!(second, expected);
}

pub async fn of_the_same_instant_the_lower_id_comes_first(world: &World) {
    let mut tasks = Vec::new();
    for _ in 0..4 {
        tasks.push(world.start(world.work()).await);
    }
    let named = |task: &Task, n: u128| CreatePendingWaitpoint {
        waitpoint_id: WaitpointId::new(Uuid::from_u128(n)),
        ..pending(task, &n.to_string())
    };
    for (task, n) in tasks.iter().zip([3, 1, 4, 2]) {
        world.act(named(task, n)).await;
    }
    // A waitpoint of two executions may have the same id.
    world.act(named(&tasks[0], 2)).await;
    let mut same = [tasks[0].execution_id, tasks[3].execution_id];
    same.sort_unstable();
    for limit in [1, 2, 3, 10] {
        assert_eq!(keys(world, &all(), limit).await, ["1", "2", "2", "3", "4"], "{limit} a page");
        let listed = world.inbox(&all(), limit).await;
        assert_eq!([listed[1].execution_id, listed[2].execution_id], same, "{limit} a page");
    }
    for task in &tasks {
        world.act(suspend(task, "k")).await;
    }
    let mut sorted: Vec<_> = tasks.iter().map(|task| task.execution_id).collect();
    sorted.sort_unstable();
    for limit in [1, 3, 4] {
        assert_eq!(ids(world, &all(), limit).await, sorted, "{limit} a page");
    }
}

pub async fn every_page_size_finds_each_exactly_once(world: &World) {
    let suspended = suspended(world, 23).await;
    let expected: Vec<_> = (0..23).map(|n| format!("k{n}")).collect();
    for limit in [1, 2, 7, 22, 23, 24, limits::PAGE_MAX] {
        assert_eq!(keys(world, &all(), limit).await, expected, "{limit} a page");
        assert_eq!(ids(world, &all(), limit).await, suspended, "{limit} a page");
    }
}

pub async fn many_waitpoints_of_one_execution_come_in_pages(world: &World) {
    let task = world.start(world.work()).await;
    for n in 0..limits::WAITPOINTS {
        world.act(pending(&task, &format!("k{n}"))).await;
    }
    let mut expected = world.waitpoints(task.execution_id).await;
    expected.sort_unstable_by_key(|listed| listed.waitpoint_id);
    for limit in [1, 5, 63, 64] {
        assert_eq!(world.inbox(&all(), limit).await, expected, "{limit} a page");
    }
}

pub async fn a_walk_is_not_disturbed_by_what_comes_and_goes(world: &World) {
    let expected = suspended(world, 6).await;
    let page = |cursor, limit| ListSuspended { filter: all(), cursor, limit };
    let first = world.backend.ask(page(None, 2)).await.unwrap();
    let mut seen: Vec<_> = first.items.iter().map(|listed| listed.execution_id).collect();
    for gone in [expected[0], expected[1], expected[3]] {
        world.act(resume(gone)).await;
    }
    let rest = world.backend.ask(page(first.next_cursor, 100)).await.unwrap();
    seen.extend(rest.items.iter().map(|listed| listed.execution_id));
    assert_eq!(seen, [0, 1, 2, 4, 5].map(|n| expected[n]));
}

pub async fn each_filter_keeps_what_it_names(world: &World) {
    let approval = SuspensionReason("waiting_for_approval".to_owned());
    for (on, key, reason) in [
        ("work", "a", SuspensionReason::default()),
        ("work", "b", approval.clone()),
        ("other", "c", approval),
    ] {
        let task = begin(world, world.work_on(on)).await;
        world.act(Suspend { reason, ..suspend(&task, key) }).await;
        world.advance(1_000).await;
    }
    world.start_with("d").await;
    let on = |name: &str| WaitingFilter { lanes: vec![lane(name)], ..all() };
    let both = WaitingFilter { lanes: vec![lane("work")], ..for_reason("waiting_for_approval") };
    let two = WaitingFilter { lanes: vec![lane("other"), lane("nobody")], ..all() };
    let cases: [(WaitingFilter, &[&str]); 12] = [
        (all(), &["a", "b", "c", "d"]),
        (two, &["c"]),
        (on("work"), &["a", "b", "d"]),
        (on("other"), &["c"]),
        (on("nobody"), &[]),
        (for_reason("waiting_for_approval"), &["b", "c"]),
        (for_reason("waiting_for"), &[]),
        (both, &["b"]),
        (older_than(0), &["a", "b", "c", "d"]),
        (older_than(2_000), &["a", "b"]),
        (older_than(2_001), &["a"]),
        (older_than(u64::MAX), &[]),
    ];
    for (filter, expected) in cases {
        for limit in [1, 100] {
            assert_eq!(keys(world, &filter, limit).await, expected, "{filter:?}");
            let listed = world.all_suspended(&filter, limit).await;
            let found: Vec<_> = listed.iter().map(|s| s.waitpoint_keys[0].to_string()).collect();
            let suspended: Vec<_> = expected.iter().filter(|key| **key != "d").collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), suspended, "{filter:?}");
        }
    }
}

pub async fn a_namespace_sees_its_own_only(world: &World) {
    let of = |name: &str| WaitingFilter { namespace: namespace(name), ..all() };
    let elsewhere = Submit { namespace: namespace("elsewhere"), ..world.work() };
    let there = begin(world, elsewhere).await;
    world.act(suspend(&there, "there")).await;
    let here = world.listening("here").await.0;
    assert_eq!(keys(world, &all(), 10).await, ["here"]);
    assert_eq!(ids(world, &all(), 10).await, [here.execution_id]);
    assert_eq!(keys(world, &of("elsewhere"), 10).await, ["there"]);
    assert_eq!(ids(world, &of("elsewhere"), 10).await, [there.execution_id]);
    for name in ["elsewher", "elsewhere2"] {
        assert_eq!(keys(world, &of(name), 10).await, [""; 0]);
        assert_eq!(ids(world, &of(name), 10).await, []);
    }
}

pub async fn no_list_shows_a_token(world: &World) {
    let (task, first) = world.start_with("k").await;
    let second = world.act(remint(task.execution_id, "k")).await;
    let suspended = world.act(suspend(&task, "l")).await;
    let listed = world.inbox(&all(), 10).await;
    let mut fingerprints: Vec<_> = listed.iter().map(|w| w.fingerprint.clone()).collect();
    let issued = [&second, &suspended.waitpoints[0]];
    let mut expected = issued.map(|issued| issued.token.hash().fingerprint()).to_vec();
    fingerprints.sort_unstable();
    expected.sort_unstable();
    assert_eq!(fingerprints, expected);
    let shown = format!("{listed:?} {:?}", world.all_suspended(&all(), 10).await);
    for token in [&first.token, &second.token, &suspended.waitpoints[0].token] {
        let signature = token.expose().rsplit(':').next().unwrap();
        assert!(!shown.contains(signature), "{shown}");
    }
}

pub async fn the_limit_has_a_range(world: &World) {
    world.listening("k").await;
    for (limit, allowed) in [(0, false), (1, true), (500, true), (501, false), (u32::MAX, false)] {
        let waitpoints = ListPendingWaitpoints { filter: all(), cursor: None, limit };
        let suspended = ListSuspended { filter: all(), cursor: None, limit };
        let answers = [
            world.backend.ask(waitpoints).await.map(|page| page.items.len()),
            world.backend.ask(suspended).await.map(|page| page.items.len()),
        ];
        let expected = if allowed { Ok(1) } else { Err(Code::InvalidInput) };
        for answer in answers {
            assert_eq!(answer.map_err(|error| error.code()), expected, "limit {limit}");
        }
    }
}

pub async fn a_cursor_is_bound_to_its_question_and_filter(world: &World) {
    suspended(world, 3).await;
    let waitpoints = |filter, cursor| ListPendingWaitpoints { filter, cursor, limit: 1 };
    let suspended = |filter, cursor| ListSuspended { filter, cursor, limit: 1 };
    let of_waitpoints = world.backend.ask(waitpoints(all(), None)).await.unwrap().next_cursor;
    let of_suspended = world.backend.ask(suspended(all(), None)).await.unwrap().next_cursor;
    let long = "x".repeat(limits::CURSOR_BYTES + 1);
    let broken = ["", "ffc1.", long.as_str()].map(|text| (all(), Some(text.to_owned())));
    let elsewhere = WaitingFilter { namespace: namespace("elsewhere"), ..all() };
    let filters = [elsewhere, older_than(1), for_reason("waiting_for_signal")];
    let other = |cursor: &Option<String>| filters.clone().map(|filter| (filter, cursor.clone()));
    let crossed = [(all(), of_suspended.clone())];
    for (filter, cursor) in broken.iter().chain(&other(&of_waitpoints)).chain(&crossed) {
        let refused = world.backend.ask(waitpoints(filter.clone(), cursor.clone())).await;
        assert_eq!(code(refused), Code::InvalidCursor, "{cursor:.40?} {filter:?}");
    }
    let crossed = [(all(), of_waitpoints.clone())];
    for (filter, cursor) in broken.iter().chain(&other(&of_suspended)).chain(&crossed) {
        let refused = world.backend.ask(suspended(filter.clone(), cursor.clone())).await;
        assert_eq!(code(refused), Code::InvalidCursor, "{cursor:.40?} {filter:?}");
    }
    let other_limit = ListSuspended { filter: all(), cursor: of_suspended, limit: 100 };
    let rest = world.backend.ask(other_limit).await.unwrap();
    assert_eq!(rest.items.len(), 2, "the size of a page is no part of the question");
    world.act(close(rest.items[0].execution_id, "k1")).await;
    let rest = world.backend.ask(waitpoints(all(), of_waitpoints)).await.unwrap();
    assert_eq!(rest.items[0].key, waitpoint_key("k2"), "a cursor outlives what it stood at");
}
