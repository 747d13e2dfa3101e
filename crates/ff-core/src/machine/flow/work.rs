//! What a step on a flow could not do is left as work in rows beside it, and carried on at once.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::Facts;
use super::super::draft::Halt;
use super::super::rows::{Family, RowChange, RowKey};
use super::super::step::Step;
use super::cancel::Decided;
use super::pages::Beside;
use super::scene::{Scene, beside, broken};
use super::settle::not_found;
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

    /// Whether what comes behind waits for all of it. Nobody whom a cancel ends waits for edges.
    const fn keeps_its_place(&self) -> bool {
        self.is_barrier() || matches!(self, Self::CancelMembers { .. })
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
        let queue = self.oldest(id)?;
        let Some(oldest) = queue.first().copied() else { return Ok(()) };
        let ends = self.ends_at_hand(id, &queue)?;
        if !ends.is_empty() {
            let count = u32::try_from(ends.len()).unwrap_or(u32::MAX);
            // What is too much is left as new work.
            self.for_each(ends, |scene, end| scene.resolve_left(id, end))?;
            self.drop_first(id, count, false)?;
            return self.follow_up();
        }
        let rest = self.perform(id, oldest)?;
        let item = oldest.item;
        if let Some(rest) = rest.filter(|_| item.keeps_its_place()) {
            let (since, first) = (self.now, self.flow(id)?.flow().work.first);
            self.flow(id)?.put_row(RowChange::put(row(first), &Left { since, item: rest }));
            return self.follow_up();
        }
        self.drop_first(id, 1, item.is_barrier())?;
        if let Some(rest) = rest {
            self.leave_flow_work(id, rest)?;
        }
        self.follow_up()
    }

    /// What was left first, as much of it as one step may do, and what comes behind that.
    fn oldest(&mut self, id: &DocumentId) -> Result<Vec<Left>, Halt> {
        let facts = self.facts;
        let draft = self.flow(id)?;
        let Work { first, next, .. } = draft.flow().work;
        let to = next.min(first.saturating_add(limits::FLOW_STEP + 1));
        let rows: Vec<_> = (first..to).map(row).collect();
        facts.want_rows(&id.into(), &rows)?;
        let find = |row| match draft.find_row(facts, row)? {
            Some(left) => Ok(left),
            None => Err(broken("work is lost")),
        };
        rows.iter().map(find).collect()
    }

    /// Ends of members at the head of the queue whose edges one step resolves together: those of the
    /// first, and of as many others as there is room for.
    fn ends_at_hand(
        &mut self,
        id: &DocumentId,
        queue: &[Left],
    ) -> Result<Vec<(ExecutionId, u32)>, Halt> {
        let end = |left: &Left| match left.item {
            WorkItem::Resolve { member, from } => Some((beside(id, member), from)),
            _ => None,
        };
        let ends = queue.iter().take(limits::FLOW_STEP as usize).map_while(end);
        let mut ends: Vec<_> = ends.collect();
        self.want(&ends.iter().map(|(member, _)| *member).collect::<Vec<_>>())?;
        let (mut room, mut fitting) = (self.left, 0);
        for (member, from) in &ends {
            let edges = self.edges_left(id, *member, *from)?;
            if edges > room && fitting > 0 {
                break;
            }
            room = room.saturating_sub(edges);
            fitting += 1;
        }
        ends.truncate(fitting);
        Ok(ends)
    }

    /// How many edges of an ended member are still to be resolved, should they be so from this place
    /// on: of a generation that has been replayed meanwhile none is.
    fn edges_left(&mut self, flow: &DocumentId, id: ExecutionId, from: u32) -> Result<u32, Halt> {
        let flow_id = self.flow(flow)?.flow().id;
        let found = self.view(id)?;
        let member = found.as_ref().and_then(|found| found.member.as_ref());
        let member = member.filter(|it| it.flow_id == flow_id && it.resolved == from);
        Ok(member.map_or(0, |member| member.outs.saturating_sub(from)))
    }

    fn resolve_left(
        &mut self,
        flow: &DocumentId,
        (id, from): (ExecutionId, u32),
    ) -> Result<(), Halt> {
        if self.edges_left(flow, id, from)? == 0 { Ok(()) } else { self.resolve(id, from) }
    }

    /// The oldest work is done.
    fn drop_first(&mut self, id: &DocumentId, count: u32, barrier: bool) -> Result<(), Halt> {
        let facts = self.facts;
        let draft = self.flow(id)?;
        let work = &mut draft.flow_mut().work;
        let first = work.first;
        work.first += count;
        work.barriers -= u32::from(barrier);
        let (next, is_empty) = (work.first, work.is_empty());
        for number in first..next {
            draft.put_row(RowChange::remove(row(number)));
        }
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
        let stopped = self.flow(id)?.flow().stops_claims();
        match left.item {
            WorkItem::Resolve { member, from } => {
                self.resolve_left(id, (beside(id, member), from))?;
                Ok(None)
            }
            // A cancelled flow replays nobody.
            WorkItem::Revive { .. } | WorkItem::ReplayFailed { .. } if stopped => Ok(None),
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
    let id = DocumentId::flow(op.flow_id, &facts.settings().partitions);
    if facts.document(&id)?.is_none() {
        return Err(not_found(op.flow_id).into());
    }
    let mut scene = Scene::new(facts, now);
    scene.work(&id)?;
    let changes = scene.finish();
    let flow = changes.documents.iter().find(|changed| changed.id == id);
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
