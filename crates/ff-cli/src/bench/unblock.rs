//! A budget that is used up keeps a crowd back, and is reset.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use ff_core::backend::BackendExt as _;
use ff_core::event::EventKind;
use ff_core::id::{BudgetId, Dimension, Namespace};
use ff_core::limits;
use ff_core::operation::{CreateBudget, ReportUsageAdmin, ResetBudget};
use ff_core::state::{BudgetScope, Limits};
use serde::Serialize;
use tokio::sync::mpsc::unbounded_channel;

use super::command::{Named, OnStore};
use super::crew::{Crew, PATIENCE, Watch};
use super::target::{complete, payload};
use super::{Faults, Latencies, Measured, Target, progress};

/// From the reset of a budget until all that it kept back is let go; latencies are of submit to
/// completion in another lane meanwhile
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench unblock --store sqlite::memory: --tasks 100000")]
pub(crate) struct Unblock {
    /// Executions that the budget keeps back
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    tasks: u64,
}

impl Named for Unblock {
    const NAME: &'static str = "unblock";
}

impl OnStore for Unblock {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let faults = Faults::default();
        let budget_id = use_up(target).await?;
        target.fill(self.tasks, &payload(0), &faults).await?;
        self.keep_back(target).await?;
        let (sender, _started) = unbounded_channel();
        // Nobody claims: the engine alone is at work.
        let crew = Crew::hire(target, 0, 1, &sender);
        let mut watch = Watch::begin(target, EventKind::Unblocked).await?;
        let bar = progress::spinner("unblocking");
        let measured = target
            .timed(self.tasks, async {
                target.backend.call(ResetBudget { budget_id }).await?;
                let let_go = watch.wait_for(usize::try_from(self.tasks)?);
                probe(&target.elsewhere().await?, let_go).await
            })
            .await?;
        bar.finish_and_clear();
        crew.dismiss().await?;
        Ok(Measured { errors: faults.count(), ..measured })
    }
}

impl Unblock {
    /// Claims until nothing is left that could be claimed.
    async fn keep_back(&self, target: &Target) -> anyhow::Result<()> {
        let spinner = progress::spinner("keeping back");
        let claim = target.claim(limits::CLAIM_TASKS);
        let tasks = target.backend.claim(claim, Duration::ZERO).await?;
        anyhow::ensure!(tasks.is_empty(), "the budget has let {} in", tasks.len());
        spinner.finish_and_clear();
        Ok(())
    }
}

/// A budget of the lane that is used up.
async fn use_up(target: &Target) -> anyhow::Result<BudgetId> {
    let budget_id = BudgetId::mint();
    let scope = BudgetScope::Lane(target.lane().clone());
    let tokens = Dimension::new("tokens")?;
    let dimensions = BTreeMap::from([(tokens.clone(), Limits { hard: 1, soft: 0 })]);
    let create = CreateBudget::new(budget_id, Namespace::default(), scope);
    target.backend.call(CreateBudget { dimensions, ..create }).await?;
    let dimensions = BTreeMap::from([(tokens, 1)]);
    let (execution_id, dedup_key, mode) = (None, None, None);
    let usage = ReportUsageAdmin { budget_id, execution_id, dimensions, dedup_key, mode };
    target.backend.call(usage).await?;
    Ok(budget_id)
}

/// Works on, one execution after the other, until something else is done.
async fn probe(
    target: &Target,
    until: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Latencies> {
    let mut latencies = Latencies::new()?;
    let work = async {
        loop {
            let begun = Instant::now();
            target.backend.call(target.submit(&payload(0))).await?;
            let tasks = target.backend.claim(target.claim(1), PATIENCE).await?;
            let task = tasks.first().context("a submitted execution was not started")?;
            target.backend.call(complete(task)).await?;
            latencies.record(begun.elapsed());
        }
    };
    tokio::select! {
        done = until => done?,
        broken = work => return broken,
    }
    Ok(latencies)
}
