//! A group that decides, and all its other upstreams.

use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use ff_core::backend::BackendExt as _;
use ff_core::event::EventKind;
use ff_core::id::LeaseId;
use ff_core::limits;
use ff_core::operation::{IssueGrantAndClaim, Release, TakenSlots};
use ff_core::state::{Join, OnSatisfied};
use serde::Serialize;
use tokio::sync::mpsc::unbounded_channel;

use super::command::{Named, OnStore};
use super::crew::{Crew, Graph, Watch};
use super::target::complete;
use super::{Latencies, Measured, Target, progress};

/// From the completion that decides a quorum of one to the last of the other n - 1 cancelled
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench quorum_cancel --store sqlite::memory: --n 1000")]
pub(crate) struct QuorumCancel {
    /// Members of the group
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..=1999))]
    n: u32,
    /// How many groups to time, one after the other
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
}

impl Named for QuorumCancel {
    const NAME: &'static str = "quorum_cancel";
}

impl OnStore for QuorumCancel {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let (sender, _started) = unbounded_channel();
        // Nobody claims: the engine alone is at work.
        let crew = Crew::hire(target, 0, 1, &sender);
        let measured = target.timed(self.samples, self.sample(target)).await?;
        crew.dismiss().await?;
        Ok(measured)
    }
}

impl QuorumCancel {
    async fn sample(&self, target: &Target) -> anyhow::Result<Latencies> {
        let mut latencies = Latencies::new()?;
        let bar = progress::bar("groups", self.samples);
        let edges: Vec<_> = (0..self.n).map(|n| (n, self.n)).collect();
        let join = Join::Quorum(1, OnSatisfied::CancelRemaining);
        for _ in 0..self.samples {
            let graph = Graph::new(target, self.n + 1, &edges)?.join(self.n, join)?.held();
            let first = graph.member(0)?;
            target.backend.submit_graph(graph.submit).await?;
            target.backend.call(Release { execution_id: first }).await?;
            let claim = target.claim(1);
            let task = target
                .backend
                .call(IssueGrantAndClaim {
                    execution_id: first,
                    worker_id: claim.worker_id,
                    worker_instance_id: claim.worker_instance_id,
                    lease_id: LeaseId::mint(),
                    lease_ttl_ms: limits::LEASE_TTL_MS,
                    slots: TakenSlots::default(),
                })
                .await
                .context("the first member")?;
            let mut watch = Watch::begin(target, EventKind::Cancelled).await?;
            let begun = Instant::now();
            target.backend.call(complete(&task)).await?;
            watch.wait_for(self.n as usize - 1).await?;
            latencies.record(begun.elapsed());
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(latencies)
    }
}
