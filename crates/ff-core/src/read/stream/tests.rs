use uuid::Uuid;

use super::*;
use crate::id::{AttemptId, WorkerId, WorkerInstanceId};
use crate::state::{AttemptState, AttemptType, Stream};

const NOW: TimestampMs = TimestampMs(1_800_000_000_000);

fn id(seq: u16) -> FrameId {
    FrameId { ms: NOW.0, seq }
}

fn range(first: FrameId, last: FrameId, limit: u32) -> StreamRange {
    StreamRange {
        execution_id: ExecutionId::new(0, Uuid::nil()),
        attempt_index: 0,
        first,
        last,
        limit,
        visibility: Visibility::All,
    }
}

fn attempt(index: u32, kind: AttemptType, stream: Option<Stream>) -> Attempt {
    Attempt {
        index,
        id: AttemptId::new(Uuid::nil()),
        kind,
        state: AttemptState::Started,
        worker_id: WorkerId::new("w").unwrap(),
        worker_instance_id: WorkerInstanceId::new("w-1").unwrap(),
        started_at: NOW,
        ended_at: None,
        active_ms: 0,
        failure_reason: None,
        failure_category: None,
        stream: stream.map(Box::new),
        stream_end: None,
        result_bytes: None,
    }
}

/// The frames of one mode that a store found, by their numbers.
fn shelf(mode: FrameMode, seqs: &[u16], complete: bool) -> ShelfFound {
    let frame = |seq: &u16| Frame {
        id: id(*seq),
        mode,
        frame_type: "stdout".to_owned(),
        content: Content::default(),
        correlation_id: None,
    };
    let oldest = seqs.first().map(|seq| id(*seq));
    ShelfFound { mode, oldest, faded: false, frames: seqs.iter().map(frame).collect(), complete }
}

/// What an attempt with 30 frames shows of what a store found.
fn found(shelves: Vec<ShelfFound>) -> StreamFound {
    let mut stream = Stream::default();
    for _ in 0..30 {
        stream.take_on(FrameMode::Durable, NOW);
    }
    let attempt = attempt(0, AttemptType::Initial, Some(stream));
    StreamFound { attempt, next: None, policy: StreamPolicy::default(), shelves }
}

fn seqs(page: &StreamPage) -> Vec<u16> {
    page.frames.iter().map(|frame| frame.id.seq).collect()
}

#[test]
fn every_form_of_a_cursor_is_read() {
    for (text, cursor) in [
        ("start", StreamCursor::Start),
        ("end", StreamCursor::End),
        ("0", StreamCursor::At(0)),
        ("007", StreamCursor::At(7)),
        ("253402300799999", StreamCursor::At(limits::TIME_MAX_MS)),
        ("0-0", StreamCursor::Id { ms: 0, seq: 0 }),
        ("12-34", StreamCursor::Id { ms: 12, seq: 34 }),
        ("1-18446744073709551615", StreamCursor::Id { ms: 1, seq: u64::MAX }),
    ] {
        assert_eq!(text.parse(), Ok(cursor), "{text}");
    }
    for frame in [FrameId::FIRST, id(7), FrameId::LAST] {
        assert_eq!(frame.to_string().parse(), Ok(StreamCursor::from(frame)));
    }
}

#[test]
fn what_is_no_cursor_is_refused() {
    for text in [
        "",
        "-",
        "+",
        "$",
        "*",
        "Start",
        "END",
        " start",
        "1-",
        "-1",
        "--1",
        "1--1",
        "1-2-3",
        "1-*",
        "+1",
        "1-+1",
        " 1",
        "1 ",
        "1 - 2",
        "1-2\n",
        "1.5",
        "1e3",
        "0x1",
        "٣",
        "１",
        "1-٣",
        "253402300800000",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "1-18446744073709551616",
        "99999999999999999999999999999999",
        "(1-1",
    ] {
        let refusal = text.parse::<StreamCursor>().unwrap_err();
        assert_eq!(refusal.code, Code::InvalidCursor, "{text:?}");
    }
}

#[test]
fn cursors_are_places_on_both_ends_of_a_range() {
    let max = FrameId::SEQ_MAX;
    let at = |ms, seq| FrameId { ms, seq };
    for (text, first, last) in [
        ("start", FrameId::FIRST, FrameId::FIRST),
        ("end", FrameId::LAST, FrameId::LAST),
        ("5", at(5, 0), at(5, max)),
        ("5-0", at(5, 0), at(5, 0)),
        ("5-32767", at(5, max), at(5, max)),
        ("5-32768", at(6, 0), at(5, max)),
        ("5-65536", at(6, 0), at(5, max)),
        ("5-18446744073709551615", at(6, 0), at(5, max)),
    ] {
        let cursor: StreamCursor = text.parse().unwrap();
        assert_eq!((cursor.first(), cursor.last()), (first, last), "{text}");
    }
}

