//! Delete: a terminal execution goes before its retention is over.

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::limits;
use ff_core::operation::{Complete, Delete, Deleted, Submit, Tick};
use ff_core::read::{Filter, ListAttempts, ListEvents, ReadContext, ReadState};
use ff_core::state::Outcome;

use crate::world::{World, code, complete, delay, tags};

pub async fn every_trace_but_the_events_is_removed(world: &World) {
    let payload = Content::new(b"payload".as_slice());
    let submit = Submit { payload, tags: tags(&[("a", "b")]), ..world.work() };
    let task = world.start(submit).await;
    world.fail(&task, "transient").await.unwrap();
    world.pass(1_000).await;
    let task = world.claim_one().await;
    let result = Some(Content::new(b"result".as_slice()));
    world.act(Complete { result, ..complete(&task) }).await;
    let id = task.execution_id;
    assert_eq!(world.act(Delete { execution_id: id }).await, Deleted);
    assert_eq!(world.find(id).await, None);
    assert_eq!(world.backend.ask(ReadState { execution_id: id }).await, Ok(None));
    assert_eq!(world.backend.ask(ReadContext { execution_id: id }).await, Ok(None));
    assert_eq!(world.backend.explain(id).await, Ok(None));
    assert_eq!(code(world.result(id).await), Code::ExecutionNotFound);
    let attempts = ListAttempts { execution_id: id, after: None, limit: 10 };
    assert_eq!(code(world.backend.ask(attempts).await), Code::ExecutionNotFound);
    let events = ListEvents { execution_id: id, after_seq: 0, limit: 10 };
    assert_eq!(code(world.backend.ask(events).await), Code::ExecutionNotFound);
    assert_eq!(world.search(Filter::default()).await, []);
    use EventKind::{Claimed, Completed, Eligible, RetryScheduled, Submitted};
    let kinds: Vec<_> = world.log().await.iter().map(|envelope| envelope.event.kind).collect();
    assert_eq!(
        kinds,
        [Submitted, Claimed, RetryScheduled, Eligible, Claimed, Completed, EventKind::Deleted]
    );
}

pub async fn the_last_event_carries_what_can_no_longer_be_looked_up(world: &World) {
    let submit = Submit { tags: tags(&[("a", "b"), ("c", "")]), ..world.work() };
    let task = world.finish(submit).await;
    world.advance(5).await;
    world.act(Delete { execution_id: task.execution_id }).await;
    let log = world.log().await;
    let (last, earlier) = log.split_last().unwrap();
    assert!(earlier.iter().all(|envelope| envelope.about.is_none()));
    let about = last.about.as_ref().expect("filters find the last event");
    assert_eq!((about.kind.as_deref(), about.tags.get("a")), (Some("test"), Some("b")));
    let event = &last.event;
    assert_eq!((event.kind, event.seq, event.time), (EventKind::Deleted, 4, world.now().await));
    assert_eq!(
        (&event.subject, event.outcome),
        (&task.execution_id.into(), Some(Outcome::Success))
    );
    assert_eq!((&event.namespace, event.lane.as_ref()), (&task.namespace, Some(&task.lane)));
    assert_eq!(event.data["kind"], Detail::from("test"));
    let pairs = [("a", "b"), ("c", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(event.data["tags"], Detail::Map(pairs.into()));
}

pub async fn only_an_ended_execution_is_deleted(world: &World) {
    let waiting = world.submit(world.work()).await;
    world.refuses(Delete { execution_id: waiting }, Code::ExecutionNotTerminal).await;
    let task = world.claim_one().await;
    world.refuses(Delete { execution_id: waiting }, Code::ExecutionNotTerminal).await;
    world.act(delay(&task, 1_000)).await;
    world.refuses(Delete { execution_id: waiting }, Code::ExecutionNotTerminal).await;
}

pub async fn a_deleted_execution_is_not_found(world: &World) {
    let task = world.finish(world.work()).await;
    world.act(Delete { execution_id: task.execution_id }).await;
    world.refuses(Delete { execution_id: task.execution_id }, Code::ExecutionNotFound).await;
    world.refuses(complete(&task), Code::ExecutionNotFound).await;
}

pub async fn deleting_one_leaves_the_others(world: &World) {
    let task = world.start(world.work()).await;
    let other = world.start(world.work()).await;
    for task in [&task, &other] {
        let result = Some(Content::new(b"result".as_slice()));
        world.act(Complete { result, ..complete(task) }).await;
    }
    let before = world.describe(other.execution_id).await;
    world.act(Delete { execution_id: task.execution_id }).await;
    assert_eq!(world.describe(other.execution_id).await, before);
    let result = world.result(other.execution_id).await;
    assert_eq!(result, Ok(Content::new(b"result".as_slice())));
    assert_eq!(world.attempts(other.execution_id).await.len(), 1);
}

pub async fn a_deleted_execution_leaves_no_timer_behind(world: &World) {
    let task = world.finish(world.work()).await;
    world.act(Delete { execution_id: task.execution_id }).await;
    world.advance(limits::RETENTION_MS.cast_signed()).await;
    let tick = Tick { home: None, most: 10 };
    assert_eq!(world.act(tick).await.fired, []);
}
