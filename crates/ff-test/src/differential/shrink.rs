//! Runs many sequences, and shrinks one that fails.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinSet;

use super::coverage::Coverage;
use super::generate::generate;
use super::op::Op;
use super::replay::{Failure, replay};
use crate::world::World;

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The first sequence has this seed, the next ones count up.
    pub seed: u64,
    /// Operations in all.
    pub operations: usize,
    /// Operations of one sequence.
    pub length: usize,
}

impl Plan {
    fn sequences(&self) -> u64 {
        self.operations.div_ceil(self.length) as u64
    }

    /// The sequences behind these, of so many operations.
    #[must_use]
    pub fn following(self, operations: usize) -> Self {
        Self { seed: self.seed + self.sequences(), operations, ..self }
    }
}

/// Sequences under way at a time: each waits for its store most of the time.
const AT_ONCE: usize = 8;

/// Runs the plan on worlds that `make` makes. A difference is reported with its seed and the
/// shortest sequence found that still shows it.
pub async fn run<M, F>(plan: Plan, make: M) -> Result<Coverage, String>
where
    M: Fn() -> F + Clone + Send + Sync + 'static,
    F: Future<Output = World> + Send + 'static,
{
    let taken = Arc::new(AtomicU64::new(0));
    let mut runners: JoinSet<_> =
        (0..AT_ONCE).map(|_| run_some(plan, Arc::clone(&taken), make.clone())).collect();
    let mut coverage = Coverage::default();
    while let Some(done) = runners.join_next().await {
        coverage.merge(done.expect("a runner ends")?);
    }
    Ok(coverage)
}

/// Runs sequences that no other runner has taken.
async fn run_some<M, F>(plan: Plan, taken: Arc<AtomicU64>, make: M) -> Result<Coverage, String>
where
    M: Fn() -> F + Send + Sync,
    F: Future<Output = World> + Send,
{
    let mut coverage = Coverage::default();
    let sequences = plan.sequences();
    loop {
        let n = taken.fetch_add(1, Ordering::Relaxed);
        if n >= sequences {
            return Ok(coverage);
        }
        let seed = plan.seed + n;
        let ops = generate(seed, plan.length);
        let world = make().await;
        if let Err(failure) = replay(&ops, &world, &mut coverage).await {
            let (ops, failure) = shrink(ops, failure, &make).await;
            return Err(report(seed, &ops, &failure));
        }
        world.clear().await;
    }
}

/// Cuts away ever smaller parts as long as the rest still fails.
async fn shrink<F>(ops: Vec<Op>, failure: Failure, make: &impl Fn() -> F) -> (Vec<Op>, Failure)
where
    F: Future<Output = World>,
{
    let mut best = (ops, failure);
    best.0.truncate(best.1.at + 1);
    let mut part = best.0.len() / 2;
    while part > 0 {
        let mut begin = 0;
        let mut cut_any = false;
        while begin < best.0.len() {
            let end = (begin + part).min(best.0.len());
            let mut rest = best.0.clone();
            rest.drain(begin..end);
            match replay(&rest, &make().await, &mut Coverage::default()).await {
                Ok(()) => begin = end,
                Err(failure) => {
                    best = (rest, failure);
                    cut_any = true;
                }
            }
        }
        if !cut_any || part > 1 {
            part /= 2;
        }
    }
    best
}

fn report(seed: u64, ops: &[Op], failure: &Failure) -> String {
    let mut text = format!("seed {seed}, {} operations:\n", ops.len());
    for (n, op) in ops.iter().enumerate() {
        text.push_str(&format!("  {n}: {op:?}\n"));
    }
    text.push_str(&failure.to_string());
    text
}
