//! What users see of lanes.

use std::collections::BTreeSet;

use super::{Page, WorkerSnapshot};
use crate::cursor;
use crate::error::Refusal;
use crate::id::{LaneId, Namespace};
use crate::state::{Attached, Document, LaneState, MemberCounts, PublicState};
use crate::time::TimestampMs;

/// A lane; every name is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeLane {
    pub namespace: Namespace,
    pub lane: LaneId,
}

/// Lanes that something names: a word of an operator, a worker, an execution that has not ended.
/// In the order of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListLanes {
    pub namespace: Namespace,
    /// Only these.
    pub within: Option<Vec<LaneId>>,
    pub cursor: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneSnapshot {
    pub lane: LaneId,
    pub state: LaneState,
    /// Why it is not active; empty: nobody said.
    pub reason: String,
    pub priority_ageing_ms: u64,
    /// What all that is submitted to it stands under.
    pub attached: Attached,
    /// 0 while nobody has said anything of it.
    pub revision: u64,
    /// Executions that have not ended, by public state; resumable ones count as waiting.
    pub depth: MemberCounts,
    /// How long the oldest eligible execution has been eligible, of those that stand first in the
    /// lane's queues: 1,000 or so are looked at. None: there is none.
    pub oldest_age_ms: Option<u64>,
    pub running: u32,
    /// Live workers that are registered for it.
    pub live_workers: u32,
}

/// What a store finds of a lane.
#[derive(Debug, Clone, Default)]
pub struct LaneFound {
    /// Executions that have not ended, by public state.
    pub counts: MemberCounts,
    /// Since when the oldest eligible one has been eligible.
    pub oldest: Option<TimestampMs>,
}

impl LaneSnapshot {
    /// `workers`: those of the namespace that are alive.
    pub fn of(
        lane: &LaneId,
        document: Option<&Document>,
        found: &LaneFound,
        workers: &[WorkerSnapshot],
        now: TimestampMs,
    ) -> Self {
        let known = document.and_then(Document::lane);
        let serves = |worker: &&WorkerSnapshot| worker.lanes.contains(lane);
        let mut depth = MemberCounts::default();
        for (state, count) in found.counts.iter() {
            depth.add(Self::depth_state(state) as u8, count.into());
        }
        Self {
            lane: lane.clone(),
            state: known.map_or(LaneState::default(), |lane| lane.state),
            reason: known.map(|lane| lane.reason.clone()).unwrap_or_default(),
            priority_ageing_ms: known.map_or(0, |lane| lane.priority_ageing_ms),
            attached: known.map(|lane| lane.attached.clone()).unwrap_or_default(),
            revision: document.map_or(0, |document| document.revision),
            running: depth.of(PublicState::Active),
            depth,
            oldest_age_ms: found.oldest.map(|since| now.since(since)),
            live_workers: u32::try_from(workers.iter().filter(serves).count()).unwrap_or(u32::MAX),
        }
    }

    /// The state under which a depth counts an execution.
    pub const fn depth_state(state: PublicState) -> PublicState {
        match state {
            PublicState::Resumable => PublicState::Waiting,
            other => other,
        }
    }
}

impl ListLanes {
    /// The names on the page, of all that there are.
    pub fn page(&self, names: BTreeSet<LaneId>) -> Result<Page<LaneId>, Refusal> {
        let scope = format!("lanes {} {:?}", self.namespace, self.within);
        let behind: Option<LaneId> =
            self.cursor.as_ref().map(|text| cursor::decode(&scope, text)).transpose()?;
        let wanted = |name: &LaneId| {
            behind.as_ref().is_none_or(|behind| name > behind)
                && self.within.as_ref().is_none_or(|lanes| lanes.contains(name))
        };
        let mut names = names.into_iter().filter(wanted);
        let items: Vec<_> = names.by_ref().take(self.limit as usize).collect();
        let last = items.last().filter(|_| names.next().is_some());
        let next_cursor = last.map(|last| cursor::encode(&scope, last));
        Ok(Page { items, next_cursor })
    }
}
