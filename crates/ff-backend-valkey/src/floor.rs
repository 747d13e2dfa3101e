//! The floor under the speed of this store: three function calls for a lifecycle, each of which
//! writes a record of ten fields and moves its id from one sorted set to another, and nothing else.
//!
//! Connection, routing and durability are the store's own; there are no commands, no reads and no
//! rules. What the store reaches is judged by how near it comes to this.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ff_core::error::EngineError;
use redis::Cmd;
use tokio::task::JoinSet;

use crate::measure::remove;
use crate::reply;
use crate::store::{Shared, ValkeyStore};

/// A run of the floor: for so long, callers take groups of executions through three steps, each
/// step of a group in one call.
#[derive(Debug, Clone, Copy)]
pub struct Floor {
    pub duration: Duration,
    /// Executions of one call.
    pub batch: usize,
    /// Calls that are under way at any time.
    pub callers: usize,
}

/// What a run reached.
#[derive(Debug, Clone)]
pub struct FloorReport {
    pub lifecycles: u64,
    pub elapsed: Duration,
    /// How long each group took for its three calls.
    pub groups: Vec<Duration>,
}

const CODE: &str = include_str!("../lua/bench_floor.lua");

/// The sorted sets that an id goes through, one a step.
const SETS: [&str; 3] = ["eligible", "leases", "ended"];

impl Floor {
    /// Runs under the prefix of `store`, in keys that nothing else uses and that are gone after it.
    pub async fn run(&self, store: &ValkeyStore) -> Result<FloorReport, EngineError> {
        let ground = Arc::new(Ground::new(&store.shared));
        ground.load().await?;
        let outcome = self.race(&ground).await;
        let cleared = ground.clear().await;
        let report = outcome?;
        cleared?;
        Ok(report)
    }

    async fn race(&self, ground: &Arc<Ground>) -> Result<FloorReport, EngineError> {
        let begun = Instant::now();
        let until = begun + self.duration;
        let batch = self.batch.max(1) as u64;
        let mut callers = JoinSet::new();
        for _ in 0..self.callers.max(1) {
            callers.spawn(Arc::clone(ground).call_until(until, batch));
        }
        let mut groups = Vec::new();
        while let Some(ended) = callers.join_next().await {
            groups.extend(ended.map_err(|error| EngineError::bug(error.to_string()))??);
        }
        Ok(FloorReport {
            lifecycles: groups.len() as u64 * batch,
            elapsed: begun.elapsed(),
            groups,
        })
    }
}

/// All clients of a server share its functions, so the names hold the prefix: a run that ends does
/// not take the function from another that goes on.
fn named(name: &str, shared: &Shared) -> String {
    format!("{name}_{}", shared.keys.prefix.replace('-', "_"))
}

fn library(shared: &Shared) -> String {
    named("flowfabric_floor", shared)
}

/// Removes the library of a run under this prefix, if there is one.
pub(crate) async fn delete_library(shared: &Shared) -> Result<(), EngineError> {
    let command = |verb: &[&str]| {
        let mut command = redis::cmd("FUNCTION");
        command.arg(verb).arg(library(shared));
        command
    };
    for primary in shared.client.primaries() {
        let list = command(&["LIST", "LIBRARYNAME"]);
        if !reply::array(shared.client.send_to(&primary, &list).await?)?.is_empty() {
            shared.client.send_to(&primary, &command(&["DELETE"])).await?;
        }
    }
    Ok(())
}

/// What callers share.
struct Ground {
    shared: Arc<Shared>,
    function: String,
    lifecycles: AtomicU64,
}

impl Ground {
    fn new(shared: &Arc<Shared>) -> Self {
        let function = named("ff_floor_step", shared);
        Self { shared: Arc::clone(shared), function, lifecycles: AtomicU64::new(0) }
    }

    async fn load(&self) -> Result<(), EngineError> {
        let body = CODE.replace("@FUNCTION@", &self.function);
        let mut load = redis::cmd("FUNCTION");
        load.arg("LOAD").arg("REPLACE");
        load.arg(format!("#!lua name={}\n{body}", library(&self.shared)));
        for primary in self.shared.client.primaries() {
            self.shared.client.send_to(&primary, &load).await?;
        }
        Ok(())
    }

    async fn clear(&self) -> Result<(), EngineError> {
        delete_library(&self.shared).await?;
        remove(&self.shared, &format!("{}:floor:*", self.shared.keys.prefix)).await?;
        Ok(())
    }

    /// One caller: group after group, at least one. Gives how long each took.
    async fn call_until(
        self: Arc<Self>,
        until: Instant,
        batch: u64,
    ) -> Result<Vec<Duration>, EngineError> {
        let mut groups = Vec::new();
        while groups.is_empty() || Instant::now() < until {
            let begun = Instant::now();
            let first = self.lifecycles.fetch_add(batch, Ordering::Relaxed);
            let partitions = u64::from(self.shared.settings.partitions.flow.max(1));
            let partition = u16::try_from(first / batch % partitions).unwrap_or(0);
            for step in 0..SETS.len() {
                let call = self.step(step, partition, first, batch);
                self.shared.send(partition, &call).await?;
            }
            groups.push(begun.elapsed());
        }
        Ok(groups)
    }

    /// The values have the sizes that those of an execution have: some flags and numbers, the rest
    /// times and names.
    fn step(&self, step: usize, partition: u16, first: u64, batch: u64) -> Cmd {
        let stem = format!("{}:floor:{{fp:{partition}}}:", self.shared.keys.prefix);
        let mut call = redis::cmd("FCALL");
        call.arg(&self.function).arg(1).arg(self.shared.keys.events(partition)).arg(&stem);
        call.arg(format!("{stem}{}", SETS[step]));
        call.arg(format!("{stem}{}", SETS[(step + SETS.len() - 1) % SETS.len()]));
        call.arg(BEGINNING_MS + first).arg(batch);
        for number in first..first + batch {
            call.arg(format!("0199aabb-0000-7000-8000-{number:012x}"));
            for _ in 0..5 {
                call.arg(step).arg(BEGINNING_MS + number);
            }
        }
        call
    }
}

/// When every run begins, for times of the usual size.
const BEGINNING_MS: u64 = 1_800_000_000_000;
