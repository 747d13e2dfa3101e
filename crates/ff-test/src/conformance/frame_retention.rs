//! How many frames are kept: each mode by its own limit, and what is gone is told.

use ff_core::read::{ReadStream, Visibility};
use ff_core::state::FrameMode;

use crate::output::{bodies, count_of, fleeting, frame, numbered, patch};
use crate::world::{World, fail};

const KEEP_3: &str = r#"{"stream_policy":{"retention_maxlen":3}}"#;

pub async fn durable_frames_are_kept_up_to_their_limit(world: &World) {
    let task = world.start(world.work_with(KEEP_3)).await;
    world.append(&task, vec![frame("a"), frame("b")]).await;
    assert_eq!(world.output(task.execution_id, 0).await.trimmed_before, None);
    let appended = world.append(&task, vec![frame("c"), fleeting("x"), frame("d")]).await;
    let page = world.output(task.execution_id, 0).await;
    assert_eq!(bodies(&page.frames), ["b", "c", "x", "d"]);
    assert_eq!((page.trimmed_before, page.count), (Some(page.frames[0].id), 5));
    let many = ('e'..='k').map(|c| frame(&c.to_string())).collect();
    world.append(&task, many).await;
    let page = world.output(task.execution_id, 0).await;
    assert_eq!((bodies(&page.frames).concat(), page.count), ("xijk".to_owned(), 12));
    assert_eq!(page.frames[0].id, appended[1].id);
}

pub async fn ten_thousand_durable_frames_are_kept_by_default(world: &World) {
    let task = world.start(world.work()).await;
    let appended = world.append_all(&task, numbered(FrameMode::Durable, 10_000)).await;
    let page = world.output(task.execution_id, 0).await;
    assert_eq!((page.frames.len(), page.more, page.trimmed_before), (10_000, false, None));
    world.append(&task, vec![frame("one more")]).await;
    let page = world.output(task.execution_id, 0).await;
    assert_eq!((page.frames.len(), page.count), (10_000, 10_001));
    assert_eq!(page.trimmed_before, Some(appended[1].id));
}

