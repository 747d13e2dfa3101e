//! The victim of the crash test: works on a store and tells every acknowledgement on a line of its
//! own, until it is killed.
//!
//! `crash_child PATH`: `S id` submitted, `C id epoch` claimed, `D id` completed, `F id` failed or
//! retried, `X id` cancelled.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use ff_backend_sqlite::SqliteStore;
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::content::Content;
use ff_core::id::{ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::operation::{Cancel, Claim, Complete, LaneOrder, LaneShare, Submit, Task};
use ff_core::state::CancelSource;
use ff_engine::{Engine, EngineOptions, Shutdown};
use ff_test::registered::registration_of;
use ff_test::world::{complete, fail};
use uuid::Uuid;

#[tokio::main]
async fn main() {
    let path = std::env::args().nth(1).expect("the path of the store");
    let store = Arc::new(SqliteStore::open_url(&format!("sqlite:{path}")).expect("the store"));
    let backend = Arc::clone(&store) as Arc<dyn Backend>;
    let (_stop, shutdown) = Shutdown::channel();
    tokio::spawn(Engine::new(backend, EngineOptions::default()).run(shutdown));
    let callers: Vec<_> = (0..8)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                if n % 2 == 0 { submit(store).await } else { work(store, n).await }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("a caller");
    }
}

/// One write a line: a line is either told whole or not at all.
fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
}

fn lane() -> LaneId {
    LaneId::new("crash").expect("a lane")
}

async fn submit(store: Arc<SqliteStore>) {
    loop {
        let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
        let kind = Kind::new("crash").expect("a kind");
        let payload = Content::new(id.to_string());
        let submit = Submit { payload, ..Submit::new(id, lane(), kind) };
        store.call(submit).await.expect("a submit");
        tell(&format!("S {id}"));
        if id.uuid().as_u128().is_multiple_of(10) {
            let source = CancelSource::default();
            let cancel = Cancel { execution_id: id, reason: "test".into(), source, fence: None };
            if store.call(cancel).await.is_ok() {
                tell(&format!("X {id}"));
            }
        }
    }
}

async fn work(store: Arc<SqliteStore>, n: u32) {
    loop {
        let claim = Claim {
            namespace: Namespace::default(),
            worker_id: WorkerId::new("victim").expect("a worker"),
            worker_instance_id: WorkerInstanceId::new(format!("victim-{n}")).expect("an instance"),
            lanes: vec![LaneShare::new(lane())],
            order: LaneOrder::Weighted,
            capabilities: Default::default(),
            max: 4,
            lease_ttl_ms: 100,
            seed: Uuid::now_v7(),
            sets_aside: false,
        };
        // The same boot, however often the process begins again.
        store.call(registration_of(&claim)).await.expect("registered");
        let tasks = store.claim(claim, Duration::from_secs(1)).await.expect("a claim");
        for task in tasks {
            tell(&format!("C {} {}", task.execution_id, task.lease_epoch));
            end(&store, &task).await;
        }
    }
}

async fn end(store: &SqliteStore, task: &Task) {
    let id = task.execution_id;
    if id.uuid().as_u128().is_multiple_of(7) {
        if store.call(fail(task, "flaky")).await.is_ok() {
            tell(&format!("F {id}"));
        }
    } else {
        let result = Some(Content::new(task.payload.clone()));
        if store.call(Complete { result, ..complete(task) }).await.is_ok() {
            tell(&format!("D {id}"));
        }
    }
}
