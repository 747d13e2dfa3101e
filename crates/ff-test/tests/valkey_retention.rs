//! What retention leaves on Valkey: nothing of what is gone, and all of what is not.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeSet;
use std::sync::Arc;

use ff_backend_valkey::{LibraryClock, ValkeyOptions, ValkeyStore};
use ff_core::backend::{BackendExt, Upkeep as _};
use ff_core::id::{ExecutionId, Kind, LaneId, PartitionFamily};
use ff_core::operation::{Submit, Trim, Trimmed};
use ff_core::read::{Filter, Search};
use ff_core::state::FrameMode;
use ff_core::time::TimestampMs;
use ff_test::output::{fleeting, frame, patch};
use ff_test::servers::{self, Server, ServerOptions, wait_until};
use ff_test::stages::{InItsTime, ValkeyStage};
use ff_test::world::{PATIENCE, World};

const HOUR: i64 = 3_600_000;

/// All that a search finds, page by page; nothing twice.
async fn found(world: &World) -> BTreeSet<ExecutionId> {
    let (mut found, mut cursor) = (BTreeSet::new(), None);
    let mut last = None;
    loop {
        let search = Search { filter: Filter::default(), cursor, limit: 7 };
        let page = world.backend.ask(search).await.unwrap();
        for record in &page.items {
            let place = (record.created_at, record.execution_id);
            assert!(last.is_none_or(|last| place < last), "newest first");
            last = Some(place);
            assert!(found.insert(record.execution_id), "found twice");
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return found;
        }
    }
}

async fn trim_all(world: &World) {
    let events_before = TimestampMs(world.now().await.0 - 24 * HOUR);
    let trim = Trim { events_before, event_bytes: u64::MAX, most: 100 };
    while world.backend.trim(trim.clone()).await.unwrap().more {}
}

#[tokio::test(flavor = "multi_thread")]
async fn what_outlives_its_list_is_still_found_and_the_rest_leaves_nothing() {
    let stage = ValkeyStage::standalone(Default::default()).await;
    let prefix = stage.prefix().to_owned();
    let world = World::new(stage);
    let mut kept = BTreeSet::new();
    for n in 0..90 {
        if n % 3 == 0 {
            let id = world.submit(world.work_on("waits")).await;
            kept.insert(id);
        } else {
            world.finish(world.work()).await;
        }
        world.advance(HOUR / 20).await;
    }
    assert_eq!(found(&world).await.len(), 90);
    // Retention of a day is over for all that has ended.
    world.pass(24 * HOUR).await;
    assert_eq!(found(&world).await, kept);
    world.pass(26 * HOUR).await;
    trim_all(&world).await;
    assert_eq!(found(&world).await, kept);
    let lists = servers::standalone().command(&["KEYS", &format!("{prefix}:*:created*")]).unwrap();
    assert_eq!(lists, "", "lists of submits are left");
    world.audit().await;
    for id in &kept {
        world.act(ff_test::world::cancel(*id)).await;
    }
    world.pass(25 * HOUR).await;
    trim_all(&world).await;
    assert_eq!(found(&world).await, BTreeSet::new());
    let left = servers::standalone().command(&["KEYS", &format!("{prefix}:*")]).unwrap();
    let left: Vec<_> = left
        .lines()
        .filter(|key| {
            !["clock", "config", "ev", "keyring"].iter().any(|f| key.contains(&format!(":{f}:")))
        })
        .filter(|key| !key.contains(":wake:"))
        // Workers stay registered, whatever becomes of their work.
        .filter(|key| !key.contains("{w:") && !key.ends_with(":homes:{g}"))
        .collect();
    assert_eq!(left, Vec::<&str>::new(), "something is left of what is gone");
}

