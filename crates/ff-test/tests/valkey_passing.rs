//! Entries of no use at the front of queues: expired, missing and broken ones. Claims get past them, in
//! calls that are short, to what stands behind.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::{LibraryClock, ValkeyOptions, ValkeyStore};
use ff_core::backend::{BackendExt, Upkeep};
use ff_core::id::{ExecutionId, Kind};
use ff_core::operation::{Claim, Submit, Task};
use ff_core::partition::PartitionConfig;
use ff_core::tally::Counted;
use ff_test::registered::registration_of;
use ff_test::servers::{Server, ServerOptions};
use ff_test::stages::BEGINNING;
use ff_test::workload;
use tokio::task::JoinSet;
use uuid::Uuid;

const DEADLINE_MS: u64 = 1_000;

/// As in `lua/claim.lua`.
const PASSED_MOST: u64 = 64;

/// The queue of all that is submitted here, in partition 5.
const QUEUE: &str = "ff:idx:{fp:5}:lane:default/faults:-:eligible";
const READY: &str = "ff:idx:{fp:5}:lane:default/faults:ready";

/// A process on a server with a settable clock.
async fn open(server: &Server, partitions: u16) -> Arc<ValkeyStore> {
    let options: ValkeyOptions = server.url().parse().unwrap();
    let counts = PartitionConfig { flow: partitions, ..PartitionConfig::default() };
    let store = ValkeyStore::open(ValkeyOptions {
        clock: LibraryClock::Settable,
        partitions: Some(counts).into(),
        ..options
    });
    let store = store.await.unwrap();
    store.set_clock(BEGINNING).await.unwrap();
    store.call(registration_of(&claim(1))).await.unwrap();
    Arc::new(store)
}

fn claim(max: u32) -> Claim {
    Claim { max, ..workload::claim(0) }
}

fn work(partition: u16) -> Submit {
    let id = ExecutionId::new(partition, Uuid::now_v7());
    let lane = claim(1).lanes[0].lane.clone();
    Submit::new(id, lane, Kind::new("passing").unwrap())
}

async fn claim_now(store: &ValkeyStore, max: u32) -> Vec<ExecutionId> {
    let tasks = store.claim(claim(max), Duration::ZERO).await.unwrap();
    tasks.iter().map(|task: &Task| task.execution_id).collect()
}

/// Submits so many in each of these partitions whose deadlines have passed; then one that stands behind.
async fn expired(store: &ValkeyStore, each: usize, partitions: u16) -> ExecutionId {
    let all = (0..partitions).flat_map(|partition| (0..each).map(move |_| work(partition)));
    let deadline = Some(BEGINNING.after(DEADLINE_MS));
    let all: Vec<_> =
        all.map(|submit| Submit { execution_deadline_at: deadline, ..submit }).collect();
    for batch in all.chunks(1000) {
        for submitted in store.submit_batch(batch.to_vec()).await.unwrap() {
            submitted.unwrap();
        }
    }
    store.set_clock(BEGINNING.after(DEADLINE_MS)).await.unwrap();
    let behind = work(0);
    let id = behind.execution_id;
    store.call(behind).await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_gets_past_thousands_of_expired_executions() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server, 4).await;
    let behind = expired(&store, 2_000, 4).await;
    assert_eq!(claim_now(&store, 1).await, [behind]);
    assert_eq!(claim_now(&store, 1).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_gets_past_expired_executions_in_many_partitions() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server, 300).await;
    let behind = expired(&store, 2, 300).await;
    assert_eq!(claim_now(&store, 1).await, [behind]);
}

/// How often a command was called, as the server counts it.
fn calls(server: &Server, command: &str) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]).unwrap();
    let name = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// One call of the function, for one task of the queue.
fn call_once(server: &Server) {
    let (most, ttl, until) = ("1000000", "1000", BEGINNING.after(1_000_000).0.to_string());
    let last = i64::MAX >> 10;
    let words: [&[u8]; 22] = [
        b"FCALL",
        b"ff_claim",
        b"1",
        b"ff:ev:{fp:5}",
        b"1",
        b"ff",
        b"0",
        b"1", // one claim
        b"default",
        b"faults",
        ttl.as_bytes(),
        b"who",
        b"tail",
        most.as_bytes(),
        b"0",
        b"own",
        until.as_bytes(),
        b"1", // one queue
        b"{fp:5}",
        b"default/faults:-",
        &last.to_string().into_bytes(),
        &[0xff; 16],
    ];
    let lease_id: &[u8] = &[7; 16];
    server.pieces(&[&words[..], &[lease_id]].concat()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_looks_at_few_expired_entries() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server, 6).await;
    expired(&store, 500, 6).await;
    server.command(&["CONFIG", "RESETSTAT"]).unwrap();
    call_once(&server);
    assert_eq!(calls(&server, "get"), PASSED_MOST);
}

