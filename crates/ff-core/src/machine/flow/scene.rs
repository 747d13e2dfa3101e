//! A step on a flow under way: the members and flows that it has touched so far.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::super::document::DocumentDraft;
use super::super::draft::{Draft, Halt};
use super::super::rows::{RowChange, RowKey};
use super::super::step::{Changed, Changes, PassedSibling};
use super::super::{Facts, Needs};
use super::pages::{Beside, End};
use crate::error::{Code, Refusal};
use crate::id::{DocumentId, ExecutionId, FlowId};
use crate::limits;
use crate::state::{Execution, Flow, Member};
use crate::time::TimestampMs;

pub(in super::super) struct Scene<'f, F> {
    pub(in super::super) facts: &'f F,
    pub(in super::super) now: TimestampMs,
    /// Executions in the order in which they were touched.
    order: Vec<ExecutionId>,
    drafts: HashMap<ExecutionId, Draft>,
    /// Executions that go.
    removed: Vec<Changed>,
    flows: BTreeMap<DocumentId, DocumentDraft<Flow>>,
    /// Members that have ended in this step and whose edges have not been looked at.
    pub(super) ended: VecDeque<ExecutionId>,
    /// Members that were replayed and whose edges must be counted anew, once all that are replayed
    /// have taken theirs back.
    pub(super) undecided: Vec<ExecutionId>,
    /// Edges and members that this step may still touch.
    pub(super) left: u32,
    /// Upstreams of decided groups that could not be cancelled.
    pub(super) passed: Vec<PassedSibling>,
}

impl<'f, F: Facts> Scene<'f, F> {
    pub(in super::super) fn new(facts: &'f F, now: TimestampMs) -> Self {
        Self {
            facts,
            now,
            order: Vec::new(),
            drafts: HashMap::new(),
            removed: Vec::new(),
            flows: BTreeMap::new(),
            ended: VecDeque::new(),
            undecided: Vec::new(),
            left: limits::FLOW_STEP,
            passed: Vec::new(),
        }
    }

    /// Goes on with what a rule has changed.
    pub(super) fn take(&mut self, changed: Changed) {
        let id = changed.id;
        match Draft::reopen(changed, self.now) {
            Ok(draft) => {
                self.order.push(id);
                self.drafts.insert(id, draft);
            }
            Err(removed) => self.removed.push(*removed),
        }
    }

    /// Takes on a draft that a rule has made.
    pub(super) fn put(&mut self, draft: Draft) {
        let id = draft.execution.id;
        self.order.push(id);
        self.drafts.insert(id, draft);
    }

    pub(super) fn put_flow(&mut self, draft: DocumentDraft<Flow>) {
        self.flows.insert(draft.id.clone(), draft);
    }

    /// An execution as this step leaves it; none if there is no such.
    pub(in super::super) fn view(&self, id: ExecutionId) -> Result<Option<Arc<Execution>>, Needs> {
        match self.drafts.get(&id) {
            Some(draft) => Ok(Some(Arc::new(draft.execution.clone()))),
            None => self.facts.execution(id),
        }
    }

    /// An execution to change; none if there is no such.
    pub(in super::super) fn draft(&mut self, id: ExecutionId) -> Result<Option<&mut Draft>, Needs> {
        if !self.drafts.contains_key(&id) {
            let Some(execution) = self.facts.execution(id)? else { return Ok(None) };
            self.order.push(id);
            self.drafts.insert(id, Draft::of(execution, self.now));
        }
        Ok(self.drafts.get_mut(&id))
    }

    /// A member to change, which is known to be there.
    pub(super) fn member(&mut self, id: ExecutionId) -> Result<&mut Draft, Halt> {
        let found = self.draft(id)?.filter(|draft| draft.execution.member.is_some());
        found.ok_or_else(|| broken(format!("no member {id}")))
    }

    pub(super) fn flow(&mut self, id: &DocumentId) -> Result<&mut DocumentDraft<Flow>, Halt> {
        if !self.flows.contains_key(id) {
            let document = self.facts.document(id)?;
            let document = document.ok_or_else(|| broken(format!("no flow {id}")))?;
            self.flows.insert(id.clone(), DocumentDraft::of(document, self.now)?);
        }
        self.flows.get_mut(id).ok_or_else(|| broken(format!("no flow {id}")))
    }

    /// Asks for a flow that is not at hand.
    pub(super) fn want_flow(&self, id: &DocumentId) -> Result<(), Needs> {
        if self.flows.contains_key(id) {
            return Ok(());
        }
        self.facts.document(id).map(drop)
    }

