//! What a step on a flow could not do is left as work in rows beside it, and carried on at once.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::Facts;
use super::super::draft::Halt;
use super::super::rows::{Family, RowChange, RowKey};
use super::super::step::Step;
use super::cancel::Decided;
use super::existing;
use super::pages::Beside;
use super::scene::{Scene, beside, broken};
use crate::id::{DocumentId, ExecutionId};
use crate::limits;
use crate::operation::{CascadeCompletion, Cascaded};
use crate::state::{DueKind, Flow, Work, WorkKind};
use crate::time::TimestampMs;

/// Something left to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WorkItem {
    /// Edges of an ended member, from a place on.
    Resolve { member: Uuid, from: u32 },
    /// Upstreams of a member whose group has decided.
    CancelSiblings { downstream: Uuid, from: u32, satisfied: bool },
    /// Members of a cancelled flow, from a number on.
    CancelMembers { from: u32 },
    /// Chunks of a submitted graph.
    Unfold { from: u32 },
    /// Edges of a replayed member.
    Reset { member: Uuid },
    /// Upstreams that were cancelled because a group could not be satisfied, and are replayed.
    Revive { downstream: Uuid, from: u32 },
    /// Children that do not know yet who waits for them.
    Tell { parent: Uuid, wait: u32, from: u32 },
    /// Failures that may have been handled.
    Judge { from: u32 },
    /// Failures that are to be replayed, those before a place, the newest first.
    ReplayFailed { before: u32 },
    /// Members of a flow that is removed, those before a number.
    Remove { before: u32 },
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Left {
    since: TimestampMs,
    item: WorkItem,
}

impl WorkItem {
    const fn kind(&self) -> WorkKind {
        match self {
            Self::Resolve { .. } | Self::Reset { .. } | Self::Tell { .. } => WorkKind::Resolve,
            Self::Judge { .. } => WorkKind::Judge,
            Self::CancelSiblings { .. } => WorkKind::CancelSiblings,
            Self::CancelMembers { .. } => WorkKind::CancelMembers,
            Self::ReplayFailed { .. } | Self::Revive { .. } => WorkKind::Resolve,
            Self::Unfold { .. } => WorkKind::Unfold,
            Self::Remove { .. } => WorkKind::Remove,
        }
    }

    /// Whether edges must not resolve before it is done.
    const fn is_barrier(&self) -> bool {
        matches!(
            self,
            Self::Unfold { .. }
                | Self::Reset { .. }
                | Self::Revive { .. }
                | Self::ReplayFailed { .. }
        )
    }
}

fn row(number: u32) -> RowKey {
    RowKey::numbered(Family::Work, number)
}

