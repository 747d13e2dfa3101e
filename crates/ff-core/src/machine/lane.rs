//! The rules of lanes.

use std::sync::Arc;

use super::document::DocumentDraft;
use super::draft::Halt;
use super::revision::check_revision;
use super::standing::check_attached;
use super::step::{Changed, Step};
use super::{Facts, Needs};
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{DocumentId, LaneId, Namespace};
use crate::operation::{LaneSet, SetLane};
use crate::state::{Execution, Lane, LaneState, Phase};
use crate::time::TimestampMs;

pub(super) fn set(
    facts: &impl Facts,
    op: &SetLane,
    now: TimestampMs,
) -> Result<Step<LaneSet>, Halt> {
    let id = DocumentId::lane(&op.namespace, &op.lane);
    let fresh = || Lane::new(&op.namespace, &op.lane);
    let mut draft = DocumentDraft::open(facts, id, fresh, now)?;
    check_revision(op.expected_revision, draft.revision())?;
    let lane = &mut draft.body;
    if let Some(state) = op.state {
        note_state(lane, (state, &op.reason), now);
    }
    lane.priority_ageing_ms = op.priority_ageing_ms.unwrap_or(lane.priority_ageing_ms);
    let before = std::mem::take(&mut lane.attached);
    lane.attached = op.attach.over(&before);
    let (state, priority_ageing_ms) = (lane.state, lane.priority_ageing_ms);
    let attached = lane.attached.clone();
    check_attached(facts, &op.namespace, &attached, &op.attach.kept(&before))?;
    let reply = |revision| LaneSet { state, priority_ageing_ms, attached, revision };
    if draft.is_untouched() {
        return Ok(Step::unchanged(reply(draft.revision())));
    }
    let ageing = i64::try_from(priority_ageing_ms).unwrap_or(i64::MAX);
    let mut data = EventData::from([
        ("state".to_owned(), state.as_str().into()),
        ("priority_ageing_ms".to_owned(), TimestampMs(ageing).into()),
    ]);
    if !op.reason.is_empty() {
        data.insert("reason".to_owned(), op.reason.as_str().into());
    }
    draft.event(EventKind::LaneChanged, data);
    let reply = reply(draft.revision() + 1);
    Ok(draft.answer(reply))
}

/// A reason is of the state that it was given with: it goes with that, and said again it is another one. Why a
/// lane is active is nobody's question.
fn note_state(lane: &mut Lane, (state, reason): (LaneState, &str), now: TimestampMs) {
    if state != lane.state {
        (lane.state, lane.changed_at) = (state, now);
        lane.reason.clear();
    }
    if state != LaneState::Active && !reason.is_empty() {
        reason.clone_into(&mut lane.reason);
    }
}

/// Refuses new work for a lane that takes none.
pub(super) fn check_accepts(
    facts: &impl Facts,
    namespace: &Namespace,
    lane: &LaneId,
) -> Result<(), Halt> {
    let state = facts.lane_state(namespace, lane)?;
    if state.takes_submits() {
        return Ok(());
    }
    let detail = format!("lane {lane:?} is {} and takes no new work", state.as_str());
    Err(Refusal::at(Code::LaneNotAccepting, "lane", detail).into())
}

/// Notes the ageing of its lane in every execution that a step makes eligible. Done here once, so
/// that no rule can forget it, and kept in the record, since a place in a queue follows from it.
pub(super) fn note_ageing(facts: &impl Facts, changed: &mut [Changed]) -> Result<(), Needs> {
    for changed in changed {
        let was = changed.before.as_ref().is_some_and(|before| is_eligible(before));
        let Some(after) = changed.after.as_mut().filter(|after| !was && is_eligible(after)) else {
            continue;
        };
        let lane = DocumentId::lane(&after.about.namespace, &after.about.lane);
        let document = facts.document(&lane)?;
        let lane = document.as_ref().and_then(|document| document.lane());
        let ageing = lane.map_or(0, |lane| lane.priority_ageing_ms);
        if let Phase::Runnable(runnable) = &after.phase
            && runnable.ageing_ms != ageing
            && let Phase::Runnable(runnable) = &mut Arc::make_mut(after).phase
        {
            runnable.ageing_ms = ageing;
        }
    }
    Ok(())
}

fn is_eligible(execution: &Execution) -> bool {
    execution.phase.claimable().is_some()
}
