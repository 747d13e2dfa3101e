//! Output on real stores, from many writers to many who watch: nothing is lost, doubled or out of
//! order.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt};
use ff_core::limits;
use ff_core::operation::Task;
use ff_core::read::{Tail, Visibility};
use ff_core::state::{Frame, FrameId, FrameMode};
use ff_test::output::{append, bodies, fleeting, frame, patch};
use ff_test::stages;
use ff_test::world::{PATIENCE, World};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// As many as make no more patches than are kept, so that all that was written can be read.
const WRITERS: usize = 8;
const APPENDS: usize = 24;
const WATCHERS: usize = 6;
const WAIT: Duration = Duration::from_secs(20);

/// One writer among many: durable frames in order, with others between them.
async fn write(backend: Arc<dyn Backend>, task: Task, writer: usize) -> Vec<FrameId> {
    let mut ids = Vec::new();
    for n in 0..APPENDS {
        let body = format!("{writer}:{n}");
        let frames = match n % 3 {
            0 => vec![frame(&body)],
            1 => vec![fleeting("passing"), frame(&body)],
            _ => vec![frame(&body), patch(&format!(r#"{{"{writer}":{n}}}"#)), fleeting("passing")],
        };
        let appended = backend.call(append(&task, frames)).await.unwrap();
        ids.extend(appended.frames.iter().map(|frame| frame.id));
    }
    ids
}

/// Follows a stream to its end: all that was seen.
async fn watch(backend: Arc<dyn Backend>, task: Task, visibility: Visibility) -> Vec<Frame> {
    let (mut seen, mut after) = (Vec::new(), FrameId::FIRST);
    loop {
        let tail = Tail::after(task.execution_id, task.attempt_index, after);
        let page = backend.tail(Tail { visibility, limit: 40, ..tail }, WAIT).await.unwrap();
        assert_eq!(page.trimmed_before, None);
        after = page.frames.last().map_or(after, |frame| frame.id);
        seen.extend(page.frames);
        if page.closed.is_some() && !page.more {
            return seen;
        }
    }
}

/// The durable frames of each writer are there, each once and in its order.
fn check_seen(seen: &[Frame]) {
    assert!(seen.is_sorted_by(|a, b| a.id < b.id), "ids rise");
    let mut next: BTreeMap<String, usize> = BTreeMap::new();
    let durable: Vec<_> =
        seen.iter().filter(|frame| frame.mode == FrameMode::Durable).cloned().collect();
    for body in bodies(&durable) {
        let (writer, n) = body.split_once(':').unwrap();
        let expected = next.entry(writer.to_owned()).or_default();
        assert_eq!(n.parse::<usize>().unwrap(), *expected, "of writer {writer}");
        *expected += 1;
    }
    assert_eq!(next.len(), WRITERS);
    assert!(next.values().all(|count| *count == APPENDS), "{next:?}");
}

async fn many_write_and_many_watch(world: World) {
    let task = world.start(world.work()).await;
    let (mut writers, mut watchers) = (JoinSet::new(), JoinSet::new());
    for n in 0..WATCHERS {
        let visibility = if n % 2 == 0 { Visibility::All } else { Visibility::ExcludeBestEffort };
        watchers.spawn(watch(Arc::clone(&world.backend), task.clone(), visibility));
    }
    for writer in 0..WRITERS {
        writers.spawn(write(Arc::clone(&world.backend), task.clone(), writer));
    }
    let written = timeout(PATIENCE * 3, writers.join_all()).await.expect("all is written");
    for ids in &written {
        assert!(ids.is_sorted_by(|a, b| a < b), "the ids of one writer rise");
    }
    let mut ids = written.concat();
    ids.sort_unstable();
    world.complete(&task).await.unwrap();
    let page = world.output(task.execution_id, 0).await;
    assert_eq!(page.count, ids.len() as u64);
    assert_eq!(world.summary(task.execution_id, 0).await.version, (WRITERS * APPENDS / 3) as u64);
    check_seen(&page.frames);
    assert!(page.frames.iter().map(|frame| &frame.id).eq(&ids), "what was answered is there");
    let lasting: Vec<_> =
        page.frames.iter().filter(|frame| frame.mode != FrameMode::BestEffort).cloned().collect();
    for seen in timeout(PATIENCE * 3, watchers.join_all()).await.expect("all see the end") {
        let is_all = seen.iter().any(|frame| frame.mode == FrameMode::BestEffort);
        assert!(seen == if is_all { &*page.frames } else { &lasting }, "each frame comes once");
    }
    world.audit().await;
}

/// Whoever reads a summary while it is patched gets document and version of one moment.
async fn summaries_are_read_whole(world: World) {
    let task = world.start(world.work()).await;
    let (backend, id) = (Arc::clone(&world.backend), task.execution_id);
    let writer = tokio::spawn(async move {
        for n in 1..=150 {
            let patch = append(&task, vec![patch(&format!(r#"{{"n":{n}}}"#))]);
            backend.call(patch).await.unwrap();
        }
    });
    while !writer.is_finished() {
        let summary = world.summary(id, 0).await;
        let expected = match summary.version {
            0 => "{}".to_owned(),
            version => format!(r#"{{"n":{version}}}"#),
        };
        assert_eq!(summary.document, expected);
    }
    writer.await.unwrap();
    assert_eq!(world.summary(id, 0).await.version, 150);
}

/// So many tails at once, each of an execution of its own.
async fn each_gets_its_own(world: World, tails: usize) {
    for _ in 0..tails {
        world.submit(world.work()).await;
    }
    let mut tasks = Vec::new();
    while tasks.len() < tails {
        tasks.extend(world.claim(limits::CLAIM_TASKS).await);
    }
    let mut watchers = JoinSet::new();
    for task in &tasks {
        let (backend, id) = (Arc::clone(&world.backend), task.execution_id);
        watchers.spawn(async move {
            let page = backend.tail(Tail::after(id, 0, FrameId::FIRST), WAIT).await.unwrap();
            assert_eq!(bodies(&page.frames), [id.to_string()]);
        });
    }
    // Others are served meanwhile.
    let other = world.start(world.work()).await;
    world.print(&other, "not theirs").await;
    world.complete(&other).await.unwrap();
    for task in &tasks {
        world.print(task, &task.execution_id.to_string()).await;
    }
    timeout(PATIENCE, watchers.join_all()).await.expect("each is answered in time");
    world.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_takes_many_writers_and_watchers() {
    many_write_and_many_watch(stages::sqlite_file().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn valkey_takes_many_writers_and_watchers() {
    many_write_and_many_watch(stages::valkey_standalone().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_valkey_cluster_takes_many_writers_and_watchers() {
    many_write_and_many_watch(stages::valkey_cluster().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_shows_summaries_whole() {
    summaries_are_read_whole(stages::sqlite_file().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn valkey_shows_summaries_whole() {
    summaries_are_read_whole(stages::valkey_standalone().await).await;
    summaries_are_read_whole(stages::valkey_cluster().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_serves_a_thousand_tails() {
    each_gets_its_own(stages::sqlite_file().await, 1_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn valkey_serves_a_thousand_tails() {
    each_gets_its_own(stages::valkey_standalone().await, 1_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_valkey_cluster_serves_a_thousand_tails() {
    each_gets_its_own(stages::valkey_cluster().await, 1_000).await;
}