    /// The flow of a member.
    pub(super) fn flow_of(&mut self, id: ExecutionId) -> Result<&mut DocumentDraft<Flow>, Halt> {
        let flow = self.member(id)?.member()?.flow_id;
        self.flow(&DocumentId::flow_in(id.partition(), flow))
    }

    pub(super) fn flow_ids(&self) -> Vec<DocumentId> {
        self.flows.keys().cloned().collect()
    }

    /// Whether the member at an end of an edge is still there; `beside` is the other end.
    pub(super) fn stands(
        &self,
        flow: FlowId,
        beside: ExecutionId,
        end: End,
    ) -> Result<bool, Needs> {
        let id = end.id(beside);
        match self.drafts.get(&id) {
            Some(draft) => Ok(end.is(flow, &draft.execution)),
            None => Ok(self.facts.execution(id)?.is_some_and(|found| end.is(flow, &found))),
        }
    }

    /// Asks for many executions at once, those that are not at hand.
    pub(super) fn want(&self, ids: &[ExecutionId]) -> Result<(), Needs> {
        let lacking: Vec<_> =
            ids.iter().copied().filter(|id| !self.drafts.contains_key(id)).collect();
        self.facts.want_executions(&lacking)
    }

    /// Does something for each of many. Where facts are missing the others are tried all the same, so
    /// that one round loads what all of them lack; nothing of such a run is kept.
    pub(super) fn for_each<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut act: impl FnMut(&mut Self, T) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        let mut needs = Needs::default();
        for item in items {
            match act(self, item) {
                Ok(()) => {}
                Err(Halt::Needs(lacking)) => needs.merge(lacking),
                // What is decided over facts that are missing is not worth telling.
                Err(refused) if needs.is_empty() => return Err(refused),
                Err(_) => break,
            }
        }
        Ok(needs.into_result()?)
    }

    /// Removes an execution.
    pub(in super::super) fn remove(&mut self, id: ExecutionId) -> Result<(), Needs> {
        self.draft(id)?;
        if let Some(draft) = self.drafts.remove(&id) {
            self.order.retain(|kept| *kept != id);
            self.removed.push(draft.delete());
        }
        Ok(())
    }

    /// What this step has changed.
    pub(in super::super) fn finish(mut self) -> Changes {
        let mut changes = Changes { settled: true, passed: self.passed, ..Changes::default() };
        for id in self.order {
            let draft = self.drafts.remove(&id).filter(|draft| !draft.is_untouched());
            changes.executions.extend(draft.map(Draft::finish));
        }
        changes.executions.append(&mut self.removed);
        let flows = self.flows.into_values().filter(|draft| !draft.is_untouched());
        changes.documents.extend(flows.map(DocumentDraft::finish));
        changes
    }
}

impl Draft {
    pub(super) fn member(&self) -> Result<&Member, Halt> {
        self.execution.member.as_deref().ok_or_else(|| broken("it is in no flow"))
    }

    pub(super) fn member_mut(&mut self) -> Result<&mut Member, Halt> {
        self.execution.member.as_deref_mut().ok_or_else(|| broken("it is in no flow"))
    }
}

impl Beside for Draft {
    fn find_row<T: DeserializeOwned>(
        &self,
        facts: &impl Facts,
        key: &RowKey,
    ) -> Result<Option<T>, Halt> {
        Self::find_row(self, facts, key)
    }

    fn put_row(&mut self, change: RowChange) {
        self.row(change);
    }
}

impl Beside for DocumentDraft<Flow> {
    fn find_row<T: DeserializeOwned>(
        &self,
        facts: &impl Facts,
        key: &RowKey,
    ) -> Result<Option<T>, Halt> {
        Self::find_row(self, facts, key)
    }

    fn put_row(&mut self, change: RowChange) {
        self.row(change);
    }
}

pub(super) fn broken(detail: impl Into<Cow<'static, str>>) -> Halt {
    Refusal::new(Code::InvariantViolation, detail).into()
}

/// The members of a flow stand in its partition.
pub(super) fn beside(flow: &DocumentId, uuid: Uuid) -> ExecutionId {
    ExecutionId::new(flow.home.flow_partition().unwrap_or_default(), uuid)
}

/// Whether an execution can be a member of a flow at all: what stands elsewhere is not asked for.
pub(super) fn stands_in(flow: &DocumentId, id: ExecutionId) -> bool {
    flow.home.flow_partition() == Some(id.partition())
}

impl Flow {
    /// Whether edges must wait for work that was left before.
    pub(super) fn is_behind(&self) -> bool {
        self.work.barriers > 0
    }
}
