//! The last frame of an attempt that another one followed.

use ff_core::content::Content;
use ff_core::operation::{Replay, Task};
use ff_core::read::{ReadStream, SUPERSEDED, StreamPage, Visibility};
use ff_core::state::{Frame, FrameId, FrameMode};

use crate::output::{bodies, fleeting, frame, patch};
use crate::waits::{resume, suspend, wildcard};
use crate::world::{World, cancel, delay, fail, revoke};

/// The frames that tell of another attempt.
fn told(page: &StreamPage) -> Vec<&Frame> {
    page.frames.iter().filter(|frame| frame.frame_type == SUPERSEDED).collect()
}

/// The stream of `before` ends with one frame that tells of its follower and of nothing else.
async fn superseded(world: &World, before: &Task, written: usize, reason: &str) {
    let (id, index) = (before.execution_id, before.attempt_index);
    let page = world.output(id, index).await;
    let said = format!(r#"{{"next_attempt_index":{},"reason":"{reason}"}}"#, index + 1);
    assert_eq!(told(&page).len(), 1, "{page:?}");
    let last = page.frames.last().expect("a frame");
    assert_eq!((&last.content, last.mode), (&Content::json(said), FrameMode::Durable));
    assert_eq!((last.frame_type.as_str(), &last.correlation_id), ("attempt.superseded", &None));
    assert_eq!((page.frames.len(), page.count), (written + 1, written as u64 + 1));
    assert!(page.frames.is_sorted_by(|a, b| a.id < b.id), "{page:?}");
    let from_it = world.peek(id, index, page.frames[written].id).await;
    assert_eq!((from_it.frames, from_it.closed), (Vec::new(), page.closed));
}

/// Claims what is due, which must be the next attempt.
async fn next(world: &World, before: &Task) -> Task {
    let task = world.claim_one().await;
    assert_eq!(task.execution_id, before.execution_id);
    assert_eq!(task.attempt_index, before.attempt_index + 1);
    let page = world.output(task.execution_id, task.attempt_index).await;
    assert_eq!((page.frames, page.closed, page.count), (Vec::new(), None, 0), "it begins empty");
    task
}

pub async fn a_retry_a_reclaim_and_a_replay_are_told(world: &World) {
    let first = world.start(world.work()).await;
    let id = first.execution_id;
    world.append(&first, vec![frame("a"), fleeting("b"), patch("{}")]).await;
    world.act(fail(&first, "transient")).await;
    let closed = world.output(id, 0).await;
    assert_eq!(told(&closed).len(), 0, "not before the next one is claimed");
    world.pass(1_000).await;
    assert_eq!(told(&world.output(id, 0).await).len(), 0);
    let second = next(world, &first).await;
    superseded(world, &first, 3, "retry").await;
    assert_eq!(world.output(id, 0).await.closed, closed.closed);
    world.print(&second, "c").await;
    world.act(revoke(id)).await;
    let third = next(world, &second).await;
    superseded(world, &second, 1, "reclaim").await;
    world.pass(30_000).await;
    let fourth = next(world, &third).await;
    superseded(world, &third, 0, "reclaim").await;
    world.complete(&fourth).await.unwrap();
    world.act(Replay { execution_id: id, descendants: false }).await;
    assert_eq!(told(&world.output(id, 3).await).len(), 0);
    next(world, &fourth).await;
    superseded(world, &fourth, 0, "replay").await;
    // What was told of the earlier ones stays as it was.
    superseded(world, &third, 0, "reclaim").await;
    superseded(world, &second, 1, "reclaim").await;
    superseded(world, &first, 3, "retry").await;
}

pub async fn its_id_is_of_the_claim_and_behind_all_others(world: &World) {
    let first = world.start(world.work()).await;
    let id = first.execution_id;
    let last = world.print(&first, "a").await;
    world.act(revoke(id)).await;
    let second = next(world, &first).await;
    let frames = world.output(id, 0).await.frames;
    assert_eq!(frames[1].id, last.successor(), "the clock has stood");
    world.act(revoke(id)).await;
    world.advance(7).await;
    next(world, &second).await;
    let frames = world.output(id, 1).await.frames;
    assert_eq!(frames[0].id, FrameId { ms: world.now().await.0, seq: 0 });
    world.advance(1_000).await;
    assert_eq!(world.output(id, 1).await.frames, frames, "it is told once");
}

pub async fn an_attempt_that_goes_on_is_not_superseded(world: &World) {
    let task = world.start(world.work()).await;
    world.print(&task, "a").await;
    world.act(delay(&task, 0)).await;
    let task = world.claim_one().await;
    world.act(suspend(&task, wildcard("go"))).await;
    world.act(resume(task.execution_id)).await;
    let task = world.claim_one().await;
    let page = world.output(task.execution_id, 0).await;
    assert_eq!((bodies(&page.frames), page.closed), (vec!["a".to_owned()], None));
    world.complete(&task).await.unwrap();
    assert_eq!(world.output(task.execution_id, 0).await.frames.len(), 1);
}

pub async fn an_end_without_a_follower_has_no_last_frame(world: &World) {
    let task = world.start(world.work()).await;
    world.print(&task, "a").await;
    world.act(fail(&task, "transient")).await;
    world.act(cancel(task.execution_id)).await;
    world.act(Replay { execution_id: task.execution_id, descendants: false }).await;
    world.act(cancel(task.execution_id)).await;
    let page = world.output(task.execution_id, 0).await;
    assert_eq!((bodies(&page.frames), page.count), (vec!["a".to_owned()], 1));
}

pub async fn it_is_read_like_any_other(world: &World) {
    let task = world.start(world.work()).await;
    world.append(&task, vec![frame("a"), fleeting("b")]).await;
    world.act(revoke(task.execution_id)).await;
    world.advance(10).await;
    next(world, &task).await;
    let all = ReadStream::all(task.execution_id, 0);
    let page = world.read(all.clone()).await;
    let last = page.frames[2].id.to_string();
    assert_eq!(told(&world.between(&all, &last, "end").await).len(), 1);
    assert_eq!(told(&world.between(&all, &last, &last).await).len(), 1);
    assert_eq!(told(&world.between(&all, "start", &page.frames[1].id.to_string()).await).len(), 0);
    let short = world.read(ReadStream { limit: 2, ..all.clone() }).await;
    assert_eq!((short.frames.len(), short.more), (2, true), "it is what follows");
    let visibility = Visibility::ExcludeBestEffort;
    let page = world.read(ReadStream { visibility, ..all }).await;
    assert_eq!((page.frames.len(), told(&page).len()), (2, 1));
}

pub async fn it_is_kept_whatever_the_limit(world: &World) {
    let policy = r#"{"stream_policy":{"retention_maxlen":1}}"#;
    let task = world.start(world.work_with(policy)).await;
    world.append(&task, vec![frame("a"), frame("b")]).await;
    world.act(revoke(task.execution_id)).await;
    next(world, &task).await;
    let page = world.output(task.execution_id, 0).await;
    assert_eq!((page.frames.len(), page.count), (2, 3));
    assert_eq!(page.trimmed_before, Some(page.frames[0].id), "b is the oldest kept");
}
