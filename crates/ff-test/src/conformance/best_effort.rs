//! Frames for those who watch now: kept by the rate of their stream, and gone after a minute.

use ff_core::read::ReadStream;
use ff_core::state::{FrameId, FrameMode};

use crate::output::{bodies, count_of, fleeting, frame, ids, numbered};
use crate::world::World;

const MODE: FrameMode = FrameMode::BestEffort;

pub async fn each_goes_after_its_minute(world: &World) {
    let task = world.start_long(world.work()).await;
    let id = task.execution_id;
    world.append(&task, vec![fleeting("x"), frame("a")]).await;
    world.advance(20_000).await;
    world.append(&task, vec![fleeting("y"), fleeting("z")]).await;
    world.advance(39_999).await;
    let page = world.output(id, 0).await;
    assert_eq!((bodies(&page.frames).concat(), page.trimmed_before), ("xayz".to_owned(), None));
    world.advance(1).await;
    let page = world.output(id, 0).await;
    assert_eq!(bodies(&page.frames).concat(), "ayz");
    assert_eq!((page.trimmed_before, page.count), (Some(page.frames[1].id), 4));
    world.advance(19_999).await;
    assert_eq!(bodies(&world.output(id, 0).await.frames).concat(), "ayz");
    world.advance(1).await;
    let page = world.output(id, 0).await;
    assert_eq!((bodies(&page.frames).concat(), page.count), ("a".to_owned(), 4));
}

pub async fn when_all_are_gone_that_is_told(world: &World) {
    let task = world.start_long(world.work()).await;
    let id = task.execution_id;
    let gone = world.append(&task, vec![fleeting("x"), fleeting("y")]).await;
    world.advance(60_000).await;
    let page = world.output(id, 0).await;
    assert_eq!((page.frames, page.count), (Vec::new(), 2));
    assert_eq!(page.trimmed_before, Some(gone[1].id.successor()), "all before what comes next");
    assert_eq!(world.peek(id, 0, gone[0].id).await.trimmed_before, page.trimmed_before);
    assert_eq!(world.peek(id, 0, gone[1].id).await.trimmed_before, None, "it has seen them all");
}

pub async fn what_is_gone_cuts_nothing_behind_it(world: &World) {
    let task = world.start_long(world.work()).await;
    let id = task.execution_id;
    let all = vec![frame("a"), fleeting("x"), frame("b"), fleeting("y"), frame("c")];
    let appended = world.append(&task, all).await;
    world.advance(60_000).await;
    let page = world.output(id, 0).await;
    assert_eq!(bodies(&page.frames).concat(), "abc");
    assert_eq!(page.trimmed_before, Some(appended[4].id), "of the others nothing is gone there");
    assert_eq!(world.peek(id, 0, appended[3].id).await.trimmed_before, None);
    world.append(&task, vec![frame("d")]).await;
    let page = world.peek(id, 0, appended[4].id).await;
    assert_eq!((bodies(&page.frames).concat(), page.trimmed_before), ("d".to_owned(), None));
}

pub async fn the_next_one_comes_behind_those_that_are_gone(world: &World) {
    let task = world.start_long(world.work()).await;
    let id = task.execution_id;
    world.append(&task, numbered(MODE, 70)).await;
    world.advance(60_000).await;
    let next = world.append(&task, vec![fleeting("x")]).await[0];
    assert_eq!(next.count, 71);
    let page = world.output(id, 0).await;
    assert_eq!((bodies(&page.frames), page.trimmed_before), (vec!["x".into()], Some(next.id)));
    world.advance(59_999).await;
    assert_eq!(world.output(id, 0).await.frames.len(), 1, "its minute is its own");
    world.advance(1).await;
    assert_eq!(world.output(id, 0).await.frames.len(), 0);
}