/// When the server removes the frames of each mode, in Unix milliseconds; -1: never, -2: they are
/// not there.
fn frame_expiries(server: &Server, id: ExecutionId) -> [i64; 3] {
    FrameMode::ALL.map(|mode| {
        let (partition, uuid) = (id.partition(), id.uuid());
        let key = format!("ff:exec:{{fp:{partition}}}:{uuid}:frames:0:{}", mode.code());
        server.command(&["PEXPIRETIME", &key]).unwrap().trim().parse().unwrap()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_past_their_time_go_by_themselves() {
    let server = Server::start(ServerOptions::default());
    let store = ValkeyStore::open(server.url().parse().unwrap()).await.unwrap();
    let world = World::new(InItsTime(Arc::new(store)));
    let policy = r#"{"stream_policy":{"retention_ttl_ms":300}}"#;
    let task = world.start(world.work_with(policy)).await;
    let id = task.execution_id;
    let said = vec![frame("a"), patch(r#"{"a":1}"#), fleeting("x")];
    let last = world.append(&task, said).await[2].id;
    let [durable, summary, best_effort] = frame_expiries(&server, id);
    assert_eq!((durable, summary), (-1, -1), "an open stream is kept");
    assert_eq!(best_effort, last.ms + 60_000);
    world.complete(&task).await.unwrap();
    let ended = world.output(id, 0).await.closed.unwrap().at.0;
    let expiries = frame_expiries(&server, id);
    assert!(expiries.iter().all(|at| [ended + 300, -2].contains(at)), "{expiries:?}");
    wait_until("frames are gone", PATIENCE, || frame_expiries(&server, id) == [-2; 3]);
    let page = world.output(id, 0).await;
    assert_eq!((page.frames, page.count), (Vec::new(), 3));
    assert_eq!(page.trimmed_before, Some(last.successor()));
    world.audit().await;
}

/// How often a command was called, as the server counts it.
fn calls(server: &Server, command: &str) -> usize {
    let stats = server.command(&["INFO", "commandstats"]).unwrap();
    let name = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_goes_on_where_there_is_more_by_short_calls() {
    const SUBMITS: usize = 600;
    let server = Server::start(ServerOptions::default());
    let options: ValkeyOptions = server.url().parse().unwrap();
    let options = ValkeyOptions { clock: LibraryClock::Settable, ..options };
    let store = ValkeyStore::open(options).await.unwrap();
    let begun = TimestampMs(1_000 * HOUR);
    store.set_clock(begun).await.unwrap();
    let partitions = store.settings().partitions;
    for _ in 0..SUBMITS {
        let id = ExecutionId::solo_in(7, &partitions);
        let (lane, kind) = (LaneId::new("waits").unwrap(), Kind::new("waits").unwrap());
        store.call(Submit::new(id, lane, kind)).await.unwrap();
    }
    store.set_clock(TimestampMs(begun.0 + 27 * HOUR)).await.unwrap();
    // A process knows by the replies that it gets how late it is.
    store.server_time_ms().await.unwrap();
    server.command(&["CONFIG", "RESETSTAT"]).unwrap();
    let trim = Trim { events_before: TimestampMs(begun.0 + HOUR), event_bytes: 1 << 40, most: 500 };
    let all = Trimmed { events: SUBMITS as u32, ..Trimmed::default() };
    assert_eq!(store.trim(trim).await.unwrap(), all);
    // 50 entries of a log a call, and 256 submits.
    assert_eq!(calls(&server, "xtrim"), SUBMITS / 50);
    assert_eq!(calls(&server, "ltrim"), SUBMITS / 256 + 1);
    let homes = PartitionFamily::ALL.into_iter().flat_map(|family| partitions.homes(family));
    let (homes, again) = (homes.count() + 2, SUBMITS / 50 + SUBMITS / 256 + 1);
    let functions = calls(&server, "fcall");
    assert!(functions <= homes + again, "{functions} calls for {homes} homes and {again} more");
    let lists = server.command(&["KEYS", "ff:*:created*"]).unwrap();
    assert_eq!(lists, "", "lists of submits are left");
}
