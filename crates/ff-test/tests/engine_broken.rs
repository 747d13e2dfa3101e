//! Records that cannot be read: what is due of them is told and passed over, and holds up nothing else.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ff_backend_sqlite::{Clock, ManualClock, SqliteOptions, SqliteStore};
use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::error::{Code, EngineError};
use ff_core::id::{ExecutionId, Kind};
use ff_core::operation::{GraphMember, Hold, Submit, SubmitFlow, Tick, Ticked};
use ff_core::read::{Due, EventFilter, Follow, From, ReadState};
use ff_core::state::PublicState;
use ff_core::time::TimestampMs;
use ff_engine::{Engine, EngineOptions, Intervals, Shutdown};
use ff_test::graphs::{create_flow, name};
use ff_test::registered::registration_of;
use ff_test::servers::{Cluster, ClusterOptions, Server, ServerOptions};
use ff_test::stages::BEGINNING;
use ff_test::workload;
use rusqlite::{Connection, params};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);

/// Entries of a tick in these tests: fewer than there are broken records.
const MOST: u32 = 8;

fn submit(backend: &dyn Backend, delay_until: TimestampMs) -> Submit {
    let execution_id = ExecutionId::solo(Uuid::now_v7(), &backend.settings().partitions);
    let lane = workload::claim(0).lanes[0].lane.clone();
    let submit = Submit::new(execution_id, lane, Kind::new("test").unwrap());
    Submit { delay_until: Some(delay_until), ..submit }
}

async fn delayed(backend: &dyn Backend, until: TimestampMs) -> ExecutionId {
    let submit = submit(backend, until);
    let id = submit.execution_id;
    backend.call(submit).await.unwrap();
    id
}

async fn state(backend: &dyn Backend, execution_id: ExecutionId) -> PublicState {
    backend.ask(ReadState { execution_id }).await.unwrap().unwrap().public_state
}

async fn close(store: Arc<SqliteStore>) {
    store.shutdown_prepare(PATIENCE).await.unwrap();
}

fn spoil(path: &Path, ids: &[ExecutionId]) {
    let file = Connection::open(path).unwrap();
    for id in ids {
        let spoilt = "UPDATE execution SET core = x'00FF' WHERE id = ?1";
        assert_eq!(file.execute(spoilt, params![id.to_bytes()]).unwrap(), 1);
    }
}

async fn tick(store: &SqliteStore) -> Ticked {
    store.call(Tick { home: None, most: MOST }).await.unwrap()
}

/// When the next thing is due, from the beginning.
async fn next_in(store: &SqliteStore) -> Option<i64> {
    let dues = store.ask(Due).await.unwrap();
    dues.items.first().map(|(_, at)| at.0 - BEGINNING.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_records_hold_up_nothing_however_many_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    let clock = ManualClock::at(BEGINNING);
    let open = || {
        let clock = Clock::Manual(clock.clone());
        let options = SqliteOptions { clock, ..SqliteOptions::file(&path) };
        Arc::new(SqliteStore::open(options).unwrap())
    };
    let store = open();
    let mut broken = Vec::new();
    for _ in 0..2 * MOST + 1 {
        broken.push(delayed(&*store, BEGINNING.after(1_000)).await);
    }
    let sound = delayed(&*store, BEGINNING.after(2_000)).await;
    delayed(&*store, BEGINNING.after(5_000)).await;
    close(store).await;
    spoil(&path, &broken);

    let store = open();
    clock.advance(3_000);
    let ticks = [tick(&store).await, tick(&store).await, tick(&store).await];
    assert_eq!(ticks.each_ref().map(|ticked| ticked.broken), [MOST, MOST, 1]);
    assert_eq!(ticks.each_ref().map(Ticked::total), [0, 0, 1], "what stands behind has its turn");
    assert_eq!(state(&*store, sound).await, PublicState::Waiting);
    assert_eq!(next_in(&store).await, Some(5_000), "nothing asks for a tick until then");
    assert_eq!(tick(&store).await, Ticked::default());

    clock.advance(20_000);
    assert_eq!(next_in(&store).await, Some(1_000), "they stay due, and are tried again");
    assert_eq!(tick(&store).await.broken, MOST);
}

/// A tick is one job of a batch; whoever shares the batch is answered too.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_record_fails_only_who_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    let store = Arc::new(SqliteStore::open(SqliteOptions::file(&path)).unwrap());
    let now = store.server_time_ms().await.unwrap();
    let broken = delayed(&*store, now.after(3_600_000)).await;
    let sound = delayed(&*store, now.after(3_600_000)).await;
    close(store).await;
    spoil(&path, &[broken]);
    let store = SqliteStore::open(SqliteOptions::file(&path)).unwrap();
    let hold = |execution_id| Hold { execution_id, detail: String::new() }.into();
    let replies = store.apply(vec![hold(sound), hold(broken), hold(sound)]).await;
    let codes = replies.iter().map(|reply| reply.as_ref().err().map(EngineError::code));
    assert_eq!(codes.collect::<Vec<_>>(), [None, Some(Code::Corruption), None]);
}

