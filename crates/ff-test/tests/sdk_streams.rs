//! Output of tasks through the SDK: appended under a lease, read by anybody.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::Duration;

use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::operation::NewFrame;
use ff_core::read::{StreamCursor, Visibility};
use ff_core::state::{FrameMode, StreamEnd};
use ff_sdk::stream::{StreamFrames, TailOptions, read_stream, tail_stream, tail_stream_with};
use ff_sdk::{ClaimedTask, SdkError};
use ff_test::sdk::Workshop;
use ff_test::world::PATIENCE;

ff_test::on_every_way! {
    frames_are_appended_and_read
    a_tail_waits_for_the_next_frame
    a_tail_ends_with_the_attempt
    frames_go_together_or_not_at_all
    modes_say_what_is_kept
    bad_places_and_counts_are_refused
}

fn texts(frames: &StreamFrames) -> Vec<&str> {
    frames.frames.iter().map(|frame| std::str::from_utf8(&frame.content.bytes).unwrap()).collect()
}

async fn all(task: &ClaimedTask) -> StreamFrames {
    task.read_stream(StreamCursor::Start, StreamCursor::End, 100).await.unwrap()
}

async fn frames_are_appended_and_read(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    assert_eq!(all(&task).await, StreamFrames::default(), "there is none before the first");
    for word in ["one", "two"] {
        task.append_frame("token", word, Some("c-1")).await.unwrap();
    }
    let read = all(&task).await;
    assert_eq!(texts(&read), ["one", "two"]);
    assert!(!read.is_closed());
    let first = &read.frames[0];
    assert_eq!((&first.frame_type[..], first.correlation_id.as_deref()), ("token", Some("c-1")));
    let (id, attempt) = (task.execution_id(), task.attempt_index());
    let backend = &*workshop.backend;
    let both = (StreamCursor::Start, StreamCursor::End);
    let free = read_stream(backend, id, attempt, both.0, both.1, 1).await.unwrap();
    assert_eq!(texts(&free), ["one"]);
}

async fn a_tail_waits_for_the_next_frame(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    let peek = task.tail_stream(StreamCursor::from_beginning(), Duration::ZERO, 10).await.unwrap();
    assert_eq!(peek, StreamFrames::default());
    let tail = task.tail_stream(StreamCursor::from_beginning(), PATIENCE, 10);
    let (frames, _) = tokio::join!(tail, task.append_frame("token", "one", None));
    assert_eq!(texts(&frames.unwrap()), ["one"]);
    let short = Duration::from_millis(20);
    let (id, attempt) = (task.execution_id(), task.attempt_index());
    let after = all(&task).await.cursor().unwrap();
    let none = tail_stream(&*workshop.backend, id, attempt, after, short, 10).await.unwrap();
    assert_eq!(none, StreamFrames::default());
}

async fn a_tail_ends_with_the_attempt(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    task.append_frame("token", "one", None).await.unwrap();
    let (id, attempt) = (task.execution_id(), task.attempt_index());
    let after = all(&task).await.cursor().unwrap();
    let tail = tail_stream(&*workshop.backend, id, attempt, after, PATIENCE, 10);
    let (end, done) = tokio::join!(tail, task.complete(None));
    done.unwrap();
    let end = end.unwrap();
    assert!(end.is_closed() && end.frames.is_empty());
    assert_eq!(end.closed_reason, Some(StreamEnd::AttemptSuccess));
}

async fn frames_go_together_or_not_at_all(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    let frame = |text: &'static str| NewFrame::new("token", Content::new(text));
    let appended = task.append_frames(vec![frame("a"), frame("b")]).await.unwrap();
    assert_eq!(appended.len(), 2);
    let bad = vec![frame("c"), NewFrame::new("", Content::new("d"))];
    let refused = task.append_frames(bad).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::InvalidFrameType));
    assert_eq!(texts(&all(&task).await), ["a", "b"]);
}

async fn modes_say_what_is_kept(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    task.append_frame_with_mode("token", "kept", None, FrameMode::Durable).await.unwrap();
    let live = FrameMode::BestEffort;
    task.append_frame_with_mode("token", "for now", None, live).await.unwrap();
    let (id, attempt) = (task.execution_id(), task.attempt_index());
    let options = TailOptions { visibility: Visibility::ExcludeBestEffort, ..Default::default() };
    let kept = tail_stream_with(&*workshop.backend, id, attempt, options).await.unwrap();
    assert_eq!(texts(&kept), ["kept"]);
    let from = StreamCursor::from_beginning();
    let both = task.tail_stream_with_visibility(from, Duration::ZERO, 9, Visibility::All).await;
    assert_eq!(texts(&both.unwrap()), ["kept", "for now"]);
}

async fn bad_places_and_counts_are_refused(workshop: &Workshop) {
    let (_worker, task) = workshop.started(workshop.work()).await;
    let field = |result: Result<StreamFrames, SdkError>| match result {
        Err(SdkError::Config { context: Some(_), field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let (start, from) = (StreamCursor::Start, StreamCursor::from_beginning());
    assert_eq!(field(task.tail_stream(start, Duration::ZERO, 1).await), "after");
    assert_eq!(field(task.tail_stream(from, Duration::ZERO, 0).await), "count_limit");
    assert_eq!(field(task.tail_stream(from, Duration::from_secs(31), 1).await), "block_ms");
    let end = StreamCursor::End;
    assert_eq!(field(task.read_stream(start, end, 10_001).await), "count_limit");
}
