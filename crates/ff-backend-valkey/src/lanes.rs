//! Answers questions about lanes, and shows records as they read in their lanes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::{DocumentId, ExecutionId, Home, LaneId, Namespace};
use ff_core::limits;
use ff_core::read::{
    DescribeLane, LaneFound, LaneSnapshot, ListLanes, Listed, Page, Record, Seen, Walk,
    WorkerSnapshot,
};
use ff_core::state::{Document, List, ListingPosition, PublicState, Surroundings};
use ff_core::time::TimestampMs;
use redis::{Cmd, Value};

use crate::commit::ITEMS_MOST;
use crate::everywhere::{Missing, Tour};
use crate::store::{Shared, join_all};
use crate::{fleet, lane_counts, listing, read, reply, walk};

/// Eligible executions of a lane that are looked at for the oldest.
const ELIGIBLE_LOOKED_AT: usize = 1_000;

/// Fields of a hash that one step of a scan brings.
const SCAN_COUNT: usize = 1_000;
/// Where a scan begins, and what it says at its end.
const SCAN_EDGE: &str = "0";

/// The states that a depth has.
fn depth_states() -> impl Iterator<Item = PublicState> {
    let counted = |state: &PublicState| LaneSnapshot::depth_state(*state) == *state;
    let live = PublicState::ALL.iter().copied().filter(|s| !PublicState::ENDED.contains(s));
    live.filter(counted)
}

pub(crate) async fn describe(
    shared: &Arc<Shared>,
    query: &DescribeLane,
) -> Result<LaneSnapshot, EngineError> {
    let workers = fleet::live_workers(shared, &query.namespace).await?;
    let id = DocumentId::lane(&query.namespace, &query.lane);
    let (_, mut found) = read::documents(shared, &id.home, std::slice::from_ref(&id)).await?;
    let document = found.pop().flatten().map(|(document, _)| document);
    let (namespace, lane) = (&query.namespace, &query.lane);
    snapshot(shared, (namespace, lane), document.as_ref(), &workers, ELIGIBLE_LOOKED_AT).await
}

pub(crate) async fn list(
    shared: &Arc<Shared>,
    query: &ListLanes,
) -> Result<Page<LaneSnapshot>, EngineError> {
    let namespace = &query.namespace;
    let workers = fleet::live_workers(shared, namespace).await?;
    let spoken_of = spoken_of(shared, namespace).await?;
    let mut names = worked_in(shared, namespace).await?;
    names.extend(workers.iter().flat_map(|worker| worker.lanes.iter().cloned()));
    names.extend(spoken_of.keys().cloned());
    let page = query.page(names)?;
    // A page looks at a bounded number of records, whatever its length.
    let share = limits::SEARCH_LOOK_AHEAD as usize / page.items.len().max(1);
    let looked_at = share.min(ELIGIBLE_LOOKED_AT);
    let mut items = Vec::with_capacity(page.items.len());
    for lane in &page.items {
        let document = spoken_of.get(lane);
        items.push(snapshot(shared, (namespace, lane), document, &workers, looked_at).await?);
    }
    Ok(Page { items, next_cursor: page.next_cursor })
}

async fn snapshot(
    shared: &Arc<Shared>,
    (namespace, lane): (&Namespace, &LaneId),
    document: Option<&Document>,
    workers: &[WorkerSnapshot],
    looked_at: usize,
) -> Result<LaneSnapshot, EngineError> {
    let partitions = shared.partitions();
    let most = (looked_at / partitions.len().max(1)).max(1);
    let arguments = |call: &mut Cmd, homes: &[Home]| {
        call.arg(namespace.as_str()).arg(lane.as_str()).arg(most).arg(depth_states().count());
        depth_states().for_each(|state| {
            call.arg(state as u8);
        });
        homes.iter().for_each(|home| {
            call.arg(home.to_string());
        });
    };
    let replies =
        shared.everywhere(Tour::by("ff_lane", Missing::Wait), partitions, arguments).await?;
    let (mut now, mut found, mut eligible) = (TimestampMs(0), LaneFound::default(), Vec::new());
    for answered in replies.answered {
        let mut items = reply::array(answered.reply)?.into_iter();
        now = now.max(reply::instant(&reply::next(&mut items)?)?);
        for partition in items {
            read_partition(partition, &mut found, &mut eligible)?;
        }
    }
    eligible.truncate(looked_at);
    found.oldest = oldest(shared, eligible).await?;
    Ok(LaneSnapshot::of(lane, document, &found, workers, now))
}

/// What one partition holds: its counts, and what stands first in its queues.
fn read_partition(
    partition: Value,
    found: &mut LaneFound,
    eligible: &mut Vec<ExecutionId>,
) -> Result<(), EngineError> {
    let mut items = reply::array(partition)?.into_iter();
    let home = reply::home(reply::next(&mut items)?)?;
    for state in depth_states() {
        found.counts.add(state as u8, reply::number(&reply::next(&mut items)?)?);
    }
    let partition = home.flow_partition().unwrap_or_default();
    for id in items {
        eligible.push(reply::execution_id(partition, id)?);
    }
    Ok(())
}