pub async fn a_later_one_does_not_keep_the_earlier_ones(world: &World) {
    let task = world.start_long(world.work()).await;
    let id = task.execution_id;
    world.append(&task, vec![fleeting("x")]).await;
    world.advance(59_999).await;
    let y = world.append(&task, vec![fleeting("y")]).await[0].id;
    world.advance(1).await;
    let page = world.output(id, 0).await;
    assert_eq!((bodies(&page.frames), page.trimmed_before), (vec!["y".into()], Some(y)));
    assert_eq!(bodies(&world.peek(id, 0, FrameId::FIRST).await.frames), ["y"]);
}

pub async fn a_range_before_the_oldest_tells_what_is_gone(world: &World) {
    let task = world.start_long(world.work()).await;
    let x = world.append(&task, vec![fleeting("x")]).await[0].id;
    world.advance(30_000).await;
    let a = world.print(&task, "a").await;
    world.advance(10_000).await;
    let y = world.append(&task, vec![fleeting("y")]).await[0].id;
    world.advance(20_000).await;
    let all = ReadStream::all(task.execution_id, 0);
    let [x, a, y_text] = [x, a, y].map(|id| id.to_string());
    // It matters where a range begins, not where it ends nor what else is in it.
    for (from, to, told) in [
        ("start", "end", Some(y)),
        ("start", &x, Some(y)),
        (&x, &a, Some(y)),
        (&a, &a, Some(y)),
        (&y_text, "end", None),
    ] {
        assert_eq!(world.between(&all, from, to).await.trimmed_before, told, "{from} to {to}");
    }
}

pub async fn at_least_64_are_kept_whatever_the_rate(world: &World) {
    let task = world.start_long(world.work()).await;
    let id = task.execution_id;
    let appended = world.append(&task, numbered(MODE, 100)).await;
    assert_eq!(world.output(id, 0).await.frames.len(), 100);
    world.advance(20_000).await;
    world.append(&task, vec![fleeting("x")]).await;
    let page = world.output(id, 0).await;
    assert_eq!((page.frames.len(), page.count), (64, 101));
    assert_eq!(page.trimmed_before, Some(appended[37].id));
    world.append(&task, vec![fleeting("y")]).await;
    assert_eq!(world.output(id, 0).await.trimmed_before, Some(appended[38].id));
}

pub async fn as_many_as_a_minute_brings_are_kept(world: &World) {
    let task = world.start_long(world.work()).await;
    let id = task.execution_id;
    // 20 a second, of which half are durable: what the stream brings counts, whatever its mode.
    for _ in 0..20 {
        world.append(&task, [numbered(MODE, 10), numbered(FrameMode::Durable, 10)].concat()).await;
        world.advance(1_000).await;
    }
    assert_eq!(count_of(&world.output(id, 0).await.frames, MODE), 200);
    // Of the last ten seconds the oldest has left and none has come: 180 frames are 1080 a minute.
    let appended = ids(&world.append_all(&task, numbered(MODE, 1_000)).await);
    assert_eq!(count_of(&world.output(id, 0).await.frames, MODE), 1_200, "the rate has risen");
    world.advance(9_000).await;
    world.append(&task, vec![fleeting("x")]).await;
    assert_eq!(count_of(&world.output(id, 0).await.frames, MODE), 1_201);
    world.advance(1_000).await;
    // Only the last one is of these ten seconds.
    world.append(&task, vec![fleeting("y")]).await;
    let page = world.output(id, 0).await;
    assert_eq!(count_of(&page.frames, MODE), 64);
    assert_eq!(page.trimmed_before, Some(appended[938]));
}

pub async fn never_more_than_16384_are_kept(world: &World) {
    let task = world.start_long(world.work()).await;
    let appended = world.append_all(&task, numbered(MODE, 16_400)).await;
    let all = ReadStream::all(task.execution_id, 0);
    let page = world.read(all.clone()).await;
    assert_eq!((page.frames.len(), page.more, page.count), (10_000, true, 16_400));
    assert_eq!(page.trimmed_before, Some(appended[16].id));
    let rest = world.between(&all, &appended[10_016].id.to_string(), "end").await;
    assert_eq!((rest.frames.len(), rest.more), (6_384, false));
}
