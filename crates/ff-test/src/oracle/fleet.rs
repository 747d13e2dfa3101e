//! Answers questions about lanes, workers and leases from the maps.

use std::collections::BTreeSet;

use ff_core::error::EngineError;
use ff_core::id::{DocumentId, LaneId, Namespace};
use ff_core::machine::Facts;
use ff_core::read::{
    Answer, DescribeWorker, LaneFound, LaneSnapshot, Leaf, LeasePosition, LeaseWalk, ListLanes,
    ListedLease, Page, Query, Record, WorkerSnapshot,
};
use ff_core::state::{Execution, LaneState, Surroundings};
use ff_core::time::TimestampMs;

use super::State;
use super::backend::walk_documents;

pub(super) fn answer(
    state: &State,
    query: &Query,
    now: TimestampMs,
) -> Result<Answer, EngineError> {
    Ok(match query {
        Query::DescribeWorker(q) => Answer::DescribeWorker(describe_worker(state, q, now)),
        Query::ListWorkers(q) => {
            Answer::ListWorkers(with_running(state, walk_documents(state, q, now)?))
        }
        Query::LeasesOf(q) => Answer::LeasesOf(leases(state, q, now)?),
        Query::ListExpiredLeases(q) => Answer::ListExpiredLeases(leases(state, q, now)?),
        Query::DescribeLane(q) => {
            Answer::DescribeLane(Box::new(lane(state, &q.namespace, &q.lane, now)))
        }
        Query::ListLanes(q) => Answer::ListLanes(list_lanes(state, q, now)?),
        other => return Err(EngineError::bug(format!("{} is not answered here", other.name()))),
    })
}

/// The state of an execution's lane.
pub(super) fn lane_state(state: &State, execution: &Execution) -> LaneState {
    let about = &execution.about;
    state.lane_state(&about.namespace, &about.lane).expect("the oracle lacks nothing")
}

/// The record as it reads amid what stands around it.
pub(super) fn record(state: &State, execution: &Execution, now: TimestampMs) -> Record {
    let record = Record::of(execution, now);
    let flow = record.awaited_flow().and_then(|id| state.document(&id).ok().flatten());
    let flow_stops = flow.is_some_and(|flow| Surroundings::by(&flow).flow_stops);
    record.amid(Surroundings { lane: lane_state(state, execution), flow_stops })
}

/// Live workers of a namespace, without what they run.
fn workers(state: &State, namespace: &Namespace, now: TimestampMs) -> Vec<WorkerSnapshot> {
    let all = state.documents.values().filter_map(|document| document.worker());
    let here = all.filter(|worker| worker.namespace == *namespace);
    here.filter_map(|worker| WorkerSnapshot::of(worker, now)).collect()
}

fn live<'a>(
    state: &'a State,
    namespace: &'a Namespace,
) -> impl Iterator<Item = &'a Execution> + use<'a> {
    let all = state.executions.values().map(AsRef::as_ref);
    all.filter(|execution: &&Execution| {
        execution.about.namespace == *namespace && !execution.is_terminal()
    })
}

fn describe_worker(
    state: &State,
    query: &DescribeWorker,
    now: TimestampMs,
) -> Option<Box<WorkerSnapshot>> {
    let id = DocumentId::worker(&query.namespace, &query.worker_instance_id);
    let worker = state.documents.get(&id).and_then(|document| document.worker())?;
    let worker = WorkerSnapshot::of(worker, now)?;
    if !query.counted {
        return Some(Box::new(worker));
    }
    let page = Page { items: vec![worker], next_cursor: None };
    with_running(state, page).items.pop().map(Box::new)
}

fn with_running(state: &State, mut page: Page<WorkerSnapshot>) -> Page<WorkerSnapshot> {
    for item in &mut page.items {
        let leases = live(state, &item.namespace).filter_map(|execution| execution.phase.lease());
        let its = leases.filter(|lease| lease.worker_instance_id == item.worker_instance_id);
        item.running = its.count() as u32;
    }
    page
}

fn leases(
    state: &State,
    query: &impl LeaseWalk,
    now: TimestampMs,
) -> Result<Page<ListedLease>, EngineError> {
    let behind = query.behind()?;
    let mut active: Vec<_> = live(state, query.namespace())
        .filter(|execution| execution.phase.lease().is_some())
        .map(|execution| {
            let (lane, execution_id) = (execution.about.lane.clone(), execution.id);
            (LeasePosition { lane, execution_id }, execution)
        })
        .filter(|(position, _)| behind.as_ref().is_none_or(|behind| position > behind))
        .collect();
    active.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut leaf = Leaf::new(query.limit());
    for (position, execution) in active {
        if leaf.look(position, || query.see(execution, now)).is_break() {
            break;
        }
    }
    Ok(query.page(leaf))
}

fn lane(state: &State, namespace: &Namespace, lane: &LaneId, now: TimestampMs) -> LaneSnapshot {
    let mut found = LaneFound::default();
    for execution in live(state, namespace).filter(|execution| execution.about.lane == *lane) {
        found.counts.add(execution.public_state() as u8, 1);
        let queued = execution.queue_place().and_then(|_| execution.phase.claimable());
        found.oldest = found.oldest.into_iter().chain(queued.map(|queued| queued.since)).min();
    }
    let document = state.documents.get(&DocumentId::lane(namespace, lane));
    let workers = workers(state, namespace, now);
    LaneSnapshot::of(lane, document.map(AsRef::as_ref), &found, &workers, now)
}

fn list_lanes(
    state: &State,
    query: &ListLanes,
    now: TimestampMs,
) -> Result<Page<LaneSnapshot>, EngineError> {
    let mut names = BTreeSet::new();
    for worker in workers(state, &query.namespace, now) {
        names.extend(worker.lanes);
    }
    names.extend(live(state, &query.namespace).map(|execution| execution.about.lane.clone()));
    let lanes = state.documents.values().filter_map(|document| document.lane());
    let here = lanes.filter(|lane| lane.namespace == query.namespace);
    names.extend(here.map(|lane| lane.name.clone()));
    query.page(names)?.try_map(|name| Ok(lane(state, &query.namespace, &name, now)))
}
