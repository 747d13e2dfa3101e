//! A server on an ephemeral port of loopback.

use std::net::SocketAddr;
use std::sync::Arc;

use ff_core::backend::Backend;
use ff_engine::Shutdown;
use ff_observe::Metrics;
use ff_server::{Server, ServerOptions};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Answer, SseEvent, merged};
use crate::world::{PATIENCE, Stage, settle};

/// A live server over a store.
pub struct Site {
    pub backend: Arc<dyn Backend>,
    pub addr: SocketAddr,
    pub client: Client,
    pub metrics: Metrics,
    stage: Arc<dyn Stage>,
    stop: watch::Sender<bool>,
    served: JoinHandle<()>,
}

/// A task that a worker got.
#[derive(Debug, Clone)]
pub struct Task {
    pub id: String,
    pub handle: String,
    pub json: Value,
}

impl Site {
    pub async fn on(stage: impl Stage) -> Self {
        Self::with(stage, ServerOptions::default()).await
    }

    /// Before a store that others use as well.
    pub async fn before(stage: Arc<dyn Stage>) -> Self {
        Self::over(stage, ServerOptions::default()).await
    }

    /// With settings of its own; where it listens is chosen here.
    pub async fn with(stage: impl Stage, options: ServerOptions) -> Self {
        Self::over(Arc::new(stage), options).await
    }

    /// Another server over the same store.
    pub async fn beside(&self, options: ServerOptions) -> Self {
        Self::over(Arc::clone(&self.stage), options).await
    }

    async fn over(stage: Arc<dyn Stage>, options: ServerOptions) -> Self {
        let listen_addr = SocketAddr::from(([127, 0, 0, 1], 0));
        let options = ServerOptions { listen_addr, ..options };
        let (stop, shutdown) = Shutdown::channel();
        let metrics = options.metrics.clone();
        let backend = metrics.around(stage.backend());
        let server = Server::bind(Arc::clone(&backend), options, shutdown).await.unwrap();
        let addr = server.local_addr().unwrap();
        let served = tokio::spawn(server.run());
        let client = Client::builder().timeout(3 * PATIENCE).build().unwrap();
        Self { backend, addr, client, metrics, stage, stop, served }
    }

    /// Wishes it to stop.
    pub fn begin_to_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Stops it, which must not take long.
    pub async fn stop(self) {
        self.begin_to_stop();
        drop(self.client);
        tokio::time::timeout(PATIENCE, self.served).await.expect("it stops").expect("it ran");
    }

    /// Moves the store's clock; what is due by then stays undone.
    pub async fn advance(&self, ms: i64) {
        self.stage.advance(ms).await;
    }

    /// Moves the store's clock and carries out all that is due by then.
    pub async fn pass(&self, ms: i64) {
        self.stage.advance(ms).await;
        settle(&*self.backend).await.expect("what is due is done");
    }

    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        self.client.request(method, format!("http://{}{path}", self.addr))
    }

    pub async fn send(&self, request: RequestBuilder) -> Answer {
        Answer::of(request.send().await.expect("an answer")).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.with_body("POST", path, body).await
    }

    pub async fn with_body(&self, method: &str, path: &str, body: Value) -> Answer {
        self.send(self.request(method, path).body(body.to_string())).await
    }

    /// An act on an execution.
    pub async fn act(&self, id: &str, verb: &str, body: Value) -> Answer {
        self.post(&format!("/v1/executions/{id}/{verb}"), body).await
    }

    /// A part of an execution.
    pub async fn read(&self, id: &str, part: &str) -> Answer {
        self.get(&format!("/v1/executions/{id}{part}")).await
    }

    /// Submits to lane `l`: the id.
    pub async fn submit(&self, fields: Value) -> String {
        let body = merged(json!({ "lane": "l", "kind": "k" }), fields);
        let reply = self.post("/v1/executions", body).await.expect(201);
        reply["execution_id"].as_str().unwrap().to_owned()
    }

    /// Registers worker `w`, instance `w-1`, for lane `l`.
    pub async fn register(&self) {
        let worker = json!({
            "worker_id": "w", "worker_instance_id": "w-1", "boot_id": "b1", "lanes": ["l"],
        });
        let answer = self.post("/v1/workers", worker).await;
        assert!(matches!(answer.status, 200 | 201), "{:?}", answer.json());
    }

    /// Claims one task of lane `l`.
    pub async fn claim(&self) -> Task {
        let claim = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
        let reply = self.post("/v1/leases", claim).await.expect(200);
        Task::from(reply["tasks"][0].clone())
    }

    /// Submits, registers and claims.
    pub async fn start(&self, fields: Value) -> Task {
        let id = self.submit(fields).await;
        self.register().await;
        let task = self.claim().await;
        assert_eq!(task.id, id);
        task
    }

    /// Follows a stream until `enough` or its end.
    pub async fn follow(
        &self,
        request: RequestBuilder,
        enough: impl Fn(&[SseEvent]) -> bool,
    ) -> Vec<SseEvent> {
        let request = request.header("accept", "text/event-stream");
        let mut response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let (mut text, mut events) = (String::new(), Vec::new());
        while !enough(&events) {
            let chunk = tokio::time::timeout(PATIENCE, response.chunk()).await;
            let Some(chunk) = chunk.expect("news in time").expect("a sound stream") else { break };
            text.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some((event, rest)) = text.split_once("\n\n") {
                events.extend(parse(event));
                text = rest.to_owned();
            }
        }
        events
    }
}

impl From<Value> for Task {
    fn from(json: Value) -> Self {
        let text = |name: &str| json[name].as_str().expect("a task").to_owned();
        Self { id: text("execution_id"), handle: text("handle"), json }
    }
}

impl Task {
    /// A body that shows the task's handle.
    pub fn with(&self, fields: Value) -> Value {
        merged(json!({ "handle": self.handle }), fields)
    }
}

/// An event; none for a comment or a hint.
fn parse(text: &str) -> Option<SseEvent> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map(str::to_owned)
    };
    let data = serde_json::from_str(&field("data")?).expect("data is JSON");
    Some(SseEvent { id: field("id"), event: field("event")?, data })
}