impl<F: Facts> Scene<'_, F> {
    /// Leaves work in the flow of a member.
    pub(super) fn leave_work(&mut self, id: ExecutionId, item: WorkItem) -> Result<(), Halt> {
        let flow = self.flow_of(id)?.id.clone();
        self.leave_flow_work(&flow, item)
    }

    pub(super) fn leave_flow_work(&mut self, id: &DocumentId, item: WorkItem) -> Result<(), Halt> {
        let now = self.now;
        let draft = self.flow(id)?;
        let work = &mut draft.flow_mut().work;
        if work.is_empty() {
            (work.since, work.kind) = (now, item.kind());
        }
        work.barriers += u32::from(item.is_barrier());
        let number = work.next;
        work.next += 1;
        draft.put_row(RowChange::put(row(number), &Left { since: now, item }));
        Ok(())
    }

    /// Carries out what is due of a flow: of which kind it was.
    pub(in super::super) fn work_if_due(
        &mut self,
        id: &DocumentId,
    ) -> Result<Option<DueKind>, Halt> {
        if self.facts.document(id)?.is_none() {
            return Ok(None);
        }
        let now = self.now;
        let due = self.flow(id)?.flow().due().filter(|due| due.at <= now);
        let Some(due) = due else { return Ok(None) };
        self.work(id)?;
        Ok(Some(due.kind))
    }

    /// What is due of a flow: work that was left, or its removal.
    pub(super) fn work(&mut self, id: &DocumentId) -> Result<(), Halt> {
        let now = self.now;
        self.left = limits::FLOW_STEP;
        let flow = self.flow(id)?.flow_mut();
        if flow.work.is_empty() {
            if !flow.is_over(now) {
                return Ok(());
            }
            flow.removing = true;
            let before = flow.members;
            self.leave_flow_work(id, WorkItem::Remove { before })?;
        }
        self.carry_on(id)
    }

    /// Does a share of the oldest work of a flow.
    pub(super) fn carry_on(&mut self, id: &DocumentId) -> Result<(), Halt> {
        let facts = self.facts;
        let draft = self.flow(id)?;
        let Work { first, next, .. } = draft.flow().work;
        if first == next {
            return Ok(());
        }
        let rows: Vec<_> = (first..next).take(2).map(row).collect();
        facts.want_rows(&id.into(), &rows)?;
        let left: Option<Left> = draft.find_row(facts, &row(first))?;
        let Some(left) = left else { return Err(broken("work is lost")) };
        let item = left.item;
        let rest = self.perform(id, left)?;
        let barrier = item.is_barrier();
        if let Some(rest) = rest.filter(|_| barrier) {
            // What comes behind a barrier waits for all of it.
            let since = self.now;
            self.flow(id)?.put_row(RowChange::put(row(first), &Left { since, item: rest }));
            return self.follow_up();
        }
        self.drop_first(id, barrier)?;
        if let Some(rest) = rest {
            self.leave_flow_work(id, rest)?;
        }
        self.follow_up()
    }

    /// The oldest work is done.
    fn drop_first(&mut self, id: &DocumentId, barrier: bool) -> Result<(), Halt> {
        let facts = self.facts;
        let draft = self.flow(id)?;
        let work = &mut draft.flow_mut().work;
        let first = work.first;
        work.first += 1;
        work.barriers -= u32::from(barrier);
        let (next, is_empty) = (work.first, work.is_empty());
        draft.put_row(RowChange::remove(row(first)));
        if is_empty {
            draft.flow_mut().work = Work::default();
            return Ok(());
        }
        let left: Option<Left> = draft.find_row(facts, &row(next))?;
        let Some(left) = left else { return Err(broken("work is lost")) };
        let work = &mut draft.flow_mut().work;
        (work.since, work.kind) = (left.since, left.item.kind());
        Ok(())
    }

    /// A share of one item: what is left of it.
    fn perform(&mut self, id: &DocumentId, left: Left) -> Result<Option<WorkItem>, Halt> {
        match left.item {
            WorkItem::Resolve { member, from } => {
                let member = beside(id, member);
                let found = self.draft(member)?;
                let known = found.and_then(|draft| draft.execution.member.as_ref());
                // Of a generation that has been replayed meanwhile nothing is left to resolve.
                if known.is_some_and(|member| member.resolved == from) {
                    // What is too much is left as new work.
                    self.resolve(member, from)?;
                }
                Ok(None)
            }
            WorkItem::CancelSiblings { downstream, from, satisfied } => {
                let decided = Decided { satisfied, at: left.since };
                let next = self.cancel_siblings(beside(id, downstream), from, decided)?;
                Ok(next.map(|from| WorkItem::CancelSiblings { downstream, from, satisfied }))
            }
            WorkItem::CancelMembers { from } => {
                let next = self.cancel_members(id, from)?;
                Ok(next.map(|from| WorkItem::CancelMembers { from }))
            }
            WorkItem::Unfold { from } => {
                let next = self.unfold(id, from)?;
                Ok(next.map(|from| WorkItem::Unfold { from }))
            }
            WorkItem::Reset { member } => {
                let more = self.reset_edges(beside(id, member))?;
                Ok(more.then_some(left.item))
            }
            WorkItem::Revive { downstream, from } => {
                let next = self.revive_siblings(beside(id, downstream), from)?;
                Ok(next.map(|from| WorkItem::Revive { downstream, from }))
            }
            WorkItem::Tell { parent, wait, from } => {
                let next = self.tell_children(beside(id, parent), wait, from)?;
                Ok(next.map(|from| WorkItem::Tell { parent, wait, from }))
            }
            WorkItem::Judge { from } => {
                let flow = self.flow(id)?.flow_mut();
                flow.judging = false;
                if flow.live == 0 && flow.end.is_none() && !flow.is_cancelled() {
                    self.judge(id, from)?;
                }
                Ok(None)
            }
            WorkItem::ReplayFailed { before } => {
                let next = self.replay_failed(id, before)?;
                Ok(next.map(|before| WorkItem::ReplayFailed { before }))
            }
            WorkItem::Remove { before } => {
                let next = self.remove_members(id, before)?;
                Ok(next.map(|before| WorkItem::Remove { before }))
            }
        }
    }
}

/// One share of what a flow has left; the tick does the same.
pub(in super::super) fn cascade(
    facts: &impl Facts,
    op: &CascadeCompletion,
    now: TimestampMs,
) -> Result<Step<Cascaded>, Halt> {
    let document = existing(facts, op.flow_id)?;
    let mut scene = Scene::new(facts, now);
    scene.work(&document.id)?;
    let changes = scene.finish();
    let flow = changes.documents.iter().find(|changed| changed.id == document.id);
    let more = flow.and_then(|changed| changed.after.as_ref()).and_then(|after| after.flow());
    let more = more.is_some_and(|flow| !flow.work.is_empty());
    Ok(Step::done(Cascaded { more }, changes))
}

impl Flow {
    /// Whether it has been kept long enough.
    fn is_over(&self, now: TimestampMs) -> bool {
        self.end.is_some_and(|end| end.kept_until <= now)
    }
}
