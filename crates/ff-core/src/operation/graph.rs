//! A whole graph in one operation.

use std::collections::{BTreeMap, HashMap, HashSet};

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::command::Shape;
use super::edge::{check_join, check_texts};
use super::{CreateFlow, NewEdge, Submit};
use crate::error::{Code, Refusal};
use crate::id::{DocumentId, EdgeId, ExecutionId, FlowId, MemberName};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::state::{EdgeKind, Join};

/// Makes a flow with members, edges and groups: all of it or nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmitFlow {
    /// With an idempotency key the flow's id is [`FlowId::for_key`].
    pub flow: CreateFlow,
    pub members: Vec<GraphMember>,
    pub edges: Vec<GraphEdge>,
    pub groups: Vec<GraphGroup>,
    /// Ids of the edges count up from here.
    pub edge_seed: Uuid,
}

#[derive(Debug, Clone, PartialEq)]
pub struct GraphMember {
    pub name: MemberName,
    /// Stands in the flow's partition ([`ExecutionId::for_flow`]).
    pub submit: Submit,
}

/// An edge between members by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphEdge {
    pub from: MemberName,
    pub to: MemberName,
    pub kind: EdgeKind,
    pub name: Option<String>,
    pub data_passing_ref: Option<String>,
}

/// The join rule of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphGroup {
    pub member: MemberName,
    pub join: Join,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmittedFlow {
    pub flow_id: FlowId,
    /// In the order of the submit.
    pub members: Vec<(MemberName, ExecutionId)>,
    pub edges: Vec<EdgeId>,
    pub graph_revision: u64,
    /// The same graph was submitted before.
    pub duplicate: bool,
}

/// A graph that was found sound, by numbers of members.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) links: Vec<(u32, u32)>,
    pub(crate) joins: BTreeMap<u32, Join>,
}

impl SubmitFlow {
    /// What a repeated submit must have in common with the first.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        part(self.flow.namespace.as_bytes());
        part(self.flow.kind.as_bytes());
        part(format!("{:?}", self.flow.attached).as_bytes());
        for member in &self.members {
            part(member.name.as_bytes());
            part(&member.submit.fingerprint());
        }
        for edge in &self.edges {
            part(format!("{edge:?}").as_bytes());
        }
        for group in &self.groups {
            part(format!("{group:?}").as_bytes());
        }
        hash.finalize().into()
    }

    /// Checks a member by itself.
    fn check_member(&self, member: &GraphMember) -> Result<(), Refusal> {
        member.submit.check_shape()?;
        if member.submit.namespace != self.flow.namespace || member.submit.within.is_some() {
            let detail = format!("{:?} is not of the flow's namespace", member.name);
            return Err(Refusal::invalid("namespace", detail));
        }
        if member.submit.idempotency_key.is_some() {
            let detail = "members of a submitted graph have no idempotency key of their own";
            return Err(Refusal::invalid("idempotency_key", detail));
        }
        Ok(())
    }

    /// Checks the whole graph.
    pub(crate) fn graph(&self) -> Result<Graph, Refusal> {
        let mut numbers = HashMap::with_capacity(self.members.len());
        for (number, member) in (0u32..).zip(&self.members) {
            if numbers.insert(&member.name, number).is_some() {
                let detail = format!("two members are named {:?}", member.name);
                return Err(Refusal::invalid("name", detail).under(number).under("members"));
            }
        }
        let number = |name: &MemberName| {
            numbers.get(name).copied().ok_or_else(|| {
                let detail = format!("no member is named {name:?}");
                Refusal::at(Code::ExecutionNotInFlow, "edges", detail)
            })
        };
        let mut links = Vec::with_capacity(self.edges.len());
        let (mut known, mut paid) = (HashSet::new(), HashSet::new());
        for edge in &self.edges {
            let link = (number(&edge.from)?, number(&edge.to)?);
            if link.0 == link.1 {
                let detail = format!("an edge leads from {:?} to itself", edge.from);
                return Err(Refusal::new(Code::SelfReferencingEdge, detail));
            }
            if !known.insert(link) {
                let detail = format!("two edges from {:?} to {:?}", edge.from, edge.to);
                return Err(Refusal::new(Code::DependencyAlreadyExists, detail));
            }
            let passes = edge.data_passing_ref.as_ref().is_some_and(|text| !text.is_empty());
            if passes && !paid.insert(link.1) {
                let detail = format!("two edges pass a payload to {:?}", edge.to);
                return Err(Refusal::new(Code::InvalidDependency, detail));
            }
            links.push(link);
        }
        let mut joins = BTreeMap::new();
        for (at, group) in self.groups.iter().enumerate() {
            let under = |refusal: Refusal| refusal.under(at).under("groups");
            check_join(&group.join).map_err(under)?;
            if joins.insert(number(&group.member)?, group.join).is_some() {
                let detail = format!("two groups for {:?}", group.member);
                return Err(under(Refusal::invalid("member", detail)));
            }
        }
        check_acyclic(self.members.len(), &links)?;
        Ok(Graph { links, joins })
    }
}

