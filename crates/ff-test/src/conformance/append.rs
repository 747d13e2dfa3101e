//! Appending frames: what is taken, what is refused, and what the reply says.

use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::id::ContentType;
use ff_core::limits;
use ff_core::operation::NewFrame;
use ff_core::read::Record;
use ff_core::state::{FrameId, FrameMode};

use crate::output::{append, bodies, fleeting, frame, ids, patch};
use crate::world::{World, fail};

fn of_type(frame_type: &str) -> NewFrame {
    NewFrame::new(frame_type, Content::default())
}

fn of_bytes(bytes: Vec<u8>) -> NewFrame {
    NewFrame::new("blob", Content::new(bytes))
}

pub async fn frames_come_out_as_they_went_in(world: &World) {
    let task = world.start(world.work()).await;
    let appended = world.append(&task, vec![frame("a"), fleeting("b"), frame("c")]).await;
    assert!(appended.windows(2).all(|pair| pair[0].id < pair[1].id), "{appended:?}");
    assert_eq!(appended.iter().map(|frame| frame.count).collect::<Vec<_>>(), [1, 2, 3]);
    let page = world.output(task.execution_id, 0).await;
    assert_eq!(bodies(&page.frames), ["a", "b", "c"]);
    let modes: Vec<_> = page.frames.iter().map(|frame| frame.mode).collect();
    assert_eq!(modes, [FrameMode::Durable, FrameMode::BestEffort, FrameMode::Durable]);
    assert_eq!((page.count, page.trimmed_before, page.closed, page.more), (3, None, None, false));
}

pub async fn a_type_is_any_text_of_1_to_64_bytes(world: &World) {
    let task = world.start(world.work()).await;
    let (long, accents) = ("x".repeat(64), "é".repeat(32));
    let types = [
        "stdout",
        "stderr",
        "event",
        "blob",
        "x",
        &long,
        &accents,
        "日本語",
        "a b",
        "'\"\\",
        "End",
        "GAP",
        "ends",
        "attempt",
        "attempts.x",
        "my.attempt.x",
    ];
    world.append(&task, types.iter().map(|name| of_type(name)).collect()).await;
    let page = world.output(task.execution_id, 0).await;
    assert_eq!(page.frames.iter().map(|frame| &frame.frame_type).collect::<Vec<_>>(), types);
}

pub async fn reserved_and_malformed_types_are_refused(world: &World) {
    let task = world.start(world.work()).await;
    let (long, accents) = ("x".repeat(65), "é".repeat(33));
    let types = [
        "",
        &long,
        &accents,
        "a\nb",
        "\t",
        "a\0",
        "\u{7f}",
        "\u{85}",
        "end",
        "gap",
        "attempt.",
        "attempt.x",
        "attempt.superseded",
    ];
    for name in types {
        world.refuses(append(&task, vec![of_type(name)]), Code::InvalidFrameType).await;
    }
    assert_eq!(world.output(task.execution_id, 0).await.count, 0);
}

pub async fn a_frame_has_65536_bytes_at_most(world: &World) {
    let task = world.start(world.work()).await;
    let most = vec![7; 65_536];
    for mode in [FrameMode::Durable, FrameMode::BestEffort] {
        let over = of_bytes(vec![7; 65_537]).with_mode(mode);
        let refused = append(&task, vec![over]);
        world.refuses_saying(refused, Code::RetentionLimitExceeded, "65536").await;
        world.append(&task, vec![of_bytes(most.clone()).with_mode(mode)]).await;
    }
    let page = world.output(task.execution_id, 0).await;
    assert_eq!(page.frames.len(), 2);
    assert!(page.frames.iter().all(|frame| frame.content.bytes == most));
}

pub async fn bodies_come_back_byte_for_byte(world: &World) {
    let task = world.start(world.work()).await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let sent = [Vec::new(), every_byte, vec![0; 3], b"\xff\xfe\xc3".to_vec(), b"\r\n".to_vec()];
    world.append(&task, sent.iter().cloned().map(of_bytes).collect()).await;
    let page = world.output(task.execution_id, 0).await;
    let read: Vec<_> = page.frames.iter().map(|frame| frame.content.bytes.to_vec()).collect();
    assert_eq!(read, sent);
}

pub async fn content_type_and_correlation_id_are_kept(world: &World) {
    let task = world.start(world.work()).await;
    let longest = "c".repeat(limits::CATEGORY_BYTES);
    let content_type = ContentType::new("text/plain; charset=utf-8").expect("a content type");
    let content = Content { content_type: content_type.clone(), ..Content::default() };
    let correlated = |id: &str| NewFrame { correlation_id: Some(id.to_owned()), ..frame("x") };
    let said = vec![NewFrame::new("event", content), correlated("é\n"), correlated(&longest)];
    world.append(&task, said).await;
    let frames = world.output(task.execution_id, 0).await.frames;
    assert_eq!(frames[0].content.content_type, content_type);
    assert_eq!(frames[1].content.content_type, ContentType::default());
    let kept: Vec<_> = frames.iter().map(|frame| frame.correlation_id.as_deref()).collect();
    assert_eq!(kept, [None, Some("é\n"), Some(longest.as_str())]);
    let over = correlated(&"c".repeat(limits::CATEGORY_BYTES + 1));
    world.refuses(append(&task, vec![over]), Code::InvalidInput).await;
}

