//! The rule of waiting for children.

use uuid::Uuid;

use super::super::Facts;
use super::super::draft::Halt;
use super::super::fence::{Passage, pass};
use super::super::step::Step;
use super::edges::leads_to;
use super::pages::{Beside, CHILDREN, IN, InEdge};
use super::scene::{Scene, stands_in};
use super::work::WorkItem;
use super::{not_in_flow, reply_of};
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{DocumentId, ExecutionId};
use crate::limits;
use crate::operation::{WaitChildren, WaitingChildren};
use crate::state::{Causes, Children, LeaseEnd, LeaseEndReply, Next, Parent, Phase, Runnable};
use crate::time::TimestampMs;

pub(in super::super) fn wait(
    facts: &impl Facts,
    op: &WaitChildren,
    now: TimestampMs,
) -> Result<Step<WaitingChildren>, Halt> {
    let operation = LeaseEnd::WaitChildren;
    let draft = match pass(facts, op.execution_id, op.authority, operation, now)? {
        Passage::Repeated(reply) => return Ok(Step::unchanged(waiting(reply, true)?)),
        Passage::Open(draft) => *draft,
    };
    let Some(member) = &draft.execution.member else {
        return Err(not_in_flow(op.execution_id).into());
    };
    let flow = DocumentId::flow_in(op.execution_id.partition(), member.flow_id);
    let before = draft.execution.clone();
    let mut scene = Scene::new(facts, now);
    scene.put(draft);
    let children = scene.children_of(&flow, op)?;
    scene.put_aside(op.execution_id, &children)?;
    if let Some(from) = {
        let wait = scene.member(op.execution_id)?.member()?.waits;
        scene.tell_children(op.execution_id, wait, 0)?
    } {
        let (parent, wait) =
            (op.execution_id.uuid(), scene.member(op.execution_id)?.member()?.waits);
        scene.leave_flow_work(&flow, WorkItem::Tell { parent, wait, from })?;
    }
    let draft = scene.member(op.execution_id)?;
    draft.rest_if_over();
    let public_state = draft.execution.public_state();
    let unresolved = draft.execution.phase.children().map_or(0, |c| c.total - c.ended);
    let data = EventData::from([("unresolved".to_owned(), unresolved.into())]);
    draft.event_with(EventKind::Released, data);
    let reply = LeaseEndReply::WaitingChildren { unresolved, public_state };
    let reply = reply_of(facts, &draft.execution, reply)?;
    draft.remember(op.authority.fence().copied(), reply);
    // A cancelled flow ends whoever gives its lease back.
    scene.settle_one(&before)?;
    Ok(Step::done(waiting(reply, false)?, scene.finish()))
}

fn waiting(reply: LeaseEndReply, replayed: bool) -> Result<WaitingChildren, Halt> {
    match reply {
        LeaseEndReply::WaitingChildren { unresolved, public_state } => {
            Ok(WaitingChildren { unresolved, public_state, replayed })
        }
        other => Err(other.misremembered().into()),
    }
}

