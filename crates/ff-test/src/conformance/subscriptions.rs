//! Subscriptions: events of all partitions, resumable from a cursor.

use std::collections::BTreeSet;
use std::time::Duration;

use ff_core::backend::{BackendExt, EventsAfter};
use ff_core::error::Code;
use ff_core::event::{Envelope, EventKind};
use ff_core::id::{ExecutionId, Kind};
use ff_core::limits;
use ff_core::operation::{Claim, Release, Replay, Submit};
use ff_core::read::{EventFilter, Follow, From, Subscription};
use ff_core::state::Outcome;
use tokio::time::timeout;

use crate::limits::{budget, usage};
use crate::world::{
    PATIENCE, World, cancel, code, delay, fail, hold, lane, namespace, revoke, tags,
};

fn follow(filter: &EventFilter, from: From) -> Follow {
    Follow { filter: filter.clone(), from, limit: limits::PAGE_MAX, each: false }
}

async fn look(world: &World, filter: &EventFilter, from: From) -> EventsAfter {
    world.backend.events(follow(filter, from), Duration::ZERO).await.unwrap()
}

/// Where a subscription that begins now stands.
async fn now(world: &World, filter: &EventFilter) -> From {
    From::Cursor(look(world, filter, From::Now).await.cursor)
}

fn subjects(items: &[Envelope]) -> Vec<ExecutionId> {
    items.iter().filter_map(|envelope| envelope.event.subject.execution_id()).collect()
}

/// Events of different partitions have no order.
fn subject_set(items: &[Envelope]) -> BTreeSet<ExecutionId> {
    subjects(items).into_iter().collect()
}

fn kinds(items: &[Envelope]) -> Vec<EventKind> {
    items.iter().map(|envelope| envelope.event.kind).collect()
}

pub async fn from_the_start_reads_all_that_is_kept(world: &World) {
    let mut ids = BTreeSet::new();
    for _ in 0..5 {
        ids.insert(world.submit(world.work()).await);
    }
    let after = look(world, &EventFilter::default(), From::Start).await;
    assert_eq!((subject_set(&after.items), after.gap), (ids, false));
}

pub async fn from_now_brings_only_what_comes_later(world: &World) {
    let filter = EventFilter::default();
    // Often, because a store may answer a write before it tells those who follow the log.
    for _ in 0..50 {
        world.submit(world.work()).await;
        let after = look(world, &filter, From::Now).await;
        assert_eq!((after.items.len(), after.gap), (0, false));
        let later = world.submit(world.work()).await;
        let after = look(world, &filter, From::Cursor(after.cursor)).await;
        assert_eq!(subjects(&after.items), [later]);
    }
}

pub async fn a_cursor_goes_on_where_the_last_page_ended(world: &World) {
    for _ in 0..4 {
        let id = world.submit(world.work()).await;
        world.act(hold(id)).await;
    }
    let whole = world.log().await;
    assert_eq!(whole.len(), 8);
    for limit in [1, 3, 8] {
        let (mut seen, mut from) = (Vec::new(), From::Start);
        loop {
            let page = Follow { filter: EventFilter::default(), from, limit, each: false };
            let page = world.backend.events(page, Duration::ZERO).await.unwrap();
            assert!(page.items.len() <= limit as usize && !page.gap);
            if page.items.is_empty() {
                break;
            }
            seen.extend(page.items);
            from = From::Cursor(page.cursor);
        }
        assert_eq!(seen, whole, "{limit} a page");
    }
}

pub async fn a_page_brings_all_there_is_up_to_its_limit(world: &World) {
    let submit = |number| world.work_on(if number % 2 == 0 { "even" } else { "odd" }).into();
    for reply in world.backend.apply((0..600).map(submit).collect()).await {
        reply.unwrap();
    }
    let filter = EventFilter { lanes: vec![lane("odd")], ..EventFilter::default() };
    for (limit, expected) in [(200, 200), (300, 300), (500, 300)] {
        let page = Follow { limit, ..follow(&filter, From::Start) };
        let page = world.backend.events(page, Duration::ZERO).await.unwrap();
        assert_eq!(page.items.len(), expected, "{limit} at the most");
    }
}

pub async fn a_cursor_behind_each_event_goes_on_there(world: &World) {
    for _ in 0..4 {
        let id = world.submit(world.work()).await;
        world.act(hold(id)).await;
    }
    let whole = world.log().await;
    let events = async |from, each| {
        let page = Follow { filter: EventFilter::default(), from, limit: 8, each };
        world.backend.events(page, Duration::ZERO).await.unwrap()
    };
    let page = events(From::Start, true).await;
    assert_eq!(page.items, whole[..page.items.len()]);
    assert_eq!(page.cursors.len(), page.items.len());
    for (behind, cursor) in (1..).zip(page.cursors) {
        assert_eq!(events(From::Cursor(cursor), false).await.items, whole[behind..]);
    }
}

pub async fn a_cursor_can_be_used_again(world: &World) {
    let filter = EventFilter::default();
    let from = now(world, &filter).await;
    let id = world.submit(world.work()).await;
    for _ in 0..2 {
        assert_eq!(subjects(&look(world, &filter, from.clone()).await.items), [id]);
    }
}

