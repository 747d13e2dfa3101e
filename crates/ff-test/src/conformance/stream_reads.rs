//! Reading ranges of a stream. Nobody needs a lease for that.

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::id::ExecutionId;
use ff_core::operation::{NewFrame, Task};
use ff_core::read::{ReadStream, ReadSummary, StreamCursor, Tail, Visibility};
use ff_core::state::{FrameId, FrameMode, StreamEnd};
use uuid::Uuid;

use crate::output::{bodies, fleeting, frame, ids, numbered, patch};
use crate::world::{World, code, revoke};

/// Six frames, two in each of three milliseconds, and their ids.
async fn pairs(world: &World) -> (Task, Vec<FrameId>) {
    let task = world.start(world.work()).await;
    let mut appended = Vec::new();
    for pair in [["a", "b"], ["c", "d"], ["e", "f"]] {
        appended.extend(ids(&world.append(&task, vec![frame(pair[0]), fleeting(pair[1])]).await));
        world.advance(10).await;
    }
    (task, appended)
}

pub async fn ranges_have_both_ends(world: &World) {
    let (task, ids) = pairs(world).await;
    let all = ReadStream::all(task.execution_id, 0);
    let text: Vec<_> = ids.iter().map(ToString::to_string).collect();
    let ms = |n: usize| ids[n].ms.to_string();
    let (before, between) = ((ids[0].ms - 1).to_string(), (ids[0].ms + 1).to_string());
    for (from, to, wanted) in [
        ("start", "end", "abcdef"),
        (&*text[0], &*text[5], "abcdef"),
        (&*text[1], &*text[3], "bcd"),
        (&*text[2], &*text[2], "c"),
        (&*text[4], "end", "ef"),
        ("start", &*text[1], "ab"),
        (&*ms(2), "end", "cdef"),
        ("start", &*ms(2), "abcd"),
        (&*ms(2), &*ms(2), "cd"),
        (&*between, &*ms(4), "cdef"),
        ("0", &*before, ""),
        ("0-0", "253402300799999-0", "abcdef"),
        ("start", "start", ""),
        ("end", "end", ""),
        ("end", "start", ""),
        (&*text[3], &*text[1], ""),
    ] {
        let page = world.between(&all, from, to).await;
        assert_eq!(bodies(&page.frames).concat(), wanted, "{from} to {to}");
        assert_eq!((page.count, page.more, page.trimmed_before), (6, false, None));
    }
}

pub async fn a_number_beyond_all_stands_behind_its_millisecond(world: &World) {
    let (task, ids) = pairs(world).await;
    let all = ReadStream::all(task.execution_id, 0);
    for seq in ["2", "32767", "32768", "65536", "18446744073709551615"] {
        let beyond = format!("{}-{seq}", ids[0].ms);
        let page = world.between(&all, &beyond, "end").await;
        assert_eq!(bodies(&page.frames).concat(), "cdef", "from {beyond}");
        let page = world.between(&all, "start", &beyond).await;
        assert_eq!(bodies(&page.frames).concat(), "ab", "to {beyond}");
        let after: StreamCursor = beyond.parse().unwrap();
        let tail = Tail { after, ..Tail::after(task.execution_id, 0, FrameId::FIRST) };
        let page = world.backend.tail(tail, Duration::ZERO).await.unwrap();
        assert_eq!(bodies(&page.frames).concat(), "cdef", "after {beyond}");
    }
    let last = "253402300799999-18446744073709551615";
    assert_eq!(bodies(&world.between(&all, last, last).await.frames).concat(), "");
}

pub async fn a_place_that_no_clock_shows_is_refused(world: &World) {
    let task = world.start(world.work()).await;
    let all = ReadStream::all(task.execution_id, 0);
    for ms in [-1, i64::MIN, 253_402_300_800_000, i64::MAX] {
        for place in [StreamCursor::At(ms), StreamCursor::Id { ms, seq: u64::MAX }] {
            for read in
                [ReadStream { from: place, ..all.clone() }, ReadStream { to: place, ..all.clone() }]
            {
                assert_eq!(code(world.backend.ask(read).await), Code::InvalidCursor, "{place:?}");
            }
            let tail = Tail { after: place, ..Tail::after(task.execution_id, 0, FrameId::FIRST) };
            let refused = code(world.backend.tail(tail, Duration::ZERO).await);
            assert_eq!(refused, Code::InvalidCursor, "{place:?}");
        }
    }
}

pub async fn a_read_has_1_to_10_000_frames(world: &World) {
    let (task, _) = pairs(world).await;
    let all = ReadStream::all(task.execution_id, 0);
    for (limit, wanted, more) in
        [(1, "a", true), (5, "abcde", true), (6, "abcdef", false), (10_000, "abcdef", false)]
    {
        let page = world.read(ReadStream { limit, ..all.clone() }).await;
        assert_eq!((bodies(&page.frames).concat(), page.more), (wanted.to_owned(), more));
    }
    for (limit, refused) in [
        (0, Code::InvalidInput),
        (10_001, Code::CountLimitExceedsHardCap),
        (u32::MAX, Code::CountLimitExceedsHardCap),
    ] {
        let read = ReadStream { limit, ..all.clone() };
        assert_eq!(code(world.backend.ask(read).await), refused);
        let tail = Tail { limit, ..Tail::after(task.execution_id, 0, FrameId::FIRST) };
        assert_eq!(code(world.backend.tail(tail, Duration::ZERO).await), refused);
    }
}

