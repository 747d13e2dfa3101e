//! Tails: frames as they come, and the end as it comes.

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::error::{Code, EngineError};
use ff_core::read::{StreamCursor, StreamPage, Tail, Visibility};
use ff_core::state::{FrameId, FrameMode, StreamEnd};
use tokio::time::timeout;

use crate::output::{bodies, fleeting, frame, ids, numbered, patch};
use crate::world::{PATIENCE, World, cancel, code, revoke};

const LONG: Duration = Duration::from_secs(25);

/// What a tail under way is answered, which must be in time.
async fn answered(world: &World, tail: Tail) -> Result<StreamPage, EngineError> {
    timeout(PATIENCE, world.backend.tail(tail, LONG)).await.expect("an answer")
}

async fn awaited(world: &World, tail: Tail) -> StreamPage {
    answered(world, tail).await.expect("a page")
}

pub async fn a_tail_brings_what_is_behind_its_place(world: &World) {
    let task = world.start(world.work()).await;
    let first = world.print(&task, "a").await;
    world.print(&task, "b").await;
    let page = world.peek(task.execution_id, 0, FrameId::FIRST).await;
    assert_eq!(bodies(&page.frames), ["a", "b"]);
    let page = world.peek(task.execution_id, 0, first).await;
    assert_eq!((bodies(&page.frames), page.closed, page.count), (vec!["b".to_owned()], None, 2));
    let page = world.peek(task.execution_id, 0, page.frames[0].id).await;
    assert_eq!((page.frames, page.closed), (Vec::new(), None));
}

pub async fn a_place_may_be_a_millisecond_or_one_that_never_was(world: &World) {
    let task = world.start(world.work()).await;
    let ids = ids(&world.append(&task, vec![frame("a"), frame("b")]).await);
    world.advance(10).await;
    world.print(&task, "c").await;
    let ms = ids[0].ms;
    for (after, wanted) in [
        (StreamCursor::At(0), "abc"),
        (StreamCursor::Id { ms: 0, seq: 0 }, "abc"),
        (StreamCursor::At(ms), "bc"),
        (StreamCursor::Id { ms, seq: 0 }, "bc"),
        (StreamCursor::Id { ms, seq: 7 }, "c"),
        (StreamCursor::At(ms + 1), "c"),
        (StreamCursor::At(ms + 11), ""),
    ] {
        let tail = Tail { after, ..Tail::after(task.execution_id, 0, FrameId::FIRST) };
        let page = world.backend.tail(tail, Duration::ZERO).await.unwrap();
        assert_eq!(bodies(&page.frames).concat(), wanted, "{after:?}");
    }
}

pub async fn a_tail_wakes_with_the_next_frame(world: &World) {
    let task = world.start(world.work()).await;
    let mut after = FrameId::FIRST;
    for mode in FrameMode::ALL {
        let tail = Tail::after(task.execution_id, 0, after);
        let append = world.append(&task, numbered(mode, 2));
        let (page, appended) = tokio::join!(awaited(world, tail), append);
        assert_eq!(page.frames.len(), 2, "frames of one append come together");
        assert!(page.frames.iter().all(|frame| frame.mode == mode));
        after = appended[1].id;
    }
}

pub async fn a_tail_wakes_with_the_end(world: &World) {
    for said in [true, false] {
        let task = world.start(world.work()).await;
        let mut after = FrameId::FIRST;
        if said {
            after = world.print(&task, "last words").await;
        }
        let tail = Tail::after(task.execution_id, 0, after);
        let (page, _) = tokio::join!(awaited(world, tail), world.complete(&task));
        assert_eq!(page.frames, []);
        assert_eq!(page.closed.map(|closed| closed.reason), Some(StreamEnd::AttemptSuccess));
    }
}

pub async fn a_tail_wakes_with_whatever_ends_the_attempt(world: &World) {
    let task = world.start(world.work()).await;
    let tail = || Tail::after(task.execution_id, 0, FrameId::FIRST);
    let (page, _) = tokio::join!(awaited(world, tail()), world.act(revoke(task.execution_id)));
    assert_eq!(page.closed.map(|closed| closed.reason), Some(StreamEnd::Reclaimed));
    let task = world.claim_one().await;
    let tail = || Tail::after(task.execution_id, 1, FrameId::FIRST);
    let (page, ()) = tokio::join!(awaited(world, tail()), world.pass(30_000));
    assert_eq!(page.closed.map(|closed| closed.reason), Some(StreamEnd::LeaseExpired));
    let task = world.claim_one().await;
    let tail = || Tail::after(task.execution_id, 2, FrameId::FIRST);
    let (page, _) = tokio::join!(awaited(world, tail()), world.act(cancel(task.execution_id)));
    assert_eq!(page.closed.map(|closed| closed.reason), Some(StreamEnd::AttemptCancelled));
}

