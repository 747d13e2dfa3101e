//! What a task is told of the members it waited for.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::super::draft::Halt;
use super::super::{Facts, Needs};
use super::pages::{CHILDREN, IN, InEdge};
use crate::id::{DocumentId, ExecutionId};
use crate::limits;
use crate::operation::Input;
use crate::state::{EdgeState, Execution, Member};

/// Outcomes and results by the names of edges: of every satisfied edge, and of the children that the
/// attempt waited for. Results come along as long as they have at most `most` bytes.
pub(in super::super) fn inputs(
    facts: &impl Facts,
    execution: &Execution,
    most: usize,
) -> Result<BTreeMap<String, Input>, Halt> {
    let Some(member) = &execution.member else { return Ok(BTreeMap::new()) };
    let edges = satisfied(facts, execution, member)?;
    let children = children(facts, execution, member)?;
    let found: Vec<_> = edges.into_iter().chain(children).collect();
    let mut left = most.min(limits::INPUT_BYTES);
    let mut fits = |upstream: &Execution| match result_bytes(upstream) {
        None => false,
        Some(bytes) => {
            let fits = bytes <= left;
            left = if fits { left - bytes } else { 0 };
            fits
        }
    };
    let inline: Vec<bool> = found.iter().map(|(_, upstream)| fits(upstream)).collect();
    let mut needs = Needs::default();
    for ((_, upstream), inline) in found.iter().zip(&inline) {
        if *inline {
            needs.note(facts.result(upstream.id));
        }
    }
    needs.into_result()?;
    let mut inputs = BTreeMap::new();
    for ((name, upstream), inline) in found.into_iter().zip(inline) {
        let Some(terminal) = upstream.phase.terminal() else { continue };
        let result = if inline { facts.result(upstream.id)? } else { None };
        let input = Input {
            execution_id: upstream.id,
            outcome: terminal.outcome,
            inline: inline || result_bytes(&upstream).is_none(),
            result,
        };
        // Names that users chose may be the same; ids never are.
        let id = upstream.id.to_string();
        let name = if inputs.contains_key(&name) { id } else { name };
        inputs.insert(name, input);
    }
    Ok(inputs)
}

/// Asks at once for all that the record of a member says its start touches.
pub(in super::super) fn want_start(facts: &impl Facts, execution: &Execution) -> Result<(), Needs> {
    let Some(member) = &execution.member else { return Ok(()) };
    let mut needs = Needs::default();
    needs.note(facts.document(&DocumentId::flow_in(execution.id.partition(), member.flow_id)));
    needs.note(IN.want(facts, &execution.id.into(), (0, member.ins)).map(Some));
    needs.into_result()
}

/// Upstreams of satisfied edges, by the names of the edges.
fn satisfied(
    facts: &impl Facts,
    execution: &Execution,
    member: &Member,
) -> Result<Vec<(String, Arc<Execution>)>, Halt> {
    let id = execution.id;
    let edges: Vec<InEdge> = IN.stored_items(facts, &id.into(), (0, member.ins))?;
    let upstream = |edge: &InEdge| ExecutionId::new(id.partition(), edge.from);
    let ids: Vec<_> = edges.iter().map(upstream).collect();
    facts.want_executions(&ids)?;
    let mut found = Vec::new();
    for edge in edges {
        let Some(upstream) = facts.execution(upstream(&edge))? else { continue };
        if edge.state(&upstream) == EdgeState::Satisfied {
            found.push((edge.name.unwrap_or_else(|| name_of(&upstream)), upstream));
        }
    }
    Ok(found)
}

/// The children that the current attempt waited for.
fn children(
    facts: &impl Facts,
    execution: &Execution,
    member: &Member,
) -> Result<Vec<(String, Arc<Execution>)>, Halt> {
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
        found.extend(child.map(|child| (name_of(&child), child)));
    }
    Ok(found)
}

pub(super) fn name_of(execution: &Execution) -> String {
    let name = execution.member.as_ref().and_then(|member| member.name.as_ref());
    name.map_or_else(|| execution.id.to_string(), ToString::to_string)
}

/// The size of the result that an execution ended with.
fn result_bytes(execution: &Execution) -> Option<usize> {
    let attempt = execution.attempt.as_ref()?;
    attempt.result_bytes.map(|bytes| bytes as usize)
}