/// Takes members away that nothing leads to, until none is left.
fn check_acyclic(members: usize, links: &[(u32, u32)]) -> Result<(), Refusal> {
    let mut leading_to = vec![0u32; members];
    let mut next: Vec<Vec<u32>> = vec![Vec::new(); members];
    for &(from, to) in links {
        leading_to[to as usize] += 1;
        next[from as usize].push(to);
    }
    let mut free: Vec<usize> = (0..members).filter(|n| leading_to[*n] == 0).collect();
    let mut taken = 0;
    while let Some(number) = free.pop() {
        taken += 1;
        for &to in &next[number] {
            leading_to[to as usize] -= 1;
            if leading_to[to as usize] == 0 {
                free.push(to as usize);
            }
        }
    }
    if taken == members {
        Ok(())
    } else {
        let detail = format!("{} members depend on each other in a circle", members - taken);
        Err(Refusal::new(Code::CycleDetected, detail))
    }
}

impl GraphEdge {
    pub(crate) fn between(&self, upstream: ExecutionId, downstream: ExecutionId) -> NewEdge {
        NewEdge {
            upstream,
            downstream,
            kind: self.kind,
            name: self.name.clone(),
            data_passing_ref: self.data_passing_ref.clone(),
        }
    }
}

impl Shape for SubmitFlow {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.flow.check()?;
        let counts = [
            ("members", self.members.len(), 1, limits::FLOW_SUBMIT_MEMBERS),
            ("edges", self.edges.len(), 0, limits::FLOW_SUBMIT_EDGES),
            ("groups", self.groups.len(), 0, limits::FLOW_SUBMIT_MEMBERS),
        ];
        for (field, count, low, high) in counts {
            crate::check::check_range(field, count as u64, low, high as u64)?;
        }
        let (mut bytes, mut ids) = (0, HashSet::new());
        for (number, member) in self.members.iter().enumerate() {
            let under = |refusal: Refusal| refusal.under(number).under("members");
            self.check_member(member).map_err(under)?;
            if !ids.insert(member.submit.execution_id) {
                let detail = format!("{:?} has the execution id of another member", member.name);
                return Err(under(Refusal::invalid("execution_id", detail)));
            }
            bytes += member.submit.payload.bytes.len();
        }
        if bytes > limits::FLOW_SUBMIT_BYTES {
            let detail =
                format!("payloads have {bytes} bytes, at most {}", limits::FLOW_SUBMIT_BYTES);
            return Err(Refusal::at(Code::PayloadTooLarge, "members", detail));
        }
        for (number, edge) in self.edges.iter().enumerate() {
            check_texts(edge.name.as_ref(), edge.data_passing_ref.as_ref())
                .map_err(|refusal| refusal.under(number).under("edges"))?;
        }
        self.graph().map(|_| ())
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::flow(self.flow.flow_id, partitions))
    }
}
