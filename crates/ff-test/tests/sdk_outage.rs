//! A store that is gone for half a minute: the runtime waits, says so once, and loses nothing.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ff_core::backend::BackendExt as _;
use ff_core::id::{ExecutionId, Kind};
use ff_core::operation::Submit;
use ff_core::read::Describe;
use ff_core::state::PublicState;
use ff_sdk::runtime::{Data, WorkerRuntime};
use ff_sdk::{Client, FlowFabricWorker, WorkerConfig};
use ff_test::sdk::{Running, eventually};
use ff_test::servers::{Persistence, Server, ServerOptions};
use ff_test::world::{PATIENCE, lane};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use uuid::Uuid;

const OUTAGE: Duration = Duration::from_secs(30);
const TASKS: usize = 6;
const SLOTS: usize = 4;

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// The log of this process from now on.
    fn start() -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false);
        subscriber.with_writer(move || writer.clone()).init();
        log
    }

    fn lines_with(&self, text: &str) -> usize {
        let log = self.0.lock().unwrap();
        String::from_utf8_lossy(&log).lines().filter(|line| line.contains(text)).count()
    }
}

async fn submit(client: &Client) -> ExecutionId {
    let id = ExecutionId::solo(Uuid::now_v7(), &client.backend().settings().partitions);
    let submit = Submit::new(id, lane("work"), Kind::new("k").unwrap());
    client.backend().call(submit).await.unwrap();
    id
}

async fn is_completed(client: &Client, id: ExecutionId) -> Option<()> {
    let record = client.backend().ask(Describe { execution_id: id }).await.ok()??;
    (record.state.public_state == PublicState::Completed).then_some(())
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_minute_without_the_store() {
    let log = Log::start();
    let options = ServerOptions { persistence: Persistence::AppendAlways, ..Default::default() };
    let server = Server::start(options);
    let config = WorkerConfig::new("w").url(server.url()).lane("work").engine(true);
    let config = config.max_concurrent_tasks(SLOTS);
    let worker = FlowFabricWorker::connect(config).await.unwrap();
    let client = worker.client();
    let (said, mut begun) = mpsc::unbounded_channel::<()>();
    let may_end = Arc::new(Semaphore::new(0));
    let work = |said: Data<mpsc::UnboundedSender<()>>, gate: Data<Arc<Semaphore>>| async move {
        let _ = said.send(());
        gate.acquire().await.unwrap().forget();
    };
    let runtime = WorkerRuntime::new(worker).data(said).data(Arc::clone(&may_end));
    let running = Running::start(runtime.on("k", work));

    let mut ids = Vec::new();
    for _ in 0..TASKS {
        ids.push(submit(&client).await);
    }
    for _ in 0..SLOTS {
        timeout(PATIENCE, begun.recv()).await.expect("in time").expect("a handler");
    }
    server.kill();
    // Two handlers end into nothing, the others lose their leases meanwhile, and nothing begins.
    may_end.add_permits(2);
    timeout(OUTAGE, begun.recv()).await.unwrap_err();
    assert_eq!(log.lines_with("the store does not answer"), 1, "it is said once");

    server.restart();
    may_end.add_permits(Semaphore::MAX_PERMITS / 2);
    for id in ids {
        eventually("completed", || is_completed(&client, id)).await;
    }
    assert_eq!(log.lines_with("the store does not answer"), 1);
    assert_eq!(log.lines_with("the store answers again"), 1);
    running.stop().await;
}
