//! Linear flows, one step after the other.

use std::collections::HashSet;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use ff_core::backend::BackendExt as _;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::command::{Named, OnStore};
use super::crew::{Crew, Graph, PATIENCE, Started};
use super::{Latencies, Measured, Target, progress};

/// Ten-step chains: how long one takes, and how many a second
///
/// Latency is that of one chain, from the submit call to the start of its last step, one chain after
/// the other; throughput is that of the same number of chains all at once.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench chain --store sqlite::memory: --flows 500")]
pub(crate) struct Chain {
    /// Chains to run one after the other, and again all at once
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    flows: u64,
    /// Steps of a chain
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    steps: u32,
    /// Workers that wait for work
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: u32,
}

impl Named for Chain {
    const NAME: &'static str = "chain";
}

impl OnStore for Chain {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let (sender, mut started) = unbounded_channel();
        let crew = Crew::hire(target, self.workers, 1, &sender);
        let measured = target.timed(self.flows, self.one_by_one(target, &mut started)).await?;
        let begun = Instant::now();
        self.all_at_once(target, &mut started).await?;
        let throughput = self.flows as f64 / begun.elapsed().as_secs_f64();
        crew.dismiss().await?;
        Ok(Measured { throughput_per_s: Some(throughput), ..measured })
    }
}

impl Chain {
    fn graph(&self, target: &Target) -> anyhow::Result<Graph> {
        let edges: Vec<_> = (1..self.steps).map(|n| (n - 1, n)).collect();
        Graph::new(target, self.steps, &edges)
    }

    async fn one_by_one(
        &self,
        target: &Target,
        started: &mut UnboundedReceiver<Started>,
    ) -> anyhow::Result<Latencies> {
        let mut latencies = Latencies::new()?;
        let bar = progress::bar("chains one by one", self.flows);
        for _ in 0..self.flows {
            let graph = self.graph(target)?;
            let last = graph.member(self.steps as usize - 1)?;
            let begun = Instant::now();
            target.backend.submit_graph(graph.submit).await?;
            let at = wait_for(started, |id| id == last).await?;
            latencies.record(at - begun);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(latencies)
    }

    async fn all_at_once(
        &self,
        target: &Target,
        started: &mut UnboundedReceiver<Started>,
    ) -> anyhow::Result<()> {
        let bar = progress::bar("chains at once", self.flows);
        let mut open = HashSet::new();
        let mut submits = Vec::new();
        for _ in 0..self.flows {
            let graph = self.graph(target)?;
            open.insert(graph.member(self.steps as usize - 1)?);
            submits.push(graph.submit.into());
        }
        for reply in target.backend.apply(submits).await {
            reply?;
        }
        while !open.is_empty() {
            wait_for(started, |id| open.remove(&id)).await?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
    }
}

/// When the next task that is wanted was started.
pub(super) async fn wait_for(
    started: &mut UnboundedReceiver<Started>,
    mut wanted: impl FnMut(ff_core::id::ExecutionId) -> bool,
) -> anyhow::Result<Instant> {
    loop {
        let next = tokio::time::timeout(PATIENCE, started.recv()).await;
        let next = next.context("no worker took it up")?.context("the workers are gone")?;
        if wanted(next.task.execution_id) {
            return Ok(next.at);
        }
    }
}
