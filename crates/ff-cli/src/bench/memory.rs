//! Bytes of the store for each execution, by what state it is in.

use std::time::Instant;

use anyhow::ensure;
use clap::Args;
use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::limits;
use ff_core::operation::{Command, Complete};
use serde::Serialize;

use super::command::{Named, OnStore};
use super::target::{complete, payload};
use super::{Faults, Measured, Target, progress};

/// Bytes of the store for each execution: queued, running, terminal
///
/// The same executions go through all three states; what a state leaves behind counts for the
/// next, as it does in a real store.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench memory --tasks 10000 --payload-bytes 1000")]
pub(crate) struct Memory {
    /// Executions in all
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    tasks: u64,
    /// Bytes of each payload
    #[arg(long, default_value_t = 0)]
    payload_bytes: usize,
    /// Bytes of each result; without any there is none
    #[arg(long, default_value_t = 0)]
    result_bytes: usize,
}

impl Named for Memory {
    const NAME: &'static str = "memory";
}

impl OnStore for Memory {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let payload = payload(self.payload_bytes);
        target.check(&payload, limits::CLAIM_TASKS)?;
        target.check_result(self.result())?;
        let faults = Faults::default();
        let before = target.store.counts().await?;
        let begun = Instant::now();
        let empty = target.store.size_bytes().await?;
        target.fill(self.tasks, &payload, &faults).await?;
        let queued = target.store.size_bytes().await?;
        let completes = self.claim_all(target).await?;
        let running = target.store.size_bytes().await?;
        complete_all(target, completes, &faults).await;
        let terminal = target.store.size_bytes().await?;
        let commands = target.commands_per_execution(before, self.tasks).await?;
        let each = |size: u64| Some(size.saturating_sub(empty) as f64 / self.tasks as f64);
        Ok(Measured {
            duration: begun.elapsed(),
            commands_per_execution: Some(commands),
            errors: faults.count(),
            own: vec![
                ("queued_bytes", each(queued)),
                ("running_bytes", each(running)),
                ("terminal_bytes", each(terminal)),
            ],
            ..Measured::default()
        })
    }
}

impl Memory {
    fn result(&self) -> Option<Content> {
        (self.result_bytes > 0).then(|| payload(self.result_bytes))
    }

    /// Claims everything; gives back what ends it.
    async fn claim_all(&self, target: &Target) -> anyhow::Result<Vec<Complete>> {
        let bar = progress::bar("claiming", self.tasks);
        let mut completes = Vec::new();
        while (completes.len() as u64) < self.tasks {
            let claim = target.claim(limits::CLAIM_TASKS);
            let tasks = target.backend.claim(claim, std::time::Duration::ZERO).await?;
            ensure!(!tasks.is_empty(), "only {} of {} were found", completes.len(), self.tasks);
            bar.inc(tasks.len() as u64);
            let result = self.result();
            let with_result = |task| Complete { result: result.clone(), ..complete(task) };
            completes.extend(tasks.iter().map(with_result));
        }
        bar.finish_and_clear();
        Ok(completes)
    }
}

async fn complete_all(target: &Target, completes: Vec<Complete>, faults: &Faults) {
    let bar = progress::bar("completing", completes.len() as u64);
    for chunk in completes.chunks(limits::BATCH_ITEMS) {
        let commands = chunk.iter().cloned().map(Command::from).collect();
        for error in target.backend.apply(commands).await.into_iter().filter_map(Result::err) {
            faults.note(&error);
        }
        bar.inc(chunk.len() as u64);
    }
    bar.finish_and_clear();
}
