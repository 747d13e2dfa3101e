//! One member, then many, then one again.

use std::time::Instant;

use clap::Args;
use ff_core::backend::BackendExt as _;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::chain::wait_for;
use super::command::{Named, OnStore};
use super::crew::{Crew, Graph, Started};
use super::{Latencies, Measured, Target, progress};

/// 1 -> n -> 1: from the submit call to the start of the member that joins
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench fanout --store sqlite::memory: --n 1000")]
pub(crate) struct Fanout {
    /// Members between the first and the last
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1998))]
    n: u32,
    /// How many such flows to time, one after the other
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    /// Workers that wait for work
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: u32,
    /// Tasks that a worker takes at once
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    batch: u32,
}

impl Named for Fanout {
    const NAME: &'static str = "fanout";
}

impl OnStore for Fanout {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let (sender, mut started) = unbounded_channel();
        let crew = Crew::hire(target, self.workers, self.batch, &sender);
        let measured = target.timed(self.samples, self.sample(target, &mut started)).await?;
        crew.dismiss().await?;
        Ok(measured)
    }
}

impl Fanout {
    async fn sample(
        &self,
        target: &Target,
        started: &mut UnboundedReceiver<Started>,
    ) -> anyhow::Result<Latencies> {
        let mut latencies = Latencies::new()?;
        let bar = progress::bar("fan-outs", self.samples);
        let edges: Vec<_> = (1..=self.n).flat_map(|n| [(0, n), (n, self.n + 1)]).collect();
        for _ in 0..self.samples {
            let graph = Graph::new(target, self.n + 2, &edges)?;
            let last = graph.member(self.n as usize + 1)?;
            let begun = Instant::now();
            target.backend.submit_graph(graph.submit).await?;
            latencies.record(wait_for(started, |id| id == last).await? - begun);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(latencies)
    }
}