pub async fn an_event_is_told_at_once(world: &World) {
    let filter = EventFilter::default();
    let from = now(world, &filter).await;
    let submit = world.work();
    let id = submit.execution_id;
    let waiting = timeout(PATIENCE, world.backend.events(follow(&filter, from), PATIENCE));
    let (told, _) = tokio::join!(waiting, world.submit(submit));
    assert_eq!(subjects(&told.expect("told in time").unwrap().items), [id]);
}

pub async fn a_cursor_goes_on_in_every_log(world: &World) {
    let filter = EventFilter::default();
    let (mut from, mut expected) = (now(world, &filter).await, Vec::new());
    for round in 0..8 {
        // Each budget stands where it stands.
        let id = world.budget(budget(&[("a", 1, 0)])).await;
        world.act(usage(id, &[("a", 2)])).await;
        let work = world.submit(world.work()).await;
        if round % 2 == 1 {
            let page = look(world, &filter, from).await;
            let kinds: Vec<_> = page.items.iter().map(|item| item.event.kind).collect();
            let both = [EventKind::BudgetHardLimit, EventKind::Submitted];
            assert!(both.iter().all(|kind| kinds.iter().filter(|k| *k == kind).count() == 2));
            assert!(page.items.iter().any(|item| item.event.subject == work));
            assert!(!page.gap && page.cursor.len() < 1_000);
            expected.extend(page.items);
            from = From::Cursor(page.cursor);
        }
    }
    let sorted = |mut items: Vec<Envelope>| {
        items.sort_by_key(|item| (item.event.subject.clone(), item.event.seq));
        items
    };
    assert_eq!(sorted(expected), sorted(world.log().await), "each event once");
}

pub async fn an_event_of_a_budget_is_told(world: &World) {
    let filter = EventFilter::default();
    let id = world.budget(budget(&[("a", 1, 0)])).await;
    let from = now(world, &filter).await;
    let waiting = timeout(PATIENCE, world.backend.events(follow(&filter, from), PATIENCE));
    let (told, _) = tokio::join!(waiting, world.act(usage(id, &[("a", 2)])));
    let told = told.expect("told in time").unwrap().items;
    let kinds: Vec<_> = told.iter().map(|item| item.event.kind).collect();
    assert_eq!(kinds, [EventKind::BudgetHardLimit]);
}

pub async fn a_wait_goes_on_over_events_that_do_not_match(world: &World) {
    let filter = EventFilter { lanes: vec![lane("wanted")], ..EventFilter::default() };
    let from = now(world, &filter).await;
    let waiting = timeout(PATIENCE, world.backend.events(follow(&filter, from), PATIENCE));
    let (told, wanted) = tokio::join!(waiting, async {
        world.submit(world.work()).await;
        world.submit(world.work_on("wanted")).await
    });
    assert_eq!(subjects(&told.expect("told in time").unwrap().items), [wanted]);
}

pub async fn a_match_is_found_behind_any_number_that_do_not(world: &World) {
    for _ in 0..2 {
        let submits = (0..limits::BATCH_ITEMS).map(|_| world.work()).collect();
        world.backend.submit_batch(submits).await.unwrap();
    }
    let wanted = world.submit(world.work_on("wanted")).await;
    let filter = EventFilter { lanes: vec![lane("wanted")], ..EventFilter::default() };
    let found = world.backend.events(follow(&filter, From::Start), PATIENCE);
    let found = timeout(PATIENCE / 2, found).await.expect("found without a wait").unwrap();
    assert_eq!(subjects(&found.items), [wanted]);
}

pub async fn a_wait_without_events_ends_with_a_cursor(world: &World) {
    let filter = EventFilter { lanes: vec![lane("wanted")], ..EventFilter::default() };
    let from = now(world, &filter).await;
    world.submit(world.work()).await;
    let wait = Duration::from_millis(20);
    let empty = world.backend.events(follow(&filter, from.clone()), wait).await.unwrap();
    assert_eq!((empty.items.len(), empty.gap), (0, false));
    let wanted = world.submit(world.work_on("wanted")).await;
    for from in [from, From::Cursor(empty.cursor)] {
        assert_eq!(subjects(&look(world, &filter, from).await.items), [wanted]);
    }
}