/// Documents: a worker whose registration is over, and the flow of a member whose delay is over.
#[tokio::test(flavor = "multi_thread")]
async fn broken_documents_hold_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    let clock = ManualClock::at(BEGINNING);
    let open = || {
        let clock = Clock::Manual(clock.clone());
        let options = SqliteOptions { clock, ..SqliteOptions::file(&path) };
        Arc::new(SqliteStore::open(options).unwrap())
    };
    let store = open();
    let mut worker = registration_of(&workload::claim(0));
    worker.ttl_ms = 1_000;
    store.call(worker).await.unwrap();
    let flow = create_flow();
    let submit = submit(&*store, BEGINNING.after(60_000));
    let member = Submit {
        execution_id: ExecutionId::for_flow(
            Uuid::now_v7(),
            flow.flow_id,
            &store.settings().partitions,
        ),
        execution_deadline_at: Some(BEGINNING.after(1_000)),
        ..submit
    };
    let members = vec![GraphMember { name: name("a"), submit: member }];
    let (edges, groups, edge_seed) = (Vec::new(), Vec::new(), Uuid::now_v7());
    store.submit_graph(SubmitFlow { flow, members, edges, groups, edge_seed }).await.unwrap();
    let sound = delayed(&*store, BEGINNING.after(120_000)).await;
    close(store).await;
    let file = Connection::open(&path).unwrap();
    let spoilt =
        "UPDATE document SET record = x'00FF' WHERE id LIKE 'worker:%' OR id LIKE 'flow:%'";
    assert_eq!(file.execute(spoilt, []).unwrap(), 2);
    drop(file);

    let store = open();
    clock.advance(130_000);
    let ticked = store.call(Tick { home: None, most: 100 }).await.unwrap();
    assert_eq!((ticked.broken, ticked.total()), (2, 1));
    assert_eq!(state(&*store, sound).await, PublicState::Waiting);
}

/// More broken records than a tick, or a look at a home, takes.
const CROWD: usize = 1_100;