/// Entries in front of all others that name nothing.
fn name_nothing(server: &Server, count: u128) {
    let ids: Vec<_> = (1..=count).map(|n| *Uuid::from_u128(n).as_bytes()).collect();
    for part in ids.chunks(1000) {
        let entries = part.iter().flat_map(|id| [&b"1"[..], &id[..]]);
        let words: Vec<&[u8]> =
            [&b"ZADD"[..], QUEUE.as_bytes()].into_iter().chain(entries).collect();
        server.pieces(&words).unwrap();
    }
    server.command(&["ZADD", READY, "LT", "1", "-"]).unwrap();
}

fn violations(store: &ValkeyStore) -> u64 {
    let counts = store.tally().counts();
    counts.counted.get(&Counted::Violation).and_then(|of| of.get("I10")).copied().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_gets_past_thousands_of_entries_that_name_nothing() {
    const MISSING: u64 = 9_000;
    let server = Server::start(ServerOptions::default());
    let store = open(&server, 6).await;
    let behind = work(5);
    store.call(behind.clone()).await.unwrap();
    name_nothing(&server, MISSING.into());
    server.command(&["CONFIG", "RESETSTAT"]).unwrap();
    call_once(&server);
    assert_eq!(calls(&server, "get"), PASSED_MOST);
    assert_eq!(claim_now(&store, 1).await, [behind.execution_id]);
    assert_eq!(violations(&store), MISSING - PASSED_MOST, "each is counted by who moved it aside");
    assert_eq!(server.command(&["ZCARD", QUEUE]).unwrap(), "0");
}

/// Records that were damaged, and what has become of each.
const DAMAGED: [(&str, &[u8]); 4] = [
    ("shorter than its head", b"broken"),
    ("without what its head promises", &[0xff; 40]),
    ("with a claim that nobody noted", &[0x01; 400]),
    ("with a body that cannot be read", &[0x00; 60]),
];

/// A queue with damaged records, and with an entry that is no id, before one that is sound.
async fn damaged(server: &Server, store: &ValkeyStore) -> ExecutionId {
    for (_, record) in DAMAGED {
        let submit = work(5);
        let key = format!("ff:exec:{}:core", submit.execution_id);
        store.call(submit).await.unwrap();
        server.pieces(&[b"SET", key.as_bytes(), record]).unwrap();
    }
    server.pieces(&[b"ZADD", QUEUE.as_bytes(), b"1", b"no id"]).unwrap();
    server.command(&["ZADD", READY, "LT", "1", "-"]).unwrap();
    let sound = work(5);
    store.call(sound.clone()).await.unwrap();
    sound.execution_id
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_damaged_is_moved_aside_and_told_of() {
    for max in [1, 20] {
        let server = Server::start(ServerOptions::default());
        let store = open(&server, 6).await;
        let sound = damaged(&server, &store).await;
        assert_eq!(claim_now(&store, max).await, [sound], "of {max}");
        assert_eq!(violations(&store), DAMAGED.len() as u64 + 1, "of {max}");
        assert_eq!(server.command(&["ZCARD", QUEUE]).unwrap(), "0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_damaged_stops_nobody_who_claims_at_the_same_time() {
    const CLAIMS: usize = 20;
    let server = Server::start(ServerOptions::default());
    let store = open(&server, 6).await;
    let mut sound = vec![damaged(&server, &store).await];
    for partition in 0..CLAIMS as u16 - 1 {
        let submit = work(partition % 6);
        sound.push(submit.execution_id);
        store.call(submit).await.unwrap();
    }
    let mut claims = JoinSet::new();
    for _ in 0..CLAIMS {
        let store = Arc::clone(&store);
        claims.spawn(async move { claim_now(&store, 1).await });
    }
    let mut claimed = claims.join_all().await.concat();
    claimed.sort();
    sound.sort();
    assert_eq!(claimed, sound);
}

/// Past its deadline, and the machine that should end it cannot read it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_expired_and_damaged_is_moved_aside() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server, 6).await;
    let deadline = Some(BEGINNING.after(DEADLINE_MS));
    for _ in 0..2 * PASSED_MOST {
        let submit = Submit { execution_deadline_at: deadline, ..work(5) };
        let key = format!("ff:exec:{}:core", submit.execution_id);
        store.call(submit).await.unwrap();
        let mut record = server.pieces(&[b"GET", key.as_bytes()]).unwrap().remove(0);
        record.truncate(record.len() - 4);
        server.pieces(&[b"SET", key.as_bytes(), &record]).unwrap();
    }
    store.set_clock(BEGINNING.after(DEADLINE_MS)).await.unwrap();
    let sound = work(5);
    store.call(sound.clone()).await.unwrap();
    assert_eq!(claim_now(&store, 1).await, [sound.execution_id]);
    assert_eq!(violations(&store), 2 * PASSED_MOST);
}