/// Since when the oldest of these has been eligible.
async fn oldest(
    shared: &Arc<Shared>,
    eligible: Vec<ExecutionId>,
) -> Result<Option<TimestampMs>, EngineError> {
    let found = walk::load(shared, eligible.into_iter().map(Into::into).collect()).await?;
    let executions = found.values().filter_map(walk::Found::execution);
    let queued = executions.filter(|(execution, _)| execution.queue_place().is_some());
    let since = queued.filter_map(|(execution, _)| execution.phase.claimable());
    Ok(since.map(|runnable| runnable.since).min())
}

/// Lanes that somebody has said something of.
async fn spoken_of(
    shared: &Arc<Shared>,
    namespace: &Namespace,
) -> Result<BTreeMap<LaneId, Document>, EngineError> {
    let documents =
        listing::walk_all(shared, |cursor| SpokenOf { namespace: namespace.clone(), cursor });
    let named = |document: Document| Some((document.lane()?.name.clone(), document));
    Ok(documents.await?.into_iter().filter_map(named).collect())
}

struct SpokenOf {
    namespace: Namespace,
    cursor: Option<String>,
}

impl Walk for SpokenOf {
    const LIST: List = List::Lane;

    type Item = Document;

    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    fn limit(&self) -> u32 {
        limits::PAGE_MAX
    }

    fn see(&self, _: &ListingPosition, found: Listed<'_>, _: TimestampMs) -> Seen<Document> {
        match found {
            Listed::Document(document, _) => Seen::Item(document.clone()),
            Listed::Execution(_) => Seen::Passed,
        }
    }

    fn scope(&self) -> String {
        format!("lanes spoken of {}", self.namespace)
    }
}

/// Lanes that hold executions that have not ended.
async fn worked_in(
    shared: &Shared,
    namespace: &Namespace,
) -> Result<BTreeSet<LaneId>, EngineError> {
    let homes = shared.partitions();
    let mut names = BTreeSet::new();
    for lanes in join_all(homes.iter().map(|home| worked_in_home(shared, home, namespace))).await {
        names.extend(lanes?);
    }
    Ok(names)
}

async fn worked_in_home(
    shared: &Shared,
    home: &Home,
    namespace: &Namespace,
) -> Result<BTreeSet<LaneId>, EngineError> {
    let (mut names, mut cursor) = (BTreeSet::new(), SCAN_EDGE.to_owned());
    loop {
        let mut step = redis::cmd("HSCAN");
        step.arg(shared.keys.lanes(home, namespace)).arg(&cursor).arg("COUNT").arg(SCAN_COUNT);
        let mut reply = reply::array(shared.send_home(home, &step).await?)?.into_iter();
        cursor = reply::text(reply::next(&mut reply)?)?;
        for field in reply::flat(reply::next(&mut reply)?)?.into_iter().step_by(2) {
            names.extend(lane_counts::parse_field(&reply::text(field)?).map(|(_, lane)| lane));
        }
        if cursor == SCAN_EDGE {
            return Ok(names);
        }
    }
}

/// The records as they read amid what stands around them.
pub(crate) async fn show(
    shared: &Shared,
    records: Vec<Record>,
) -> Result<Vec<Record>, EngineError> {
    let around = around(shared, &records).await?;
    let show = |record: Record| {
        let by = |id: &DocumentId| around.get(id).copied().unwrap_or_default();
        let Surroundings { lane, .. } = by(&DocumentId::lane(&record.namespace, &record.lane));
        let flow_stops = record.awaited_flow().is_some_and(|flow| by(&flow).flow_stops);
        record.amid(Surroundings { lane, flow_stops })
    };
    Ok(records.into_iter().map(show).collect())
}

/// Lanes that somebody has said something of, and flows: what each means to what stands in it.
async fn around(
    shared: &Shared,
    records: &[Record],
) -> Result<HashMap<DocumentId, Surroundings>, EngineError> {
    let mut by_home: BTreeMap<Home, BTreeSet<DocumentId>> = BTreeMap::new();
    for record in records {
        let lane = DocumentId::lane(&record.namespace, &record.lane);
        for id in std::iter::once(lane).chain(record.awaited_flow()) {
            by_home.entry(id.home.clone()).or_default().insert(id);
        }
    }
    let reads = by_home.iter().map(|(home, ids)| async move {
        let ids: Vec<_> = ids.iter().cloned().collect();
        let mut found = Vec::new();
        for part in ids.chunks(ITEMS_MOST) {
            found.extend(read::documents(shared, home, part).await?.1);
        }
        Ok::<_, EngineError>(found)
    });
    let mut around = HashMap::new();
    for found in join_all(reads).await {
        let found = found?.into_iter().flatten();
        around
            .extend(found.map(|(document, _)| (document.id.clone(), Surroundings::by(&document))));
    }
    Ok(around)
}