pub async fn a_tail_wakes_when_its_execution_is_removed(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let commands = vec![cancel(id).into(), ff_core::operation::Delete { execution_id: id }.into()];
    let tail = Tail::after(id, 0, FrameId::FIRST);
    let (answer, replies) = tokio::join!(answered(world, tail), world.backend.apply(commands));
    assert!(replies.iter().all(Result::is_ok), "{replies:?}");
    match answer {
        Err(error) => assert_eq!(error.code(), Code::ExecutionNotFound),
        // It may have looked between the two.
        Ok(page) => {
            assert_eq!(page.closed.map(|closed| closed.reason), Some(StreamEnd::AttemptCancelled));
        }
    }
}

pub async fn a_tail_of_an_ended_stream_does_not_wait(world: &World) {
    let task = world.start(world.work()).await;
    let last = world.print(&task, "a").await;
    world.act(revoke(task.execution_id)).await;
    let page = awaited(world, Tail::after(task.execution_id, 0, FrameId::FIRST)).await;
    assert_eq!((page.frames.len(), page.closed.is_some()), (1, true));
    world.claim_one().await;
    let page = awaited(world, Tail::after(task.execution_id, 0, last)).await;
    assert_eq!((page.frames.len(), page.closed.is_some()), (1, true), "what told of the next");
    let page = awaited(world, Tail::after(task.execution_id, 0, page.frames[0].id)).await;
    assert_eq!((page.frames.len(), page.closed.is_some()), (0, true));
}

pub async fn a_tail_of_one_execution_sleeps_through_others(world: &World) {
    let (quiet, loud) = (world.start(world.work()).await, world.start(world.work()).await);
    let tail = Tail::after(quiet.execution_id, 0, FrameId::FIRST);
    let noise = async {
        for _ in 0..20 {
            world.print(&loud, "x").await;
        }
        world.print(&quiet, "psst").await
    };
    let (page, _) = tokio::join!(awaited(world, tail), noise);
    assert_eq!(bodies(&page.frames), ["psst"]);
}

pub async fn a_tail_may_leave_best_effort_out(world: &World) {
    let task = world.start(world.work()).await;
    let tail = Tail::after(task.execution_id, 0, FrameId::FIRST);
    let tail = Tail { visibility: Visibility::ExcludeBestEffort, ..tail };
    let output = async {
        for _ in 0..5 {
            world.append(&task, vec![fleeting("x")]).await;
        }
        world.append(&task, vec![fleeting("x"), frame("a"), fleeting("y"), patch("{}")]).await;
    };
    let (page, ()) = tokio::join!(awaited(world, tail), output);
    assert_eq!((bodies(&page.frames), page.count), (vec!["a".to_owned(), "{}".to_owned()], 9));
}

pub async fn a_tail_looks_at_a_page_at_a_time(world: &World) {
    let task = world.start(world.work()).await;
    let appended = ids(&world.append(&task, numbered(FrameMode::Durable, 7)).await);
    world.complete(&task).await.unwrap();
    let (mut after, mut seen) = (FrameId::FIRST, Vec::new());
    loop {
        let tail = Tail { limit: 3, ..Tail::after(task.execution_id, 0, after) };
        let page = awaited(world, tail).await;
        seen.extend(page.frames.iter().map(|frame| frame.id));
        assert!(page.closed.is_some(), "the end is known all along");
        if !page.more {
            break;
        }
        after = *seen.last().expect("more comes behind something");
    }
    assert_eq!(seen, appended);
}

pub async fn a_tail_is_told_what_is_gone(world: &World) {
    let policy = r#"{"stream_policy":{"retention_maxlen":2}}"#;
    let task = world.start(world.work_with(policy)).await;
    let appended = ids(&world.append(&task, numbered(FrameMode::Durable, 4)).await);
    let page = awaited(world, Tail::after(task.execution_id, 0, appended[0])).await;
    assert_eq!((page.frames.len(), page.trimmed_before), (2, Some(appended[2])));
    let page = awaited(world, Tail::after(task.execution_id, 0, appended[2])).await;
    assert_eq!((page.frames.len(), page.trimmed_before), (1, None));
}

pub async fn tails_have_limits(world: &World) {
    let task = world.start(world.work()).await;
    let tail = Tail::after(task.execution_id, 0, FrameId::FIRST);
    for after in [StreamCursor::Start, StreamCursor::End] {
        let tail = Tail { after, ..tail.clone() };
        assert_eq!(code(world.backend.tail(tail, Duration::ZERO).await), Code::InvalidCursor);
    }
    for wait in [Duration::from_millis(30_001), Duration::MAX] {
        assert_eq!(code(world.backend.tail(tail.clone(), wait).await), Code::InvalidInput);
    }
    // When its time is over it says so by saying nothing.
    for wait in [Duration::ZERO, Duration::from_millis(5)] {
        let page = world.backend.tail(tail.clone(), wait).await.unwrap();
        assert_eq!((page.frames, page.closed, page.count), (Vec::new(), None, 0));
    }
    world.print(&task, "a").await;
    let page = world.backend.tail(tail, Duration::from_millis(30_000)).await.unwrap();
    assert_eq!(bodies(&page.frames), ["a"]);
}