/// Reads on behind the last id of each page: all frames, and the length of each page.
async fn pages(world: &World, first: ReadStream) -> (Vec<ff_core::state::Frame>, Vec<usize>) {
    let (mut read, mut frames, mut lengths) = (first, Vec::new(), Vec::new());
    loop {
        let page = world.read(read.clone()).await;
        lengths.push(page.frames.len());
        frames.extend(page.frames);
        if !page.more {
            return (frames, lengths);
        }
        let last: &ff_core::state::Frame = frames.last().expect("more comes behind something");
        read = ReadStream { from: last.id.successor().into(), ..read };
    }
}

pub async fn pages_follow_each_other_by_the_last_id(world: &World) {
    let task = world.start(world.work()).await;
    let mut appended = Vec::new();
    for mode in [0, 1, 1, 2, 0, 2, 2, 0, 1, 0] {
        appended.extend(world.append(&task, numbered(FrameMode::ALL[mode], 1)).await);
        world.advance((mode as i64) % 2).await;
    }
    let all = ReadStream::all(task.execution_id, 0);
    for (limit, expected) in [(3, vec![3, 3, 3, 1]), (5, vec![5, 5]), (1, vec![1; 10])] {
        let (frames, lengths) = pages(world, ReadStream { limit, ..all.clone() }).await;
        let read: Vec<_> = frames.iter().map(|frame| frame.id).collect();
        assert_eq!((read, lengths), (ids(&appended), expected));
    }
}

pub async fn a_reply_is_bounded_by_bytes(world: &World) {
    let task = world.start(world.work()).await;
    let large = |n: usize| NewFrame::new("blob", Content::new(vec![n as u8; 65_536]));
    // 12.5 MiB in each of two modes, in turns, and small ones behind.
    let modes = [FrameMode::Durable, FrameMode::BestEffort];
    let frames: Vec<_> = (0..600).map(|n| large(n).with_mode(modes[n % 2])).collect();
    world.append_all(&task, frames).await;
    world.append(&task, vec![patch("{}"), frame("last")]).await;
    let all = ReadStream::all(task.execution_id, 0);
    let first = world.read(all.clone()).await;
    assert!(first.more && (256..600).contains(&first.frames.len()), "{}", first.frames.len());
    let (frames, lengths) = pages(world, all).await;
    assert_eq!(frames.len(), 602, "{lengths:?}");
    assert!(frames.is_sorted_by(|a, b| a.id < b.id));
    let in_order = frames.iter().take(600).enumerate();
    assert!(in_order.into_iter().all(|(n, frame)| frame.content.bytes[0] == n as u8));
}

pub async fn a_read_may_leave_best_effort_out(world: &World) {
    let (task, _) = pairs(world).await;
    let all = ReadStream::all(task.execution_id, 0);
    let visibility = Visibility::ExcludeBestEffort;
    let page = world.read(ReadStream { visibility, limit: 2, ..all }).await;
    assert_eq!((bodies(&page.frames).concat(), page.more, page.count), ("ac".into(), true, 6));
}

pub async fn an_attempt_that_there_is_not_is_not_found(world: &World) {
    let waiting = world.submit(world.work()).await;
    let mut missing = vec![(waiting, 0)];
    let running = world.claim_one().await.execution_id;
    missing.extend([(running, 1), (running, u32::MAX - 1), (running, u32::MAX)]);
    let waiting = world.submit(world.work()).await;
    missing[0].0 = waiting;
    for (id, index) in missing {
        let refused = [
            code(world.backend.ask(ReadStream::all(id, index)).await),
            code(world.backend.ask(ReadSummary { execution_id: id, attempt_index: index }).await),
            code(world.backend.tail(Tail::after(id, index, FrameId::FIRST), Duration::ZERO).await),
        ];
        assert_eq!(refused, [Code::AttemptNotFound; 3], "attempt {index}");
    }
}

pub async fn an_execution_that_there_is_not_is_not_found(world: &World) {
    let partitions = &world.backend.settings().partitions;
    let nobody = ExecutionId::solo(Uuid::now_v7(), partitions);
    let nowhere = ExecutionId::new(partitions.flow, Uuid::now_v7());
    for (id, expected) in [(nobody, Code::ExecutionNotFound), (nowhere, Code::InvalidInput)] {
        let refused = [
            code(world.backend.ask(ReadStream::all(id, 0)).await),
            code(world.backend.ask(ReadSummary { execution_id: id, attempt_index: 0 }).await),
            code(world.backend.tail(Tail::after(id, 0, FrameId::FIRST), Duration::ZERO).await),
        ];
        assert_eq!(refused, [expected; 3]);
    }
}

pub async fn a_stream_never_written_is_empty_and_open_until_its_attempt_ends(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let page = world.output(id, 0).await;
    assert_eq!((page.frames, page.count, page.closed, page.more), (Vec::new(), 0, None, false));
    assert_eq!(page.trimmed_before, None);
    assert_eq!(world.peek(id, 0, FrameId::FIRST).await.closed, None);
    world.complete(&task).await.unwrap();
    let page = world.output(id, 0).await;
    assert_eq!((page.frames, page.count, page.trimmed_before), (Vec::new(), 0, None));
    assert_eq!(page.closed.map(|closed| closed.reason), Some(StreamEnd::AttemptSuccess));
    let summary = world.summary(id, 0).await;
    assert_eq!((summary.document.as_str(), summary.version), ("{}", 0));
}

pub async fn reading_needs_no_lease_and_changes_nothing(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    world.append(&task, vec![frame("a"), patch(r#"{"a":1}"#)]).await;
    world.act(revoke(id)).await;
    let record = world.describe(id).await;
    for _ in 0..2 {
        assert_eq!(world.output(id, 0).await.frames.len(), 2);
        assert_eq!(world.summary(id, 0).await.version, 1);
        assert_eq!(world.peek(id, 0, FrameId::FIRST).await.frames.len(), 2);
    }
    assert_eq!(world.describe(id).await, record);
}
