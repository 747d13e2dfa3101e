//! Whether anything runs, by the store's own records.

use std::collections::HashMap;
use std::time::Duration;

use ff_core::backend::BackendExt as _;
use ff_core::id::{ExecutionId, LeaseFence, Namespace};
use ff_core::limits;
use ff_core::read::{
    EventFilter, Filter, Follow, From, ListWorkers, Record, Search, WorkerSnapshot,
};
use ff_core::state::{EligibilityState, GrantKind, PublicState};
use tokio::time::Instant;

use super::TestEngine;
use super::engine::must;

/// How long a handler may take, by the clock of the machine, before a test calls it stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// States of what has not ended.
pub(super) const LIVE: [PublicState; 7] = [
    PublicState::Waiting,
    PublicState::Delayed,
    PublicState::RateLimited,
    PublicState::WaitingChildren,
    PublicState::Active,
    PublicState::Suspended,
    PublicState::Resumable,
];

/// Leases that ran before the clock was moved: nobody waits for those.
pub(super) type Held = HashMap<ExecutionId, u64>;

/// What a worker shows for the lease that a record tells of.
pub(super) fn fence_of(record: &Record) -> Option<LeaseFence> {
    let fence = LeaseFence::from_parts(
        record.lease_id,
        Some(record.lease_epoch),
        record.current_attempt_id,
    );
    fence.ok().flatten()
}

impl TestEngine {
    /// Executions in these states, of all namespaces.
    pub(super) async fn in_states(&self, states: &[PublicState]) -> Vec<Record> {
        let filter = Filter { states: states.to_vec(), ..Filter::default() };
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let search = Search { filter: filter.clone(), cursor, limit: limits::PAGE_MAX };
            let page = must("search", self.inner.store.ask(search).await);
            found.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return found;
            }
        }
    }

    /// Leases that are held now.
    pub(super) async fn held(&self) -> Held {
        let running = self.in_states(&[PublicState::Active]).await;
        running.iter().map(|record| (record.execution_id, record.lease_epoch)).collect()
    }

    /// Waits until nothing runs but what was held before, and no worker is about to claim anything.
    ///
    /// # Panics
    ///
    /// When that takes longer than ten seconds: it tells what runs.
    pub(super) async fn until_quiet(&self, held: &Held) {
        let deadline = Instant::now() + PATIENCE;
        let mut from = From::Now;
        loop {
            // The place in the log comes before the look: what happens in between is not missed.
            let wait = match from {
                From::Now => Duration::ZERO,
                _ => deadline.saturating_duration_since(Instant::now()),
            };
            let filter = EventFilter::default();
            let follow =
                Follow { filter, from: from.clone(), limit: limits::PAGE_MAX, each: false };
            let after = must("follow events", self.inner.store.events(follow, wait).await);
            from = From::Cursor(after.cursor);
            let Some(busy) = self.busy(held).await else { return };
            assert!(
                Instant::now() < deadline,
                "the clock cannot be moved: {busy} for {PATIENCE:?} of real time. A handler that \
                 waits must suspend or delay its task; what is to run while the clock moves must \
                 be claimed before."
            );
        }
    }

    /// What runs, or is about to.
    async fn busy(&self, held: &Held) -> Option<String> {
        let runs = [PublicState::Active, PublicState::Waiting, PublicState::Resumable];
        let records = self.in_states(&runs).await;
        let is_new = |record: &&Record| held.get(&record.execution_id) != Some(&record.lease_epoch);
        let mut running = records.iter().filter(|it| it.state.public_state == PublicState::Active);
        if let Some(record) = running.find(is_new) {
            let worker = record.worker_instance_id.as_ref().map(ToString::to_string);
            let (id, kind) = (record.execution_id, &record.kind);
            return Some(format!("{id} ({kind}) runs on {}", worker.unwrap_or_default()));
        }
        let mut fleets: HashMap<Namespace, Vec<WorkerSnapshot>> = HashMap::new();
        let eligible = EligibilityState::EligibleNow;
        for record in records.iter().filter(|it| it.state.eligibility_state == eligible) {
            if !fleets.contains_key(&record.namespace) {
                let fleet = self.fleet(&record.namespace).await;
                fleets.insert(record.namespace.clone(), fleet);
            }
            let fleet = &fleets[&record.namespace];
            if let Some(worker) = fleet.iter().find(|worker| self.will_claim(worker, record)) {
                let (id, kind, worker) =
                    (record.execution_id, &record.kind, &worker.worker_instance_id);
                return Some(format!(
                    "{id} ({kind}) is there for {worker}, which does not take it"
                ));
            }
        }
        None
    }

    async fn fleet(&self, namespace: &Namespace) -> Vec<WorkerSnapshot> {
        let question = ListWorkers {
            namespace: namespace.clone(),
            within: None,
            cursor: None,
            limit: limits::PAGE_MAX,
        };
        must("list workers", self.inner.store.ask(question).await).items
    }

    /// Whether a worker comes for this by itself, and may have it.
    fn will_claim(&self, worker: &WorkerSnapshot, record: &Record) -> bool {
        self.inner.bench.comes_again(&worker.worker_instance_id)
            && !worker.draining
            && worker.running < worker.max_concurrent
            && worker.lanes.contains(&record.lane)
            && worker.capabilities.covers(&record.required_capabilities)
            // Set aside for somebody else, or for a claim that is under way.
            && record.grant.as_ref().is_none_or(|grant| grant.kind == GrantKind::Admission)
    }
}
