//! Search over executions, newest first.

use serde::{Deserialize, Serialize};

use super::{Record, Seen};
use crate::cursor;
use crate::error::Refusal;
use crate::id::{ExecutionId, FlowId, Kind, LaneId, Namespace};
use crate::state::{Execution, PublicState};
use crate::time::TimestampMs;

/// One page of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    pub filter: Filter,
    pub cursor: Option<String>,
    pub limit: u32,
}

/// What an execution must have; an empty list asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Filter {
    pub namespace: Option<Namespace>,
    pub lanes: Vec<LaneId>,
    pub states: Vec<PublicState>,
    pub kinds: Vec<Kind>,
    /// All of these, by equality.
    pub tags: Vec<(String, String)>,
    /// Members of this flow.
    pub flow: Option<FlowId>,
    /// From this instant on.
    pub created_after: Option<TimestampMs>,
    /// Before this instant.
    pub created_before: Option<TimestampMs>,
    pub completed_after: Option<TimestampMs>,
    pub completed_before: Option<TimestampMs>,
}

/// Where a page begins: behind this execution, in the order newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SearchPosition {
    pub created_at: TimestampMs,
    pub execution_id: ExecutionId,
}

impl Search {
    /// Reads its cursor.
    pub fn position(&self) -> Result<Option<SearchPosition>, Refusal> {
        let scope = self.scope();
        self.cursor.as_deref().map(|text| cursor::decode(&scope, text)).transpose()
    }

    /// What an execution is to this search.
    pub fn see(&self, execution: &Execution, now: TimestampMs) -> Seen<Record> {
        if self.filter.matches(execution) {
            Seen::Item(Record::of(execution, now))
        } else {
            Seen::Passed
        }
    }

    /// The cursor that goes on behind `position`.
    pub fn cursor_after(&self, position: SearchPosition) -> String {
        cursor::encode(&self.scope(), &position)
    }

    fn scope(&self) -> String {
        format!("search {:?}", self.filter)
    }
}

impl Filter {
    pub fn matches(&self, execution: &Execution) -> bool {
        let about = &execution.about;
        let completed = execution.phase.terminal().map(|terminal| terminal.at);
        self.namespace.as_ref().is_none_or(|namespace| *namespace == about.namespace)
            && (self.lanes.is_empty() || self.lanes.contains(&about.lane))
            && (self.states.is_empty() || self.states.contains(&execution.public_state()))
            && (self.kinds.is_empty() || self.kinds.contains(&about.kind))
            && self.tags.iter().all(|(k, v)| execution.tags.get(k) == Some(v))
            && self.flow.is_none_or(|flow| {
                execution.member.as_ref().is_some_and(|member| member.flow_id == flow)
            })
            && within(Some(about.created_at), self.created_after, self.created_before)
            && within(completed, self.completed_after, self.completed_before)
    }
}

fn within(
    at: Option<TimestampMs>,
    after: Option<TimestampMs>,
    before: Option<TimestampMs>,
) -> bool {
    match at {
        Some(at) => after.is_none_or(|after| at >= after) && before.is_none_or(|end| at < end),
        None => after.is_none() && before.is_none(),
    }
}
