//! Runs many sequences, and shrinks one that fails.

use std::future::Future;

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

/// Runs the plan on worlds that `make` makes. A difference is reported with its seed and the
/// shortest sequence found that still shows it.
pub async fn run<F>(plan: Plan, make: impl Fn() -> F) -> Result<Coverage, String>
where
    F: Future<Output = World>,
{
    let mut coverage = Coverage::default();
    for n in 0..plan.operations.div_ceil(plan.length) as u64 {
        let seed = plan.seed + n;
        let ops = generate(seed, plan.length);
        if let Err(failure) = replay(&ops, &make().await, &mut coverage).await {
            let (ops, failure) = shrink(ops, failure, &make).await;
            return Err(report(seed, &ops, &failure));
        }
    }
    Ok(coverage)
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
