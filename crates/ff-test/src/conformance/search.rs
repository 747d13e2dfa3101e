//! Search: newest first, each match exactly once.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::{ExecutionId, Kind};
use ff_core::limits;
use ff_core::operation::{Delete, Submit};
use ff_core::read::{Filter, Search};
use ff_core::state::PublicState;
use ff_core::time::TimestampMs;
use uuid::Uuid;

use crate::world::{World, cancel, code, delay, fail, lane, namespace, set_tags, tags};

fn page(filter: &Filter, cursor: Option<String>, limit: u32) -> Search {
    Search { filter: filter.clone(), cursor, limit }
}

/// Walks over all pages; a page may be short while there is a cursor.
async fn walk(world: &World, filter: &Filter, limit: u32) -> Vec<ExecutionId> {
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = world.backend.ask(page(filter, cursor, limit)).await.unwrap();
        assert!(page.items.len() <= limit as usize);
        seen.extend(page.items.iter().map(|record| record.execution_id));
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return seen,
        }
    }
}

async fn submit_apart(
    world: &World,
    submits: impl IntoIterator<Item = Submit>,
) -> Vec<ExecutionId> {
    let mut ids = Vec::new();
    for submit in submits {
        ids.push(world.submit(submit).await);
        world.advance(10).await;
    }
    ids
}

pub async fn the_newest_comes_first(world: &World) {
    let mut ids = submit_apart(world, (0..5).map(|_| world.work())).await;
    ids.reverse();
    let page = world.backend.ask(page(&Filter::default(), None, 10)).await.unwrap();
    let found: Vec<_> = page.items.iter().map(|record| record.execution_id).collect();
    assert_eq!((found, page.next_cursor), (ids.clone(), None));
    assert_eq!(page.items[0], world.describe(ids[0]).await);
}

pub async fn of_the_same_instant_the_higher_id_comes_first(world: &World) {
    let count = world.backend.settings().partitions.flow;
    let id = |n: u16| ExecutionId::new((count - 1 - n) % count, Uuid::from_u128(u128::from(n)));
    for n in [2, 0, 3, 1] {
        world.submit(Submit { execution_id: id(n), ..world.work() }).await;
    }
    for limit in [1, 2, 4] {
        assert_eq!(walk(world, &Filter::default(), limit).await, [3, 2, 1, 0].map(id));
    }
}

pub async fn every_page_size_finds_each_exactly_once(world: &World) {
    let submits = (0..23).map(|n| world.work_on(if n % 3 == 0 { "a" } else { "b" }));
    let mut ids = submit_apart(world, submits).await;
    ids.reverse();
    for limit in [1, 2, 7, 22, 23, 24, limits::PAGE_MAX] {
        assert_eq!(walk(world, &Filter::default(), limit).await, ids, "{limit} a page");
    }
    let filter = Filter { lanes: vec![lane("a")], ..Filter::default() };
    let of_a: Vec<_> = ids.into_iter().rev().step_by(3).collect();
    for limit in [1, 3, 100] {
        let mut found = walk(world, &filter, limit).await;
        found.reverse();
        assert_eq!(found, of_a, "{limit} a page");
    }
}

/// A large graph is made piece by piece; all members are of the instant of its submit.
pub async fn members_that_are_made_later_stand_in_their_place(world: &World) {
    let drawing = world.draw_out(90);
    let partition = drawing.submit.members[0].submit.execution_id.partition();
    let beside =
        || Submit { execution_id: ExecutionId::new(partition, Uuid::now_v7()), ..world.work() };
    let before = world.submit(beside()).await;
    world.advance(10).await;
    let flow = world.act(drawing.submit).await;
    world.advance(10_000).await;
    let after = world.submit(beside()).await;
    world.settle().await;
    let mut members: Vec<_> = flow.members.iter().map(|(_, id)| *id).collect();
    members.sort_unstable();
    members.reverse();
    let expected = [vec![after], members, vec![before]].concat();
    for limit in [7, 50, 200] {
        assert_eq!(walk(world, &Filter::default(), limit).await, expected, "{limit} a page");
    }
}

pub async fn a_walk_is_not_disturbed_by_what_comes_and_goes(world: &World) {
    let ids = submit_apart(world, (0..6).map(|_| world.work())).await;
    let first = world.backend.ask(page(&Filter::default(), None, 2)).await.unwrap();
    let mut seen: Vec<_> = first.items.iter().map(|record| record.execution_id).collect();
    submit_apart(world, (0..3).map(|_| world.work())).await;
    for gone in [ids[5], ids[4], ids[2]] {
        world.act(cancel(gone)).await;
        world.act(Delete { execution_id: gone }).await;
    }
    let rest = page(&Filter::default(), first.next_cursor, 100);
    let rest = world.backend.ask(rest).await.unwrap();
    seen.extend(rest.items.iter().map(|record| record.execution_id));
    assert_eq!(seen, [ids[5], ids[4], ids[3], ids[1], ids[0]]);
}

