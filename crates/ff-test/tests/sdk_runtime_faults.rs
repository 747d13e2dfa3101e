//! The runtime while its store is down: it waits, nothing is lost, and the log says so once.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ff_core::backend::{Backend, BackendExt as _};
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

/// A worker of a private server, whose handler says that it has begun and ends when it may.
struct Bench {
    server: Server,
    client: Client,
    running: Running,
    begun: mpsc::UnboundedReceiver<()>,
    may_end: Arc<Semaphore>,
    calls: Arc<AtomicU32>,
}

async fn bench() -> Bench {
    let options = ServerOptions { persistence: Persistence::AppendAlways, ..Default::default() };
    let server = Server::start(options);
    let config = WorkerConfig::new("w").url(server.url()).lane("work").engine(true);
    let worker = FlowFabricWorker::connect(config.max_concurrent_tasks(4)).await.unwrap();
    let (client, calls) = (worker.client(), Arc::new(AtomicU32::new(0)));
    let (said, begun) = mpsc::unbounded_channel::<()>();
    let may_end = Arc::new(Semaphore::new(0));
    let (gate, counter) = (Arc::clone(&may_end), Arc::clone(&calls));
    let work = |said: Data<mpsc::UnboundedSender<()>>,
                gate: Data<Arc<Semaphore>>,
                calls: Data<Arc<AtomicU32>>| async move {
        calls.fetch_add(1, Ordering::SeqCst);
        let _ = said.send(());
        gate.acquire().await.unwrap().forget();
    };
    let runtime = WorkerRuntime::new(worker).data(said).data(gate).data(counter);
    let running = Running::start(runtime.on("k", work));
    Bench { server, client, running, begun, may_end, calls }
}

impl Bench {
    fn backend(&self) -> &Arc<dyn Backend> {
        self.client.backend()
    }

    async fn submit(&self) -> ExecutionId {
        let id = ExecutionId::solo(Uuid::now_v7(), &self.backend().settings().partitions);
        let submit = Submit::new(id, lane("work"), Kind::new("k").unwrap());
        eventually("submitted", || async { self.backend().call(submit.clone()).await.ok() }).await;
        id
    }

    async fn begun(&mut self) {
        timeout(PATIENCE, self.begun.recv()).await.expect("in time").expect("a handler");
    }

    async fn let_one_end(&self) {
        self.may_end.add_permits(1);
        eventually("the handler has ended", || async {
            (self.may_end.available_permits() == 0).then_some(())
        })
        .await;
    }

    async fn completed(&self, id: ExecutionId) {
        eventually("completed", || async {
            let record = self.backend().ask(Describe { execution_id: id }).await.ok()??;
            (record.state.public_state == PublicState::Completed).then_some(())
        })
        .await;
    }
}

/// The handler ends while nobody answers; its completion arrives when somebody does.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_paused_while_a_task_ends() {
    let mut bench = bench().await;
    let id = bench.submit().await;
    bench.begun().await;
    bench.server.pause();
    bench.let_one_end().await;
    bench.server.resume();
    bench.completed(id).await;
    assert_eq!(bench.calls.load(Ordering::SeqCst), 1, "one call of the handler");
    bench.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_and_comes_back() {
    let mut bench = bench().await;
    let running = bench.submit().await;
    bench.begun().await;
    bench.server.kill();
    bench.let_one_end().await;
    bench.server.restart();
    bench.completed(running).await;
    let after = bench.submit().await;
    bench.may_end.add_permits(1);
    bench.begun().await;
    bench.completed(after).await;
    assert_eq!(bench.calls.load(Ordering::SeqCst), 2);
    bench.running.stop().await;
}
