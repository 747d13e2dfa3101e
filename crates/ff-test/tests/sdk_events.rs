//! What clients of the SDK follow: events and output.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_core::event::EventKind;
use ff_core::read::{EventFilter, StreamCursor, Subscription};
use ff_core::state::StreamEnd;
use ff_sdk::{EventSubscription, Happened, Submission};
use ff_test::sdk::Workshop;
use ff_test::world::PATIENCE;
use tokio::time::timeout;

ff_test::on_every_way! {
    a_subscription_brings_what_happens_from_now_on
    a_cursor_goes_on_where_another_ended
    more_than_a_page_comes_in_order
    a_filter_leaves_the_rest_out
    output_is_followed_to_its_end
    output_is_awaited_before_its_attempt_begins
    output_of_what_never_ran_ends
    a_tail_goes_on_behind_its_cursor
}

fn work() -> Submission {
    Submission::new("test").lane("work")
}

async fn next_kind(events: &mut EventSubscription) -> EventKind {
    match timeout(PATIENCE, events.next()).await.unwrap().unwrap() {
        Happened::Event(envelope) => envelope.event.kind,
        Happened::Gap => panic!("a gap"),
    }
}

async fn a_subscription_brings_what_happens_from_now_on(workshop: &Workshop) {
    let client = workshop.client();
    client.submit(work()).await.unwrap();
    let mut events = client.subscribe(EventFilter::default());
    assert_eq!(events.cursor(), None);
    events.begin().await.unwrap();
    assert!(events.cursor().is_some());
    let waiting = tokio::spawn(async move { (next_kind(&mut events).await, events) });
    let execution = client.submit(work()).await.unwrap();
    let (kind, mut events) = waiting.await.unwrap();
    assert_eq!(kind, EventKind::Submitted);
    execution.cancel("enough").await.unwrap();
    assert_eq!(next_kind(&mut events).await, EventKind::Cancelled);
}

async fn a_cursor_goes_on_where_another_ended(workshop: &Workshop) {
    let client = workshop.client();
    let execution = client.submit(work()).await.unwrap();
    let mut events = client.subscribe(EventFilter::default()).from_start();
    assert_eq!(next_kind(&mut events).await, EventKind::Submitted);
    let cursor = events.cursor().unwrap();
    execution.cancel("enough").await.unwrap();
    let mut others = client.subscribe(EventFilter::default()).from_cursor(cursor);
    assert_eq!(next_kind(&mut others).await, EventKind::Cancelled);
    let mut wrong = client.subscribe(EventFilter::default()).from_cursor("nowhere");
    assert!(wrong.next().await.is_err());
}

async fn more_than_a_page_comes_in_order(workshop: &Workshop) {
    let client = workshop.client();
    let made = client.submit_batch((0..120).map(|_| work())).await.unwrap();
    let mut wanted: Vec<String> = made.into_iter().map(|it| it.unwrap().id().to_string()).collect();
    let mut events = client.subscribe(EventFilter::default()).from_start();
    let mut seen = Vec::new();
    while seen.len() < wanted.len() {
        if let Happened::Event(it) = timeout(PATIENCE, events.next()).await.unwrap().unwrap() {
            seen.push(it.event.subject.to_string());
        }
    }
    wanted.sort();
    seen.sort();
    assert_eq!(seen, wanted);
}

async fn a_filter_leaves_the_rest_out(workshop: &Workshop) {
    let client = workshop.client();
    let kinds_of_event = Subscription::Completions.kinds_of_event();
    let lanes = vec![ff_test::world::lane("work")];
    let filter = EventFilter { kinds_of_event, lanes, ..EventFilter::default() };
    let mut ends = client.subscribe(filter);
    ends.begin().await.unwrap();
    client.submit(work().lane("other")).await.unwrap().cancel("enough").await.unwrap();
    let elsewhere = client.in_namespace("elsewhere").unwrap();
    elsewhere.submit(work()).await.unwrap().cancel("enough").await.unwrap();
    let ours = client.submit(work()).await.unwrap();
    ours.cancel("enough").await.unwrap();
    let Happened::Event(first) = timeout(PATIENCE, ends.next()).await.unwrap().unwrap() else {
        panic!("a gap")
    };
    assert_eq!(first.event.subject.to_string(), ours.id().to_string());
}

async fn output_is_followed_to_its_end(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let execution = client.submit(work()).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    let mut tail = execution.tail().await.unwrap();
    let reading = tokio::spawn(async move {
        let mut words = Vec::new();
        while let Some(frame) = tail.next().await.unwrap() {
            words.push(String::from_utf8_lossy(&frame.content.bytes).into_owned());
        }
        (words, tail.closed_reason())
    });
    for word in ["one", "two", "three"] {
        task.append_frame("stdout", word, None).await.unwrap();
    }
    task.complete(None).await.unwrap();
    let (words, reason) = timeout(PATIENCE, reading).await.unwrap().unwrap();
    assert_eq!(words, ["one", "two", "three"]);
    assert_eq!(reason, Some(StreamEnd::AttemptSuccess));
}

async fn output_is_awaited_before_its_attempt_begins(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let execution = client.submit(work()).await.unwrap();
    let mut tail = execution.tail().await.unwrap();
    let reading = tokio::spawn(async move { (tail.next().await.unwrap(), tail) });
    let task = worker.claim_next().await.unwrap().unwrap();
    task.append_frame("stdout", "late", None).await.unwrap();
    let (frame, mut tail) = timeout(PATIENCE, reading).await.unwrap().unwrap();
    assert_eq!(&frame.unwrap().content.bytes[..], b"late");
    task.complete(None).await.unwrap();
    assert!(timeout(PATIENCE, tail.next()).await.unwrap().unwrap().is_none());
}

async fn output_of_what_never_ran_ends(workshop: &Workshop) {
    let execution = workshop.client().submit(work()).await.unwrap();
    let mut tail = execution.tail().await.unwrap();
    execution.cancel("enough").await.unwrap();
    assert!(timeout(PATIENCE, tail.next()).await.unwrap().unwrap().is_none());
}

async fn a_tail_goes_on_behind_its_cursor(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let execution = client.submit(work()).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    for word in ["one", "two"] {
        task.append_frame("stdout", word, None).await.unwrap();
    }
    let (id, attempt) = (execution.id(), task.attempt_index());
    let mut tail = execution.tail().await.unwrap();
    tail.next().await.unwrap().unwrap();
    let mut rest = client.tail(id, attempt).after(tail.cursor()).without_best_effort();
    assert_eq!(&rest.next().await.unwrap().unwrap().content.bytes[..], b"two");
    let (start, end) = (StreamCursor::Start, StreamCursor::End);
    let read = client.read_stream(id, attempt, start, end, 10).await.unwrap();
    assert_eq!((read.frames.len(), read.is_closed()), (2, false));
    assert_eq!(client.read_summary(id, attempt).await.unwrap().version, 0);
}