pub async fn a_limit_below_an_append_keeps_its_newest(world: &World) {
    for maxlen in [1, 3] {
        let policy = format!(r#"{{"stream_policy":{{"retention_maxlen":{maxlen}}}}}"#);
        let task = world.start(world.work_with(&policy)).await;
        for round in 1..=2 {
            let appended = world.append(&task, numbered(FrameMode::Durable, 10)).await;
            assert_eq!(appended.len(), 10, "each is answered");
            let page = world.output(task.execution_id, 0).await;
            let kept: Vec<_> = (10 - maxlen..10).map(|n| n.to_string()).collect();
            assert_eq!((bodies(&page.frames), page.count), (kept, 10 * round));
            assert_eq!(page.trimmed_before, Some(appended[10 - maxlen].id));
        }
    }
}

pub async fn no_mode_removes_frames_of_another(world: &World) {
    let policy = r#"{"stream_policy":{"retention_maxlen":5}}"#;
    let task = world.start(world.work_with(policy)).await;
    let few = FrameMode::ALL.map(|mode| numbered(mode, 5)).concat();
    world.append(&task, few).await;
    for mode in FrameMode::ALL {
        let before = world.output(task.execution_id, 0).await.frames;
        world.append_all(&task, numbered(mode, 150)).await;
        let after = world.output(task.execution_id, 0).await.frames;
        for other in FrameMode::ALL.into_iter().filter(|other| *other != mode) {
            let of = |frames: &[ff_core::state::Frame]| {
                let same = frames.iter().filter(|frame| frame.mode == other);
                same.cloned().collect::<Vec<_>>()
            };
            assert_eq!(of(&after), of(&before), "{mode:?} pushed out {other:?}");
        }
    }
    let frames = world.output(task.execution_id, 0).await.frames;
    let kept = FrameMode::ALL.map(|mode| count_of(&frames, mode));
    assert_eq!(kept, [5, 64, 155], "durable, patches, best effort");
}

pub async fn the_newest_64_patches_stay_readable(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let patches = numbered(FrameMode::DurableSummary, 65);
    let mut appended = world.append(&task, patches[..64].to_vec()).await;
    let page = world.output(id, 0).await;
    assert_eq!((page.frames.len(), page.trimmed_before), (64, None));
    appended.extend(world.append(&task, patches[64..].to_vec()).await);
    let page = world.output(id, 0).await;
    let expected: Vec<_> = patches[1..].iter().map(|patch| patch.content.bytes.clone()).collect();
    let kept: Vec<_> = page.frames.iter().map(|frame| frame.content.bytes.clone()).collect();
    assert_eq!(kept, expected);
    assert_eq!((page.trimmed_before, page.count), (Some(appended[1].id), 65));
    // The document has them all.
    let summary = world.summary(id, 0).await;
    assert_eq!(summary.version, 65);
    assert!(summary.document.starts_with(r#"{"0":0,"1":1,"#), "{}", summary.document);
    assert!(summary.document.ends_with(r#","64":64}"#), "{}", summary.document);
}

pub async fn who_begins_with_what_is_kept_is_told_of_nothing(world: &World) {
    let task = world.start(world.work_with(KEEP_3)).await;
    let id = task.execution_id;
    let mut ids = Vec::new();
    for body in ["a", "b", "c", "d", "e"] {
        ids.push(world.print(&task, body).await);
        world.advance(10).await;
    }
    let all = ReadStream::all(id, 0);
    let oldest = Some(ids[2]);
    let texts: Vec<_> = ids.iter().map(ToString::to_string).collect();
    for (from, to, told) in [
        ("start", "end", oldest),
        (&*texts[0], "end", oldest),
        (&*texts[1], &*texts[1], oldest),
        (&*texts[2], "end", None),
        (&*texts[4], "end", None),
        ("end", "end", None),
    ] {
        let page = world.between(&all, from, to).await;
        assert_eq!(page.trimmed_before, told, "{from} to {to}");
    }
    assert_eq!(world.peek(id, 0, ids[0]).await.trimmed_before, oldest);
    assert_eq!(world.peek(id, 0, ids[2]).await.trimmed_before, None);
}

pub async fn each_mode_tells_of_its_own(world: &World) {
    let task = world.start(world.work_with(KEEP_3)).await;
    let id = task.execution_id;
    let first = world.append(&task, vec![patch(r#"{"first":1}"#)]).await[0].id;
    let durable = world.append(&task, numbered(FrameMode::Durable, 4)).await;
    let page = world.output(id, 0).await;
    assert_eq!(page.frames[0].id, first, "the patch is older than what is told");
    assert_eq!(page.trimmed_before, Some(durable[1].id));
    let patches = world.append(&task, numbered(FrameMode::DurableSummary, 64)).await;
    assert_eq!(world.output(id, 0).await.trimmed_before, Some(durable[1].id), "the earlier one");
    world.append(&task, numbered(FrameMode::Durable, 3)).await;
    assert_eq!(world.output(id, 0).await.trimmed_before, Some(patches[0].id));
}

pub async fn what_is_not_asked_for_is_not_told_of(world: &World) {
    let task = world.start_long(world.work()).await;
    world.append(&task, vec![frame("a"), fleeting("x")]).await;
    world.advance(60_000).await;
    let all = ReadStream::all(task.execution_id, 0);
    assert!(world.read(all.clone()).await.trimmed_before.is_some());
    let visibility = Visibility::ExcludeBestEffort;
    let page = world.read(ReadStream { visibility, ..all }).await;
    assert_eq!((bodies(&page.frames), page.trimmed_before), (vec!["a".to_owned()], None));
}

pub async fn every_attempt_has_its_own_limits(world: &World) {
    let task = world.start(world.work_with(KEEP_3)).await;
    world.append(&task, numbered(FrameMode::Durable, 3)).await;
    world.act(fail(&task, "transient")).await;
    world.pass(60_000).await;
    let next = world.claim_one().await;
    world.append(&next, numbered(FrameMode::Durable, 4)).await;
    let [first, second] =
        [world.output(task.execution_id, 0).await, world.output(task.execution_id, 1).await];
    assert_eq!((bodies(&first.frames[..3]).concat(), first.trimmed_before), ("012".into(), None));
    assert_eq!((bodies(&second.frames).concat(), second.count), ("123".into(), 4));
}
