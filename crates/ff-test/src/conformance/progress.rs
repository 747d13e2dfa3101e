//! Progress: overwritten at will, told at most once a second.

use ff_core::error::Code;
use ff_core::event::{Detail, Event, EventKind};
use ff_core::limits;
use ff_core::operation::{Progressed, UpdateProgress};
use ff_core::state::PublicState;

use crate::world::{World, progress};

pub async fn progress_is_shown_with_the_execution(world: &World) {
    let task = world.start(world.work()).await;
    let record = world.describe(task.execution_id).await;
    assert_eq!((record.progress_pct, record.progress_message), (None, None));
    for pct in [0, 70, 30, 100] {
        assert_eq!(world.act(progress(&task, pct)).await, Progressed);
        let record = world.describe(task.execution_id).await;
        assert_eq!(record.progress_pct, Some(pct));
        assert_eq!(record.progress_message, Some(format!("{pct} of 100")));
    }
}

pub async fn progress_makes_at_most_one_event_a_second(world: &World) {
    let task = world.start(world.work()).await;
    let told = |events: Vec<Event>| {
        let progressed = events.into_iter().filter(|event| event.kind == EventKind::Progressed);
        progressed.map(|event| event.data["pct"].clone()).collect::<Vec<_>>()
    };
    // The second counts from the last event and not from the last call.
    for (pct, wait) in [(1, 0), (2, 600), (3, 399), (4, 1), (5, 999), (6, 1), (7, 5_000)] {
        world.advance(wait).await;
        world.act(progress(&task, pct)).await;
    }
    let events = world.events(task.execution_id).await;
    assert_eq!(told(events), [1, 4, 6, 7].map(|pct: u32| Detail::from(pct)));
    assert_eq!(world.describe(task.execution_id).await.progress_pct, Some(7));
}

pub async fn progress_is_not_a_transition(world: &World) {
    let task = world.start(world.work()).await;
    let before = world.describe(task.execution_id).await;
    world.advance(2_000).await;
    world.act(progress(&task, 5)).await;
    let after = world.describe(task.execution_id).await;
    assert_eq!(after.last_transition_at, before.last_transition_at);
    assert_eq!(after.lease_expires_at, before.lease_expires_at);
    assert_eq!(after.state, before.state);
    let event = world.events(task.execution_id).await.pop().unwrap();
    assert_eq!((event.kind, event.time), (EventKind::Progressed, world.now().await));
    assert_eq!(event.data["message"], Detail::from("5 of 100"));
}

pub async fn progress_does_not_keep_a_lease_alive(world: &World) {
    let task = world.start(world.work()).await;
    world.pass(limits::LEASE_TTL_MS.cast_signed() - 1).await;
    world.act(progress(&task, 99)).await;
    world.pass(1).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Waiting);
}

pub async fn progress_has_limits(world: &World) {
    let task = world.start(world.work()).await;
    let message = |bytes| UpdateProgress { message: "x".repeat(bytes), ..progress(&task, 1) };
    for bad in [
        progress(&task, 101),
        progress(&task, u8::MAX),
        message(limits::PROGRESS_MESSAGE_BYTES + 1),
    ] {
        world.refuses(bad, Code::InvalidInput).await;
    }
    world.act(message(limits::PROGRESS_MESSAGE_BYTES)).await;
}