pub async fn each_filter_keeps_what_it_names(world: &World) {
    let elsewhere = namespace("elsewhere");
    let base = EventFilter { kinds_of_event: vec![EventKind::Submitted], ..Default::default() };
    let plain = world.submit(world.work()).await;
    let tenant = world.submit(Submit { namespace: elsewhere.clone(), ..world.work() }).await;
    let other_lane = world.submit(world.work_on("other")).await;
    let mail = Kind::new("mail").unwrap();
    let other_kind = world.submit(Submit { kind: mail.clone(), ..world.work() }).await;
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let tagged = Submit { tags: tags(&[("a", "1"), ("b", "2")]), ..world.work() };
    let tagged = world.submit(tagged).await;
    let all = vec![plain, tenant, other_lane, other_kind, tagged];
    let test = Kind::new("test").unwrap();
    let cases = [
        (base.clone(), all),
        (EventFilter { namespace: Some(elsewhere), ..base.clone() }, vec![tenant]),
        (EventFilter { lanes: vec![lane("other")], ..base.clone() }, vec![other_lane]),
        (
            EventFilter { lanes: vec![lane("none"), lane("other")], ..base.clone() },
            vec![other_lane],
        ),
        (EventFilter { kinds: vec![mail], ..base.clone() }, vec![other_kind]),
        (EventFilter { tags: vec![pair("a", "1")], ..base.clone() }, vec![tagged]),
        (EventFilter { tags: vec![pair("a", "1"), pair("b", "2")], ..base.clone() }, vec![tagged]),
        (EventFilter { tags: vec![pair("a", "1"), pair("b", "1")], ..base.clone() }, vec![]),
        (
            EventFilter { tags: vec![pair("a", "1")], kinds: vec![test], ..base.clone() },
            vec![tagged],
        ),
        (EventFilter { kinds_of_event: vec![EventKind::Claimed], ..base }, vec![]),
    ];
    for (filter, expected) in cases {
        let found = look(world, &filter, From::Start).await;
        assert_eq!(subject_set(&found.items), BTreeSet::from_iter(expected), "{filter:?}");
    }
}

pub async fn outcomes_are_a_filter(world: &World) {
    let done = world.finish(world.work()).await.execution_id;
    let cancelled = world.submit(world.work()).await;
    world.act(cancel(cancelled)).await;
    for (outcomes, expected) in [
        (vec![Outcome::Success], vec![done]),
        (vec![Outcome::Cancelled, Outcome::Failed], vec![cancelled]),
        (vec![Outcome::Success, Outcome::Cancelled], vec![done, cancelled]),
        (vec![Outcome::Expired], vec![]),
    ] {
        let filter = EventFilter { outcomes, ..EventFilter::default() };
        let found = look(world, &filter, From::Start).await;
        let expected = BTreeSet::from_iter(expected);
        assert_eq!(subject_set(&found.items), expected, "{:?}", filter.outcomes);
    }
}

/// A life with a hold, a delay, a retry, both kinds of lost lease and a replay.
async fn eventful(world: &World) {
    let id = world.submit(world.work()).await;
    world.act(hold(id)).await;
    world.act(Release { execution_id: id }).await;
    world.act(delay(&world.claim_one().await, 10)).await;
    world.pass(10).await;
    world.act(fail(&world.claim_one().await, "transient")).await;
    world.pass(1_000).await;
    world.claim_one().await;
    world.act(revoke(id)).await;
    let claim = Claim { lease_ttl_ms: limits::LEASE_TTL_MIN_MS, ..world.claim_request(1) };
    world.claim_as(claim).await;
    world.pass(limits::LEASE_TTL_MIN_MS.cast_signed()).await;
    world.complete(&world.claim_one().await).await.unwrap();
    world.act(Replay { execution_id: id, descendants: false }).await;
    world.act(cancel(id)).await;
}

pub async fn the_named_sets_hold_their_kinds(world: &World) {
    eventful(world).await;
    let named = |subscription: Subscription| EventFilter {
        kinds_of_event: subscription.kinds_of_event(),
        ..EventFilter::default()
    };
    use EventKind::*;
    let completions = look(world, &named(Subscription::Completions), From::Start).await;
    assert_eq!(kinds(&completions.items), [Completed, Cancelled]);
    let leases = look(world, &named(Subscription::LeaseHistory), From::Start).await;
    assert_eq!(
        kinds(&leases.items),
        [
            Claimed,
            Delayed,
            Claimed,
            RetryScheduled,
            Claimed,
            LeaseRevoked,
            Claimed,
            LeaseExpired,
            Claimed,
            Completed,
            Replayed,
            Cancelled,
        ]
    );
    let lifecycle = look(world, &named(Subscription::Lifecycle), From::Start).await;
    assert_eq!(lifecycle.items, world.log().await);
}

pub async fn a_cursor_is_bound_to_its_filter(world: &World) {
    world.submit(world.work()).await;
    let filter = EventFilter { lanes: vec![lane("work")], ..EventFilter::default() };
    let cursor = look(world, &filter, From::Start).await.cursor;
    assert!(cursor.len() <= limits::CURSOR_BYTES);
    let long = "x".repeat(limits::CURSOR_BYTES + 1);
    let other = EventFilter { lanes: vec![lane("other")], ..EventFilter::default() };
    for (filter, text) in [
        (&other, cursor.as_str()),
        (&EventFilter::default(), cursor.as_str()),
        (&filter, &cursor[..cursor.len() - 2]),
        (&filter, ""),
        (&filter, "start"),
        (&filter, long.as_str()),
    ] {
        let asked = follow(filter, From::Cursor(text.to_owned()));
        let refused = code(world.backend.events(asked, Duration::ZERO).await);
        assert_eq!(refused, Code::InvalidCursor, "{text:.40}");
    }
}