/// A crowd of broken records is due; what is due behind them fires.
async fn an_engine_gets_behind_a_crowd(store: Arc<dyn Backend>, sound: &[ExecutionId]) {
    let mut intervals = Intervals::default();
    // It takes out of the timers what no record says.
    intervals.set("index_reconciler", Duration::from_secs(3600)).unwrap();
    let options = EngineOptions { intervals, ..EngineOptions::default() };
    let engine = Engine::new(Arc::clone(&store), options);
    let report = engine.report();
    let (stop, shutdown) = Shutdown::channel();
    let engine = tokio::spawn(engine.run(shutdown));
    for id in sound {
        let fired = async {
            while state(&*store, *id).await != PublicState::Waiting {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, fired).await.expect("it is held up by broken records");
    }
    let timers = report.status().into_iter().find(|status| status.name == "timers").unwrap();
    assert!(timers.errors as usize >= CROWD, "each is told of: {timers:?}");
    stop.send_replace(true);
    tokio::time::timeout(PATIENCE, engine).await.unwrap().unwrap();
}

/// Delayed executions in one partition: a crowd, two behind it that are due soon after.
fn crowd(backend: &dyn Backend, now: TimestampMs) -> (Vec<Submit>, Vec<Submit>) {
    let partitions = backend.settings().partitions;
    let in_one = |delay| Submit {
        execution_id: ExecutionId::solo_in(7, &partitions),
        ..submit(backend, now.after(delay))
    };
    let crowd = (0..CROWD).map(|_| in_one(CROWD_DELAY_MS)).collect();
    (crowd, vec![in_one(CROWD_DELAY_MS + 1), in_one(CROWD_DELAY_MS + 1_500)])
}

/// Long enough to submit all of them, and to spoil them, however slow this machine is.
const CROWD_DELAY_MS: u64 = 5_000;

async fn submit_all(backend: &dyn Backend, submits: &[Submit]) -> Vec<ExecutionId> {
    for part in submits.chunks(100) {
        let commands = part.iter().cloned().map(Into::into).collect();
        for reply in backend.apply(commands).await {
            reply.unwrap();
        }
    }
    submits.iter().map(|submit| submit.execution_id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_gets_behind_a_crowd_of_broken_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    let store = Arc::new(SqliteStore::open(SqliteOptions::file(&path)).unwrap());
    let (broken, sound) = crowd(&*store, store.server_time_ms().await.unwrap());
    let (broken, sound) = (submit_all(&*store, &broken).await, submit_all(&*store, &sound).await);
    close(store).await;
    spoil(&path, &broken);
    let store = Arc::new(SqliteStore::open(SqliteOptions::file(&path)).unwrap());
    an_engine_gets_behind_a_crowd(store, &sound).await;
}

async fn valkey_gets_behind_a_crowd(url: &str, server: &Server) {
    let store = Arc::new(ValkeyStore::open(url.parse().unwrap()).await.unwrap());
    let (broken, sound) = crowd(&*store, store.server_time_ms().await.unwrap());
    let (broken, sound) = (submit_all(&*store, &broken).await, submit_all(&*store, &sound).await);
    for id in broken {
        let key = format!("ff:exec:{{fp:7}}:{}:core", id.uuid());
        server.command(&["SET", &key, "broken"]).unwrap();
    }
    // A timer of nothing that could ever be there.
    let timers = "ff:idx:{fp:7}:timers";
    server.command(&["ZADD", timers, "1", "no name"]).unwrap();
    let store = Arc::new(ValkeyStore::open(url.parse().unwrap()).await.unwrap());
    an_engine_gets_behind_a_crowd(store, &sound).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn valkey_gets_behind_a_crowd_of_broken_records() {
    let server = Server::start(ServerOptions::default());
    valkey_gets_behind_a_crowd(&server.url(), &server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_gets_behind_a_crowd_of_broken_records() {
    let cluster = Cluster::start(&ClusterOptions::default());
    let owner = cluster.owner_of(cluster.slot_of("x{fp:7}"));
    valkey_gets_behind_a_crowd(&cluster.url(), &cluster.nodes()[owner]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_rests_over_broken_records_and_keeps_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    let store = Arc::new(SqliteStore::open(SqliteOptions::file(&path)).unwrap());
    let now = store.server_time_ms().await.unwrap();
    // Late enough to be a delay however slow this machine is.
    let broken = delayed(&*store, now.after(1_000)).await;
    close(store).await;
    spoil(&path, &[broken]);
    let store = Arc::new(SqliteStore::open(SqliteOptions::file(&path)).unwrap());
    let mut intervals = Intervals::all(Duration::from_millis(50));
    // It takes out of the timers what no record says.
    intervals.set("index_reconciler", Duration::from_secs(3600)).unwrap();
    let options = EngineOptions { intervals, ..EngineOptions::default() };
    let engine = Engine::new(Arc::clone(&store) as Arc<dyn Backend>, options);
    let report = engine.report();
    let (stop, shutdown) = Shutdown::channel();
    let engine = tokio::spawn(engine.run(shutdown));
    let of = |name| report.status().into_iter().find(|status| status.name == name).unwrap();
    let now = store.server_time_ms().await.unwrap();
    let sound = delayed(&*store, now.after(100)).await;
    let seen = async {
        while of("timers").errors == 0
            || of("route_check").cycles < 20
            || state(&*store, sound).await != PublicState::Waiting
        {
            tokio::task::yield_now().await;
        }
    };
    if tokio::time::timeout(PATIENCE, seen).await.is_err() {
        let state = state(&*store, sound).await;
        panic!("{state:?} after {:?} and {:?}", of("timers"), of("route_check"));
    }
    let (timers, others) = (of("timers").cycles, of("route_check").cycles);
    assert!(timers < 10 * others, "{timers} looks at the timers, {others} elsewhere");
    assert_eq!(of("timers").errors, 1, "what rests is not tried again at once");
    stop.send_replace(true);
    tokio::time::timeout(PATIENCE, engine).await.unwrap().unwrap();
}

/// What was submitted first cannot be read: claims and followers go on behind it.
#[tokio::test(flavor = "multi_thread")]
async fn claims_and_followers_go_on_behind_a_broken_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    let store = Arc::new(SqliteStore::open(SqliteOptions::file(&path)).unwrap());
    let now = store.server_time_ms().await.unwrap();
    let broken = delayed(&*store, now).await;
    let sound = delayed(&*store, now).await;
    close(store).await;
    spoil(&path, &[broken]);
    let store = SqliteStore::open(SqliteOptions::file(&path)).unwrap();
    let claim = workload::claim(0);
    store.call(registration_of(&claim)).await.unwrap();
    let tasks = store.claim(claim, Duration::ZERO).await.unwrap();
    assert_eq!(tasks.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [sound]);
    let follow =
        Follow { filter: EventFilter::default(), from: From::Start, limit: 10, each: false };
    let told = store.events(follow, Duration::ZERO).await.unwrap();
    let submitted = |id: ExecutionId| told.items.iter().filter(|it| it.event.subject == id).count();
    assert_eq!((submitted(broken), submitted(sound)), (1, 2), "the one that is claimed twice");
}