pub async fn an_append_has_1_to_100_frames(world: &World) {
    let task = world.start(world.work()).await;
    let many = |count: usize| append(&task, vec![frame("x"); count]);
    for count in [0, 101] {
        world.refuses(many(count), Code::InvalidInput).await;
    }
    for (count, total) in [(1, 1), (100, 101)] {
        assert_eq!(world.act(many(count)).await.frames.len(), count);
        assert_eq!(world.output(task.execution_id, 0).await.count, total);
    }
}

pub async fn an_append_is_all_or_nothing(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    world.append(&task, vec![frame("a"), patch(r#"{"a":1}"#)]).await;
    let before = (world.output(id, 0).await, world.summary(id, 0).await);
    let bad = [
        (of_type("end"), Code::InvalidFrameType),
        (of_bytes(vec![0; 65_537]), Code::RetentionLimitExceeded),
        (patch("{"), Code::InvalidInput),
    ];
    for (bad, code) in bad {
        for place in 0..3 {
            let mut frames = vec![patch(r#"{"b":2}"#), fleeting("x")];
            frames.insert(place, bad.clone());
            world.refuses(append(&task, frames), code).await;
        }
    }
    assert_eq!((world.output(id, 0).await, world.summary(id, 0).await), before);
    // What was refused has used up no id and no number.
    let next = world.append(&task, vec![frame("b")]).await[0];
    assert_eq!((next.count, next.id), (3, before.0.frames[1].id.successor()));
}

pub async fn ids_rise_whatever_the_clock_does(world: &World) {
    let task = world.start(world.work()).await;
    let mixed = || vec![frame("a"), fleeting("b"), patch("{}"), frame("c")];
    let now = world.now().await.0;
    let mut all = ids(&world.append(&task, mixed()).await);
    all.extend(ids(&world.append(&task, mixed()).await));
    let expected: Vec<_> = (0..8).map(|seq| FrameId { ms: now, seq }).collect();
    assert_eq!(all, expected, "the clock stands");
    world.advance(5).await;
    all.extend(ids(&world.append(&task, mixed()).await));
    assert_eq!(all[8], FrameId { ms: now + 5, seq: 0 });
    assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    let read: Vec<_> =
        world.output(task.execution_id, 0).await.frames.iter().map(|frame| frame.id).collect();
    assert_eq!(read, all, "the order of ids is the order of appends");
}

pub async fn every_frame_of_the_attempt_counts(world: &World) {
    let policy = r#"{"stream_policy":{"retention_maxlen":1}}"#;
    let task = world.start(world.work_with(policy)).await;
    for n in 0..3_u64 {
        let appended = world.append(&task, vec![frame("a"), fleeting("b"), patch("{}")]).await;
        let counts: Vec<_> = appended.iter().map(|frame| frame.count).collect();
        assert_eq!(counts, [3 * n + 1, 3 * n + 2, 3 * n + 3], "trimmed ones count too");
    }
    world.act(fail(&task, "transient")).await;
    world.pass(60_000).await;
    let next = world.claim_one().await;
    assert_eq!(world.append(&next, vec![frame("a")]).await[0].count, 1);
}

pub async fn a_frame_sent_again_is_appended_again(world: &World) {
    let task = world.start(world.work()).await;
    let same = append(&task, vec![frame("a")]);
    let (first, second) = (world.act(same.clone()).await, world.act(same).await);
    assert_eq!((first.frames[0].count, second.frames[0].count), (1, 2));
    assert_eq!(bodies(&world.output(task.execution_id, 0).await.frames), ["a", "a"]);
}

pub async fn the_policy_says_the_mode_of_a_frame_that_names_none(world: &World) {
    for mode in FrameMode::ALL {
        let policy = format!(r#"{{"stream_policy":{{"durability_mode":"{}"}}}}"#, mode.as_str());
        let task = world.start(world.work_with(&policy)).await;
        let named = FrameMode::ALL.map(|mode| frame("{}").with_mode(mode));
        let appended = world.append(&task, [vec![frame("{}")], named.to_vec()].concat()).await;
        let frames = world.output(task.execution_id, 0).await.frames;
        let modes: Vec<_> = frames.iter().map(|frame| frame.mode).collect();
        assert_eq!(modes, [[mode].as_slice(), &FrameMode::ALL].concat());
        let is_patch = mode == FrameMode::DurableSummary;
        assert_eq!(appended[0].summary_version, is_patch.then_some(1));
    }
}

pub async fn an_append_is_no_transition(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let (record, history) = (world.describe(id).await, world.history(id).await);
    world.advance(5).await;
    world.append(&task, vec![frame("a"), fleeting("b"), patch("{}")]).await;
    let after = world.describe(id).await;
    assert_eq!(Record { revision: record.revision, ..after }, record);
    assert_eq!(world.history(id).await, history);
}

pub async fn the_output_of_one_is_not_that_of_another(world: &World) {
    let (one, other) = (world.start(world.work()).await, world.start(world.work()).await);
    world.append(&one, vec![frame("a"), patch(r#"{"a":1}"#)]).await;
    assert_eq!(world.output(other.execution_id, 0).await.count, 0);
    world.append(&other, vec![frame("b")]).await;
    assert_eq!(world.output(one.execution_id, 0).await.frames.len(), 2);
    assert_eq!(world.summary(other.execution_id, 0).await.version, 0);
}