pub async fn each_filter_keeps_what_it_names(world: &World) {
    let (elsewhere, mail) = (namespace("elsewhere"), Kind::new("mail").unwrap());
    let plain = world.submit(world.work()).await;
    let tenant = world.submit(Submit { namespace: elsewhere.clone(), ..world.work() }).await;
    let other = world.submit(world.work_on("other")).await;
    let kind = world.submit(Submit { kind: mail.clone(), ..world.work() }).await;
    let tagged = Submit { tags: tags(&[("a", "1"), ("b", "2")]), ..world.work() };
    let tagged = world.submit(tagged).await;
    world.act(set_tags(plain, &[("ops.note", "seen")])).await;
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let none = Filter::default;
    let cases = [
        (none(), vec![tagged, kind, other, tenant, plain]),
        (Filter { namespace: Some(elsewhere), ..none() }, vec![tenant]),
        (Filter { namespace: Some(namespace("nobody")), ..none() }, vec![]),
        (Filter { lanes: vec![lane("other")], ..none() }, vec![other]),
        (Filter { lanes: vec![lane("oth"), lane("other%")], ..none() }, vec![]),
        (Filter { kinds: vec![mail.clone()], ..none() }, vec![kind]),
        (Filter { kinds: vec![mail.clone()], lanes: vec![lane("other")], ..none() }, vec![]),
        (Filter { tags: vec![pair("a", "1")], ..none() }, vec![tagged]),
        (Filter { tags: vec![pair("a", "1"), pair("b", "1")], ..none() }, vec![]),
        (Filter { tags: vec![pair("a", "")], ..none() }, vec![]),
        (Filter { tags: vec![pair("ops.note", "seen")], ..none() }, vec![plain]),
    ];
    for (filter, expected) in cases {
        assert_eq!(world.search(filter.clone()).await, expected, "{filter:?}");
    }
}

pub async fn states_are_a_filter_and_follow_the_execution(world: &World) {
    let running = world.start(world.work()).await;
    let retrying = world.start(world.work()).await;
    world.act(fail(&retrying, "transient")).await;
    let aside = world.start(world.work()).await;
    world.act(delay(&aside, 0)).await;
    let cancelled = world.submit(world.work()).await;
    world.act(cancel(cancelled)).await;
    let waiting = world.submit(world.work()).await;
    let of = |states: &[PublicState]| Filter { states: states.to_vec(), ..Filter::default() };
    for (state, expected) in [
        (PublicState::Active, vec![running.execution_id]),
        (PublicState::Delayed, vec![retrying.execution_id]),
        (PublicState::Resumable, vec![aside.execution_id]),
        (PublicState::Cancelled, vec![cancelled]),
        (PublicState::Waiting, vec![waiting]),
        (PublicState::Completed, vec![]),
    ] {
        assert_eq!(world.search(of(&[state])).await, expected, "{state:?}");
    }
    world.complete(&running).await.unwrap();
    let ended = of(&[PublicState::Completed, PublicState::Cancelled]);
    assert_eq!(world.search(ended).await, [cancelled, running.execution_id]);
}

pub async fn ranges_begin_with_their_first_and_end_before_their_last(world: &World) {
    let start = world.now().await;
    let ids = submit_apart(world, (0..4).map(|_| world.work())).await;
    let at = |ms: u64| Some(start.after(ms));
    let created = |after, before| Filter {
        created_after: after,
        created_before: before,
        ..Filter::default()
    };
    assert_eq!(world.search(created(at(10), at(30))).await, [ids[2], ids[1]]);
    assert_eq!(world.search(created(at(11), None)).await, [ids[3], ids[2]]);
    assert_eq!(world.search(created(None, at(10))).await, [ids[0]]);
    assert_eq!(world.search(created(at(31), at(30))).await, []);
    // The clock stands at 40 ms now; one ends there and one 10 ms later.
    for id in [ids[3], ids[0]] {
        world.act(cancel(id)).await;
        world.advance(10).await;
    }
    let completed = |after: Option<TimestampMs>, before| Filter {
        completed_after: after,
        completed_before: before,
        ..Filter::default()
    };
    assert_eq!(world.search(completed(at(0), None)).await, [ids[3], ids[0]]);
    assert_eq!(world.search(completed(at(41), None)).await, [ids[0]]);
    assert_eq!(world.search(completed(None, at(50))).await, [ids[3]]);
    assert_eq!(world.search(completed(at(40), at(50))).await, [ids[3]]);
}

pub async fn the_limit_has_a_range(world: &World) {
    world.submit(world.work()).await;
    for limit in [0, limits::PAGE_MAX + 1, u32::MAX] {
        let refused = world.backend.ask(page(&Filter::default(), None, limit)).await;
        assert_eq!(code(refused), Code::InvalidInput, "{limit}");
    }
    let largest = world.backend.ask(page(&Filter::default(), None, limits::PAGE_MAX)).await;
    assert_eq!(largest.unwrap().items.len(), 1);
}

pub async fn a_cursor_is_bound_to_its_filter(world: &World) {
    submit_apart(world, (0..3).map(|_| world.work())).await;
    let filter = Filter { lanes: vec![lane("work")], ..Filter::default() };
    let first = world.backend.ask(page(&filter, None, 1)).await.unwrap();
    let cursor = first.next_cursor.unwrap();
    assert!(cursor.len() <= limits::CURSOR_BYTES);
    let long = "x".repeat(limits::CURSOR_BYTES + 1);
    for (filter, text) in [
        (&Filter::default(), cursor.as_str()),
        (&filter, &cursor[..cursor.len() - 2]),
        (&filter, ""),
        (&filter, "ffc1."),
        (&filter, long.as_str()),
    ] {
        let refused = world.backend.ask(page(filter, Some(text.to_owned()), 1)).await;
        assert_eq!(code(refused), Code::InvalidCursor, "{text:.40}");
    }
    let other_limit = world.backend.ask(page(&filter, Some(cursor), 100)).await.unwrap();
    assert_eq!(other_limit.items.len(), 2, "the size of a page is no part of the question");
}
