//! What a task is told of the members it waited for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use super::super::draft::Halt;
use super::super::{Facts, Needs};
use super::pages::{CHILDREN, IN, InEdge};
use crate::id::{DocumentId, ExecutionId};
use crate::limits;
use crate::operation::Input;
use crate::state::{AttemptState, EdgeState, Execution, Member, Outcome};

/// Outcomes and results by the names of edges: of every satisfied edge, and of the children that the
/// attempt waited for. Results come along as long as they have at most `most` bytes.
pub(in super::super) fn inputs(
    facts: &impl Facts,
    execution: &Execution,
    most: usize,
) -> Result<BTreeMap<String, Input>, Halt> {
    let Some(member) = &execution.member else { return Ok(BTreeMap::new()) };
    let (mut found, mut names) = satisfied(facts, execution, member)?;
    for child in children(facts, execution, member)? {
        // An upstream that was waited for as well is told once, as the wait has found it, and under the
        // name of its edge whatever became of that.
        match found.iter_mut().find(|known| known.upstream.id == child.upstream.id) {
            Some(known) => known.outcome = child.outcome,
            None => {
                let name = names.remove(&child.upstream.id).unwrap_or(child.name);
                found.push(Told { name, ..child });
            }
        }
    }
    let mut left = most.min(limits::INPUT_BYTES);
    let mut fits = |told: &Told| match told.result_bytes() {
        None => false,
        Some(bytes) => {
            let fits = bytes <= left;
            left = if fits { left - bytes } else { 0 };
            fits
        }
    };
    let inline: Vec<bool> = found.iter().map(&mut fits).collect();
    let mut needs = Needs::default();
    for (told, _) in found.iter().zip(&inline).filter(|(_, inline)| **inline) {
        needs.note(facts.result(told.upstream.id));
    }
    needs.into_result()?;
    let mut inputs = BTreeMap::new();
    for (told, carried) in found.into_iter().zip(inline) {
        let inline = carried || told.has_nothing();
        let Told { name, upstream, outcome } = told;
        let execution_id = upstream.id;
        let result = if carried { facts.result(execution_id)? } else { None };
        let input = Input { execution_id, outcome, inline, result };
        // Names that users chose may be the same; ids never are.
        let name = if inputs.contains_key(&name) { execution_id.to_string() } else { name };
        inputs.insert(name, input);
    }
    Ok(inputs)
}

/// What a task is told of one member.
struct Told {
    name: String,
    upstream: Arc<Execution>,
    outcome: Outcome,
}

impl Told {
    /// Whether its newest attempt is the one that succeeded.
    fn is_newest(&self) -> bool {
        let attempt = self.upstream.attempt.as_ref();
        attempt.is_some_and(|attempt| attempt.state == AttemptState::EndedSuccess)
    }

    /// The size of the result that its newest attempt ended with, should that be the one to tell.
    fn result_bytes(&self) -> Option<usize> {
        let attempt = self.upstream.attempt.as_ref()?;
        let told = self.outcome == Outcome::Success && self.is_newest();
        attempt.result_bytes.filter(|_| told).map(|bytes| bytes as usize)
    }

    /// Whether there is no result to be fetched either. One that was replayed keeps that of the
    /// generation before, whatever its newest attempt has.
    fn has_nothing(&self) -> bool {
        let is_replayed = self.outcome == Outcome::Success && !self.is_newest();
        self.result_bytes().is_none() && !is_replayed
    }
}

/// Asks at once for all that the record of a member says its start touches.
pub(in super::super) fn want_start(facts: &impl Facts, execution: &Execution) -> Result<(), Needs> {
    let Some(member) = &execution.member else { return Ok(()) };
    let mut needs = Needs::default();
    needs.note(facts.document(&DocumentId::flow_in(execution.id.partition(), member.flow_id)));
    needs.note(IN.want(facts, &execution.id.into(), (0, member.ins)).map(Some));
    needs.into_result()
}

/// Upstreams of satisfied edges, by the names of the edges; and the names of edges from others.
fn satisfied(
    facts: &impl Facts,
    execution: &Execution,
    member: &Member,
) -> Result<(Vec<Told>, HashMap<ExecutionId, String>), Halt> {
    let id = execution.id;
    let edges: Vec<InEdge> = IN.stored_items(facts, &id.into(), (0, member.ins))?;
    let ids: Vec<_> = edges.iter().map(|edge| edge.from.id(id)).collect();
    facts.want_executions(&ids)?;
    let (mut found, mut names) = (Vec::new(), HashMap::new());
    for edge in edges {
        let upstream = facts.execution(edge.from.id(id))?;
        let upstream = upstream.filter(|upstream| edge.from.is(member.flow_id, upstream));
        let Some(upstream) = upstream else { continue };
        let outcome = upstream.phase.terminal().map(|terminal| terminal.outcome);
        let outcome = edge.fixed.or(outcome);
        if let (EdgeState::Satisfied, Some(outcome)) = (edge.state(&upstream), outcome) {
            let name = edge.name.unwrap_or_else(|| name_of(&upstream));
            found.push(Told { name, upstream, outcome });
        } else if let Some(name) = edge.name {
            names.insert(upstream.id, name);
        }
    }
    Ok((found, names))
}

/// The children that the current attempt waited for.
fn children(facts: &impl Facts, execution: &Execution, member: &Member) -> Result<Vec<Told>, Halt> {
    let attempt = execution.attempt.as_ref().map(|attempt| attempt.index);
    if member.children == 0 || attempt != Some(member.waiting_attempt) {
        return Ok(Vec::new());
    }
    let id = execution.id;
    let uuids: Vec<Uuid> = CHILDREN.stored_items(facts, &id.into(), (0, member.children))?;
    let ids: Vec<_> =
        uuids.into_iter().map(|uuid| ExecutionId::new(id.partition(), uuid)).collect();
    facts.want_executions(&ids)?;
    let mut found = Vec::new();
    for id in ids {
        let child = facts.execution(id)?;
        let is_of = |it: &Execution| it.member.as_ref().map(|m| m.flow_id) == Some(member.flow_id);
        let Some(upstream) = child.filter(|child| is_of(child)) else { continue };
        let outcome = upstream.phase.terminal().map(|terminal| terminal.outcome);
        found.extend(outcome.map(|outcome| Told { name: name_of(&upstream), upstream, outcome }));
    }
    Ok(found)
}

pub(super) fn name_of(execution: &Execution) -> String {
    let name = execution.member.as_ref().and_then(|member| member.name.as_ref());
    name.map_or_else(|| execution.id.to_string(), ToString::to_string)
}
