//! The HTTP API: submits one by one and in batches, and how soon a claim that waits is answered.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use ff_engine::Shutdown;
use ff_server::{Server, ServerOptions};
use reqwest::Client;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::command::{Named, OnStore};
use super::{Faults, Latencies, Measured, Target, progress};

/// Longer than any answer takes on a store that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// Submits over HTTP, one by one and in batches; submit call to the answer of a claim that waits
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench http --store sqlite::memory: --submits 5000")]
pub(crate) struct Http {
    /// How many executions to submit, once one by one and once in batches
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    submits: u64,
    /// Callers at a time, each on a connection of its own
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1000))]
    connections: u64,
    /// Executions in a batch
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1000))]
    batch: u64,
    /// Show a key of the store with every request
    #[arg(long)]
    with_key: bool,
    /// How many waiting claims to time
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
}

impl Named for Http {
    const NAME: &'static str = "http";
}

/// A server on loopback, and who calls it.
#[derive(Clone)]
struct Caller {
    base: String,
    client: Client,
    lane: String,
    claim: Value,
}

impl OnStore for Http {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let (stop, shutdown) = Shutdown::channel();
        let listen_addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = ServerOptions { listen_addr, ..ServerOptions::default() };
        let server = Server::bind(Arc::clone(&target.backend), options, shutdown).await?;
        let mut caller = Caller::new(server.local_addr()?, target)?;
        let server = tokio::spawn(server.run());
        let key_id = if self.with_key { Some(caller.log_in().await?) } else { None };
        let faults = Faults::default();
        let sampling = self.sample(&caller, &faults);
        let measured = target.timed(self.samples, sampling).await?;
        let singles = self.submit_all(&caller, 1, &faults).await?;
        let batched = self.submit_all(&caller, self.batch, &faults).await?;
        if let Some(key_id) = key_id {
            caller.log_out(&key_id).await?;
        }
        stop.send_replace(true);
        drop(caller);
        server.await?;
        let own = vec![("submits_per_s", Some(singles)), ("batched_submits_per_s", Some(batched))];
        let throughput_per_s = Some(singles);
        Ok(Measured { errors: faults.count(), own, throughput_per_s, ..measured })
    }
}

impl Http {
    /// Submits them all, so many in a call, and gives how many a second it were.
    async fn submit_all(
        &self,
        caller: &Caller,
        batch: u64,
        faults: &Faults,
    ) -> anyhow::Result<f64> {
        let calls = self.submits.div_ceil(batch);
        let left = Arc::new(AtomicU64::new(calls));
        let bar = progress::bar("submitting", calls);
        let begun = Instant::now();
        let mut callers = JoinSet::new();
        for _ in 0..self.connections {
            let (caller, left, bar) = (caller.clone(), Arc::clone(&left), bar.clone());
            callers.spawn(async move {
                let took = |left: u64| left.checked_sub(1);
                let (relaxed, mut failed) = (Ordering::Relaxed, Vec::new());
                while left.fetch_update(relaxed, relaxed, took).is_ok() {
                    failed.extend(caller.submit(batch).await.err());
                    bar.inc(1);
                }
                failed
            });
        }
        while let Some(failed) = callers.join_next().await {
            failed?.iter().for_each(|error| faults.note(error));
        }
        bar.finish_and_clear();
        Ok((calls * batch) as f64 / begun.elapsed().as_secs_f64())
    }

    /// Times claims that wait for work.
    async fn sample(&self, caller: &Caller, faults: &Faults) -> anyhow::Result<Latencies> {
        let mut latencies = Latencies::new()?;
        let bar = progress::bar("claiming", self.samples);
        for _ in 0..self.samples {
            let waiter = caller.clone();
            let waiting = tokio::spawn(async move { (waiter.claim().await, Instant::now()) });
            caller.ask("/livez").await?;
            let begun = Instant::now();
            caller.submit(1).await?;
            let (claimed, at) = waiting.await?;
            match claimed? {
                1 => latencies.record(at - begun),
                other => faults.note(&format!("a claim was answered with {other} tasks")),
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(latencies)
    }
}

fn client(headers: HeaderMap) -> reqwest::Result<Client> {
    let client = Client::builder().tcp_nodelay(true).timeout(2 * PATIENCE);
    client.default_headers(headers).build()
}

impl Caller {
    fn new(addr: SocketAddr, target: &Target) -> anyhow::Result<Self> {
        let claim = target.claim(1);
        let lane = claim.lanes.first().context("a lane")?.lane.to_string();
        let wait_ms = u64::try_from(PATIENCE.as_millis())?;
        let claim = json!({
            "worker_id": claim.worker_id, "worker_instance_id": claim.worker_instance_id,
            "lanes": [lane], "capabilities": [], "wait_ms": wait_ms,
        });
        Ok(Self { base: format!("http://{addr}"), client: client(HeaderMap::new())?, lane, claim })
    }

    /// Shows a new key of the store with every request from here on: its id.
    async fn log_in(&mut self) -> anyhow::Result<String> {
        let made = self.post("/v1/keys", &json!({ "name": "bench" })).await?;
        let text = |field: &str| made[field].as_str().context("a key").map(str::to_owned);
        let bearer = HeaderValue::try_from(format!("Bearer {}", text("key")?))?;
        self.client = client(HeaderMap::from_iter([(AUTHORIZATION, bearer)]))?;
        text("key_id")
    }

    async fn log_out(&self, key_id: &str) -> anyhow::Result<()> {
        let gone = self.client.delete(format!("{}/v1/keys/{key_id}", self.base)).send().await?;
        gone.error_for_status()?;
        Ok(())
    }

    async fn ask(&self, path: &str) -> anyhow::Result<()> {
        let answer = self.client.get(format!("{}{path}", self.base)).send().await?;
        answer.error_for_status()?.bytes().await?;
        Ok(())
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.client.post(format!("{}{path}", self.base)).json(body);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }

    async fn submit(&self, batch: u64) -> anyhow::Result<()> {
        let submit =
            json!({ "lane": self.lane, "kind": "bench", "payload_json": { "to": "a@b.c" } });
        if batch == 1 {
            self.post("/v1/executions", &submit).await?;
            return Ok(());
        }
        let items: Vec<&Value> = (0..batch).map(|_| &submit).collect();
        self.post("/v1/executions/batch", &json!({ "items": items })).await?;
        Ok(())
    }

    /// How many tasks a waiting claim got.
    async fn claim(&self) -> anyhow::Result<usize> {
        let reply = self.post("/v1/leases", &self.claim).await?;
        Ok(reply["tasks"].as_array().map_or(0, Vec::len))
    }
}
