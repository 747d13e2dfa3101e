//! How long the output of an attempt that has ended is kept, and what removes it.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::read::ReadSummary;
use ff_core::state::{FrameMode, StreamEnd};

use crate::output::{bodies, fleeting, frame, numbered, patch};
use crate::world::{World, code, fail};

const KEEP_5_S: &str = r#"{"stream_policy":{"retention_ttl_ms":5000}}"#;

pub async fn a_closed_stream_is_kept_as_long_as_the_policy_says(world: &World) {
    let task = world.start(world.work_with(KEEP_5_S)).await;
    let id = task.execution_id;
    let said = vec![frame("a"), fleeting("x"), patch(r#"{"a":1}"#)];
    let last = world.append(&task, said).await[2].id;
    world.complete(&task).await.unwrap();
    world.advance(4_999).await;
    let page = world.output(id, 0).await;
    assert_eq!((page.frames.len(), page.trimmed_before), (3, None));
    assert_eq!(world.summary(id, 0).await.version, 1);
    world.advance(1).await;
    let page = world.output(id, 0).await;
    assert_eq!((page.frames, page.count, page.more), (Vec::new(), 3, false));
    assert_eq!(page.trimmed_before, Some(last.successor()), "all of it is gone");
    assert_eq!(page.closed.map(|closed| closed.reason), Some(StreamEnd::AttemptSuccess));
    assert_eq!(world.peek(id, 0, last).await.trimmed_before, None);
    let summary = world.summary(id, 0).await;
    assert_eq!((summary.document.as_str(), summary.version), ("{}", 0));
}

pub async fn an_open_stream_is_kept(world: &World) {
    let task = world.start_long(world.work_with(KEEP_5_S)).await;
    world.append(&task, vec![frame("a"), patch(r#"{"a":1}"#)]).await;
    world.pass(1_000_000).await;
    world.append(&task, vec![frame("b")]).await;
    while world.trim_frames(100).await.more {}
    let page = world.output(task.execution_id, 0).await;
    assert_eq!((page.frames.len(), page.trimmed_before), (3, None));
    assert_eq!(world.summary(task.execution_id, 0).await.version, 1);
}

pub async fn without_a_time_it_is_kept_with_its_execution(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    world.append(&task, vec![frame("a"), patch(r#"{"a":1}"#)]).await;
    world.complete(&task).await.unwrap();
    world.pass(86_400_000 - 1).await;
    while world.trim_frames(100).await.more {}
    assert_eq!(world.output(id, 0).await.frames.len(), 2);
    assert_eq!(world.summary(id, 0).await.version, 1);
    world.pass(1).await;
    let read = ReadSummary { execution_id: id, attempt_index: 0 };
    assert_eq!(code(world.backend.ask(read).await), Code::ExecutionNotFound);
}

pub async fn a_time_of_zero_keeps_nothing_that_has_ended(world: &World) {
    let policy = r#"{"stream_policy":{"retention_ttl_ms":0}}"#;
    let task = world.start(world.work_with(policy)).await;
    let last = world.append(&task, vec![frame("a"), frame("b")]).await[1].id;
    assert_eq!(bodies(&world.output(task.execution_id, 0).await.frames), ["a", "b"]);
    world.complete(&task).await.unwrap();
    let page = world.output(task.execution_id, 0).await;
    assert_eq!((page.frames, page.trimmed_before), (Vec::new(), Some(last.successor())));
}

pub async fn the_time_of_an_attempt_begins_with_its_end(world: &World) {
    let task = world.start(world.work_with(KEEP_5_S)).await;
    let id = task.execution_id;
    world.print(&task, "a").await;
    world.act(fail(&task, "transient")).await;
    world.pass(1_000).await;
    let next = world.claim_one().await;
    world.print(&next, "b").await;
    world.pass(4_000).await;
    let first = world.output(id, 0).await;
    assert_eq!((first.frames, first.count), (Vec::new(), 2), "the last frame is gone with it");
    assert_eq!(bodies(&world.output(id, 1).await.frames), ["b"]);
    world.complete(&next).await.unwrap();
    world.advance(4_999).await;
    assert_eq!(bodies(&world.output(id, 1).await.frames), ["b"]);
    world.advance(1).await;
    assert_eq!(world.output(id, 1).await.frames, []);
}

pub async fn best_effort_frames_do_not_last_longer_by_that(world: &World) {
    let policy = r#"{"stream_policy":{"retention_ttl_ms":120000}}"#;
    let task = world.start(world.work_with(policy)).await;
    world.append(&task, vec![fleeting("x"), frame("a")]).await;
    world.complete(&task).await.unwrap();
    world.advance(60_000).await;
    assert_eq!(bodies(&world.output(task.execution_id, 0).await.frames), ["a"]);
    while world.trim_frames(100).await.more {}
    assert_eq!(bodies(&world.output(task.execution_id, 0).await.frames), ["a"]);
}

/// Trims in steps until nothing is left to do: how many frames went.
async fn trim_all(world: &World, most: u32) -> u32 {
    let mut frames = 0;
    loop {
        let trimmed = world.trim_frames(most).await;
        assert!(trimmed.frames <= most, "{trimmed:?}");
        frames += trimmed.frames;
        if !trimmed.more {
            return frames;
        }
    }
}

/// How many frames a store removes that has to do so itself.
fn removed(world: &World, frames: u32) -> u32 {
    if world.backend.backend_label() == "sqlite" { frames } else { 0 }
}

pub async fn a_trim_removes_what_is_past_its_time(world: &World) {
    let task = world.start(world.work_with(KEEP_5_S)).await;
    let id = task.execution_id;
    world.append(&task, numbered(FrameMode::Durable, 25)).await;
    world
        .append(&task, [numbered(FrameMode::DurableSummary, 3), vec![fleeting("x")]].concat())
        .await;
    world.complete(&task).await.unwrap();
    world.advance(4_999).await;
    assert_eq!(trim_all(world, 10).await, 0);
    world.advance(1).await;
    let before = world.output(id, 0).await;
    assert_eq!(trim_all(world, 10).await, removed(world, 29));
    assert_eq!(trim_all(world, 10).await, 0);
    assert_eq!(world.output(id, 0).await, before, "a reader cannot tell");
}

pub async fn a_trim_removes_best_effort_frames_when_all_are_gone(world: &World) {
    let task = world.start_long(world.work()).await;
    let id = task.execution_id;
    world.append(&task, vec![frame("a"), fleeting("x"), fleeting("y")]).await;
    world.advance(59_999).await;
    assert_eq!(trim_all(world, 10).await, 0);
    world.advance(1).await;
    assert_eq!(trim_all(world, 10).await, removed(world, 2));
    world.audit().await;
    let next = world.append(&task, vec![fleeting("z")]).await[0];
    let page = world.output(id, 0).await;
    assert_eq!(bodies(&page.frames), ["a", "z"]);
    assert_eq!((page.trimmed_before, page.count), (Some(next.id), 4));
    world.advance(60_000).await;
    assert_eq!(trim_all(world, 1).await, removed(world, 1));
}

pub async fn a_trim_that_was_not_finished_does_no_harm(world: &World) {
    let task = world.start_long(world.work()).await;
    world.append(&task, numbered(FrameMode::BestEffort, 9)).await;
    world.advance(60_000).await;
    let trimmed = world.trim_frames(4).await;
    assert_eq!(trimmed.frames, removed(world, 4));
    world.append(&task, vec![fleeting("z")]).await;
    assert_eq!(bodies(&world.output(task.execution_id, 0).await.frames), ["z"]);
    world.audit().await;
    assert_eq!(trim_all(world, 100).await, 0);
    assert_eq!(bodies(&world.output(task.execution_id, 0).await.frames), ["z"]);
}