impl<F: Facts> Scene<'_, F> {
    /// Those that a wait is for: the given ones, or all upstreams.
    fn children_of(
        &mut self,
        flow: &DocumentId,
        op: &WaitChildren,
    ) -> Result<Vec<ExecutionId>, Halt> {
        let facts = self.facts;
        let parent = op.execution_id;
        let Some(given) = &op.children else {
            let member = self.member(parent)?.member()?;
            let (ins, flow_id) = (member.ins, member.flow_id);
            let edges: Vec<InEdge> =
                self.member(parent)?.items(facts, &parent.into(), &IN, (0, ins))?;
            let ends: Vec<_> =
                edges.iter().filter(|edge| edge.applied).map(|edge| edge.from).collect();
            self.want(&ends.iter().map(|end| end.id(parent)).collect::<Vec<_>>())?;
            let mut ids = Vec::with_capacity(ends.len());
            for end in ends {
                // Nobody waits for one that was removed.
                if self.stands(flow_id, parent, end)? {
                    ids.push(end.id(parent));
                }
            }
            return Ok(ids);
        };
        let mut ids = given.clone();
        ids.sort_unstable();
        ids.dedup();
        let here: Vec<_> = ids.iter().copied().filter(|id| stands_in(flow, *id)).collect();
        self.want(&here)?;
        let mut numbers = Vec::with_capacity(ids.len());
        for id in &ids {
            let found = if stands_in(flow, *id) { self.view(*id)? } else { None };
            let member = found.as_ref().and_then(|found| found.member.as_ref());
            match member.filter(|member| *member.flow_id.to_string() == *flow.name) {
                Some(member) => numbers.push(member.number),
                None => {
                    let detail = format!("{id} is not a member of the same flow");
                    return Err(Refusal::at(Code::InvalidDependency, "child_ids", detail).into());
                }
            }
        }
        if ids.contains(&parent) || leads_to(self, flow, parent, &numbers)? {
            let detail = "a child is the execution itself or waits for it";
            return Err(Refusal::at(Code::CycleDetected, "child_ids", detail).into());
        }
        Ok(ids)
    }

    /// Releases the lease and notes the children.
    fn put_aside(&mut self, id: ExecutionId, children: &[ExecutionId]) -> Result<(), Halt> {
        let now = self.now;
        let draft = self.member(id)?;
        draft.end_lease();
        let member = draft.member_mut()?;
        member.waits += 1;
        let wait = member.waits;
        let total = u32::try_from(children.len()).unwrap_or(u32::MAX);
        let children_of = Children { wait, total, told: 0, ended: 0 };
        let causes = Causes { children: Some(children_of), ..Causes::default() };
        draft.execution.phase = Phase::Runnable(Runnable::new(causes, Next::Resume, now));
        for (page, ids) in (0..).zip(children.chunks(CHILDREN.per_page() as usize)) {
            let uuids: Vec<_> = ids.iter().map(ExecutionId::uuid).collect();
            draft.put_page(&CHILDREN, page, &uuids);
        }
        let attempt = draft.execution.attempt.as_ref().map_or(0, |attempt| attempt.index);
        let member = draft.member_mut()?;
        (member.children, member.waiting_attempt) = (total, attempt);
        self.flow_of(id)?.flow_mut().waits = true;
        Ok(())
    }

    /// Tells children from a place on that they are waited for; where to go on.
    pub(super) fn tell_children(
        &mut self,
        parent: ExecutionId,
        wait: u32,
        from: u32,
    ) -> Result<Option<u32>, Halt> {
        let facts = self.facts;
        let Some(draft) = self.draft(parent)? else { return Ok(None) };
        let Some(children) = draft.execution.phase.children().filter(|c| c.wait == wait) else {
            return Ok(None);
        };
        let total = children.total;
        let to = total.min(from.saturating_add(limits::FLOW_STEP));
        let uuids: Vec<Uuid> =
            self.member(parent)?.items(facts, &parent.into(), &CHILDREN, (from, to))?;
        let ids: Vec<_> =
            uuids.into_iter().map(|uuid| ExecutionId::new(parent.partition(), uuid)).collect();
        self.want(&ids)?;
        let whole = from == 0 && to == total;
        let ended = self.meet(&ids, Parent { uuid: parent.uuid(), wait }, whole)?;
        let draft = self.member(parent)?;
        if let Some(children) = draft.execution.phase.children_mut() {
            (children.told, children.ended) = (to, children.ended + ended);
        }
        if from > 0 && draft.rest_if_over() {
            draft.event(EventKind::Unblocked);
        }
        Ok((to < total).then_some(to))
    }

    /// Tells these children who waits for them: how many have ended. Those are told as well, since
    /// they may be replayed while others are waited for; if these are all, and all have ended, nobody
    /// waits.
    fn meet(&mut self, ids: &[ExecutionId], parent: Parent, whole: bool) -> Result<u32, Halt> {
        let mut ended = 0;
        for id in ids {
            // One may have ended so long ago that it is gone.
            ended += u32::from(self.view(*id)?.is_none_or(|child| child.is_terminal()));
        }
        if whole && ended as usize == ids.len() {
            return Ok(ended);
        }
        for id in ids {
            if let Some(draft) = self.draft(*id)? {
                let parents = &mut draft.member_mut()?.parents;
                parents.retain(|known| known.uuid != parent.uuid);
                parents.push(parent);
            }
        }
        Ok(ended)
    }
}

impl super::super::draft::Draft {
    /// Nothing is left to wait for.
    fn rest_if_over(&mut self) -> bool {
        let over = self.execution.phase.children().is_some_and(Children::is_over);
        if let (true, Phase::Runnable(runnable)) = (over, &mut self.execution.phase) {
            runnable.causes.children = None;
            runnable.since = self.now;
        }
        over
    }
}