#[test]
fn a_tail_begins_behind_its_place() {
    let tail = |after| Tail { after, ..Tail::after(ExecutionId::new(0, Uuid::nil()), 0, id(0)) };
    let first = |text: &str| tail(text.parse().unwrap()).range().first;
    assert_eq!(first("0-0"), FrameId { ms: 0, seq: 1 });
    assert_eq!(first("5"), FrameId { ms: 5, seq: 1 });
    assert_eq!(first("5-32767"), FrameId { ms: 6, seq: 0 });
    assert_eq!(first("5-99999"), FrameId { ms: 6, seq: 0 });
    let last = first(&FrameId::LAST.to_string());
    assert!(last > FrameId::LAST && FrameId::from_packed(last.packed()) == last);
}

#[test]
fn the_frames_of_all_modes_come_in_one_order() {
    let shelves = vec![
        shelf(FrameMode::Durable, &[0, 3, 4], true),
        shelf(FrameMode::DurableSummary, &[1], true),
        shelf(FrameMode::BestEffort, &[2, 5], true),
    ];
    for (limit, expected, more) in
        [(1, 0..1, true), (5, 0..5, true), (6, 0..6, false), (9, 0..6, false)]
    {
        let range = range(FrameId::FIRST, FrameId::LAST, limit);
        let page = found(shelves.clone()).page(&range, NOW);
        assert_eq!((seqs(&page), page.more), (expected.collect(), more));
    }
}

/// Modes with their frames, whether each is complete, and what may be shown of them.
type Cut<'a> = ([(&'a [u16], bool); 3], &'a [u16], bool);

#[test]
fn no_frame_is_shown_before_one_that_was_left_out() {
    let cuts: [Cut<'_>; 7] = [
        ([(&[0, 1], false), (&[], true), (&[2, 3], true)], &[0, 1], true),
        ([(&[0, 9], false), (&[], true), (&[2, 3], true)], &[0, 2, 3, 9], true),
        ([(&[0, 9], true), (&[], true), (&[2, 3], false)], &[0, 2, 3], true),
        ([(&[0, 5], false), (&[1, 3], false), (&[2, 7], false)], &[0, 1, 2, 3], true),
        ([(&[4], false), (&[0], false), (&[9], true)], &[0], true),
        ([(&[4], true), (&[0], true), (&[9], true)], &[0, 4, 9], false),
        ([(&[], true), (&[], true), (&[], true)], &[], false),
    ];
    for (shelves, expected, more) in cuts {
        let of =
            |(mode, (seqs, complete)): (FrameMode, (&[u16], bool))| shelf(mode, seqs, complete);
        let shelves: Vec<_> = FrameMode::ALL.into_iter().zip(shelves).map(of).collect();
        let range = range(FrameId::FIRST, FrameId::LAST, 100);
        let page = found(shelves).page(&range, NOW);
        assert_eq!((&*seqs(&page), page.more), (expected, more));
    }
}

#[test]
fn the_last_frame_waits_for_those_before_it() {
    let next = Some(attempt(1, AttemptType::Retry, None));
    let shown = |shelves: Vec<ShelfFound>, limit| {
        let found = StreamFound { next: next.clone(), ..found(shelves) };
        let page = found.page(&range(FrameId::FIRST, FrameId::LAST, limit), NOW);
        let last = page.frames.last().map(|frame| frame.frame_type == SUPERSEDED);
        (page.frames.len(), last, page.more)
    };
    let shelf = |complete| vec![shelf(FrameMode::Durable, &[28, 29], complete)];
    assert_eq!(shown(shelf(true), 3), (3, Some(true), false));
    assert_eq!(shown(shelf(true), 2), (2, Some(false), true));
    assert_eq!(shown(shelf(false), 9), (2, Some(false), true));
}

#[test]
fn what_is_gone_is_told_to_those_who_begin_before_it() {
    let mut stream = Stream::default();
    let policy = StreamPolicy { retention_maxlen: 2, ..StreamPolicy::default() };
    let modes = (0..5).map(|n| if n < 4 { FrameMode::Durable } else { FrameMode::BestEffort });
    let ids: Vec<_> = modes.map(|mode| stream.take_on(mode, NOW)).collect();
    stream.make_room(FrameMode::Durable, 4, &policy, NOW);
    stream.make_room(FrameMode::BestEffort, 1, &policy, NOW);
    let attempt = attempt(0, AttemptType::Initial, Some(stream));
    let told = |first: FrameId, shelf: ShelfFound| {
        let shelves = vec![shelf];
        let found = StreamFound { attempt: attempt.clone(), next: None, policy, shelves };
        found.page(&range(first, FrameId::LAST, 9), NOW).trimmed_before
    };
    let durable = || shelf(FrameMode::Durable, &[2, 3], true);
    assert_eq!(told(ids[0], durable()), Some(ids[2]));
    assert_eq!(told(ids[1], durable()), Some(ids[2]));
    assert_eq!(told(ids[2], durable()), None);
    // Of best-effort frames none was pushed out: time alone takes them away.
    let fading =
        |seqs: &[u16], faded| ShelfFound { faded, ..shelf(FrameMode::BestEffort, seqs, true) };
    assert_eq!(told(ids[0], fading(&[4], false)), None);
    assert_eq!(told(ids[0], fading(&[4], true)), Some(ids[4]));
    for faded in [true, false] {
        assert_eq!(told(ids[4], fading(&[], faded)), Some(ids[4].successor()));
        assert_eq!(told(ids[4].successor(), fading(&[], faded)), None);
    }
}
