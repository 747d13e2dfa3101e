//! The command: chooses the store, runs the scenario, checks the store and prints the report.

use std::collections::BTreeMap;

use anyhow::anyhow;
use clap::{Args, Subcommand};

use super::backlog::Backlog;
use super::capability::Capability;
use super::chain::Chain;
use super::connections::Connections;
use super::fanout::Fanout;
use super::floor::FloorScenario;
use super::http::Http;
use super::idle::Idle;
use super::lifecycle::Lifecycle;
use super::memory::Memory;
use super::quorum_cancel::QuorumCancel;
use super::runtime::Runtime;
use super::start_latency::StartLatency;
use super::steady::Steady;
use super::stream::Stream;
use super::suspend_resume::SuspendResume;
use super::unblock::Unblock;
use super::{Measured, Place, Report, Target};
use crate::session::Common;

/// Measure a store: speed, latency, idle cost, size
///
/// Prints one JSON object and a short table; with --json only the object, on one line. Every run
/// checks the invariants of the store at its end: a run with errors or violations exits with 1.
/// Without --store it runs on a file in the temporary folder (TMPDIR) that is removed afterwards. On
/// a server without ?prefix=NAME in the URL the run takes a prefix of its own and removes its keys.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ff bench lifecycle\n  \
    ff bench lifecycle --store 'sqlite:bench.db?durability=normal' --payload-bytes 100\n  \
    ff bench start_latency --store sqlite::memory: --json\n  \
    ff bench lifecycle --store valkey://127.0.0.1:6379 --batch 32\n\n\
    Compare figures of one machine only, and look at floor_ratio rather than at throughput: the\n\
    floor is the bare database on the same disk or server in the same run. SQLite does the same row\n\
    writes; Valkey three function calls, each with one HSET of ten fields, a ZADD and a ZREM.")]
pub(crate) struct Bench {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Subcommand)]
#[command(rename_all = "snake_case")]
enum Scenario {
    Lifecycle(Lifecycle),
    StartLatency(StartLatency),
    SuspendResume(SuspendResume),
    Chain(Chain),
    Fanout(Fanout),
    QuorumCancel(QuorumCancel),
    Capability(Capability),
    Unblock(Unblock),
    Stream(Stream),
    Http(Http),
    Connections(Connections),
    Idle(Idle),
    Runtime(Runtime),
    Memory(Memory),
    Backlog(Backlog),
    Steady(Steady),
    Floor(FloorScenario),
}

impl Bench {
    /// Whether the run was without errors and the store is sound.
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<bool> {
        let place = Place::choose(common.store.as_deref())?;
        let scratch = place.scratch.clone();
        // An interrupted run ends here too, so that a temporary store goes with it.
        let report = tokio::select! {
            report = self.scenario.run(place) => report,
            _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted")),
        };
        scratch.remove().await;
        let report = report?;
        report.print(common.json)?;
        Ok(report.is_sound())
    }
}

impl Scenario {
    async fn run(&self, place: Place) -> anyhow::Result<Report> {
        match self {
            Self::Lifecycle(scenario) => on_store(scenario, place).await,
            Self::StartLatency(scenario) => on_store(scenario, place).await,
            Self::SuspendResume(scenario) => on_store(scenario, place).await,
            Self::Chain(scenario) => on_store(scenario, place).await,
            Self::Fanout(scenario) => on_store(scenario, place).await,
            Self::QuorumCancel(scenario) => on_store(scenario, place).await,
            Self::Capability(scenario) => on_store(scenario, place).await,
            Self::Unblock(scenario) => on_store(scenario, place).await,
            Self::Stream(scenario) => on_store(scenario, place).await,
            Self::Http(scenario) => on_store(scenario, place).await,
            Self::Connections(scenario) => on_store(scenario, place).await,
            Self::Idle(scenario) => on_store(scenario, place).await,
            Self::Runtime(scenario) => on_store(scenario, place).await,
            Self::Memory(scenario) => on_store(scenario, place).await,
            Self::Backlog(scenario) => on_store(scenario, place).await,
            Self::Steady(scenario) => on_store(scenario, place).await,
            Self::Floor(scenario) => {
                let scenario = scenario.on(&place)?;
                let measured = scenario.run(&place).await?;
                Report::new(&scenario, &place, measured, None)
            }
        }
    }
}

/// What is measured, by its name, with its parameters.
pub(super) trait Named: serde::Serialize {
    const NAME: &'static str;
}

/// A scenario that runs on an open store.
pub(super) trait OnStore: Named {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured>;
}

async fn on_store<S: OnStore>(scenario: &S, place: Place) -> anyhow::Result<Report> {
    let target = Target::open(place).await?;
    let before = target.store.call_times().await?;
    let mut measured = scenario.run(&target).await?;
    measured.own.extend(longest_calls(&before, &target.store.call_times().await?));
    let violations = target.audit().await?;
    target.close().await?;
    Report::new(scenario, &target.place, measured, Some(violations == 0))
}

/// While a function runs everybody else waits, so none should run longer than 2 ms. The server counts
/// by powers of two, give or take a little.
const LONG_CALL_US: u64 = 2_200;

/// Of the calls between two looks at their times: what the longest did not exceed, and how many are long.
fn longest_calls(
    before: &BTreeMap<u64, u64>,
    after: &BTreeMap<u64, u64>,
) -> Vec<(&'static str, Option<f64>)> {
    let new = |(limit, count): (&u64, &u64)| {
        let count = count.saturating_sub(before.get(limit).copied().unwrap_or_default());
        (count > 0).then_some((*limit, count))
    };
    let calls: Vec<(u64, u64)> = after.iter().filter_map(new).collect();
    let Some((longest, _)) = calls.last() else { return Vec::new() };
    let long = calls.iter().filter(|(limit, _)| *limit > LONG_CALL_US).map(|(_, count)| count);
    let long: u64 = long.sum();
    let all: u64 = calls.iter().map(|(_, count)| count).sum();
    vec![
        ("function_calls", Some(all as f64)),
        ("longest_call_ms", Some(*longest as f64 / 1e3)),
        ("calls_over_2ms", Some(long as f64)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_of_the_run_count() {
        let before = BTreeMap::from([(64, 10), (8192, 3)]);
        let after = BTreeMap::from([(64, 12), (2048, 5), (4096, 2), (8192, 3)]);
        let figures = longest_calls(&before, &after);
        let values: Vec<f64> = figures.iter().filter_map(|(_, value)| *value).collect();
        assert_eq!(values, [9.0, 4.096, 2.0]);
        assert_eq!(longest_calls(&after, &after), []);
    }
}
