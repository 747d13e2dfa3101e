//! The part of random sequences that ties executions into flows.

use ff_core::content::Content;
use ff_core::id::{Authority, EdgeId, ExecutionId, FlowId, Kind, LeaseFence, MemberName};
use ff_core::operation::{
    AddToFlow, ApplyEdge, CancelFlow, CascadeCompletion, Command, CreateFlow, DeleteFlow,
    GraphEdge, GraphGroup, GraphMember, InFlow, NewEdge, Replay, ReplayFlow, Reply, ResolveEdge,
    SetFlowTags, SetGroupPolicy, StageEdge, Submit, SubmitFlow, WaitChildren,
};
use ff_core::partition::PartitionConfig;
use ff_core::state::{Attached, CancelPolicy, EdgeKind, Join, OnSatisfied, Outcome};
use uuid::Uuid;

use super::op::{FenceOf, Target};
use super::replay::{lane, namespace, policy, tags};

/// One act on flows; flows, members and edges are named by their place among those made so far,
/// counted from the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowOp {
    Submit(GraphOp),
    Create { uuid: u128 },
    Member { flow: usize, uuid: u128, name: Option<u8>, policy: u8 },
    Add { flow: usize, target: Target },
    Stage { flow: usize, uuid: u128, from: usize, to: usize, kind: u8, passes: bool, stale: bool },
    Apply { edge: usize },
    Join { flow: usize, target: Target, join: u8 },
    Resolve { edge: usize, outcome: u8 },
    Cancel { flow: usize, policy: u8 },
    ReplayFailed { flow: usize },
    ReplayMembers { flow: usize, members: Vec<usize> },
    ReplayMember { flow: usize, member: usize, descendants: bool },
    Tags { flow: usize, n: u8, expected_revision: Option<u64> },
    Cascade { flow: usize },
    Delete { flow: usize },
    Wait { fence: FenceOf, children: Option<Vec<usize>> },
}

/// A graph; bits choose edges from lower to higher members, so that most have no cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphOp {
    pub uuid: u128,
    pub members: u8,
    pub edges: u64,
    pub kinds: u64,
    pub joins: u64,
    pub passes: u8,
    pub policy: u8,
    pub retention_ms: Option<u64>,
    pub backwards: bool,
    pub limits: u8,
}

/// What sequences have made of flows so far.
#[derive(Debug, Default)]
pub(super) struct Flows {
    flows: Vec<FlowId>,
    members: Vec<(FlowId, ExecutionId)>,
    edges: Vec<(FlowId, EdgeId)>,
}

fn newest<T: Clone>(items: &[T], n: usize) -> Option<T> {
    let count = items.len();
    (count > 0).then(|| items[count - 1 - n % count].clone())
}

fn kind_of(n: u8) -> EdgeKind {
    EdgeKind::ALL[usize::from(n) % 3]
}

fn join_of(n: u8) -> Join {
    match n % 6 {
        0 | 1 => Join::AllOf,
        2 => Join::AnyOf(OnSatisfied::CancelRemaining),
        3 => Join::AnyOf(OnSatisfied::LetRun),
        4 => Join::Quorum(2, OnSatisfied::CancelRemaining),
        _ => Join::Quorum(u32::from(n) % 5, OnSatisfied::LetRun),
    }
}

fn name(n: u8) -> MemberName {
    MemberName::new(format!("m{n}")).expect("a name")
}

impl Flows {
    /// Takes note of what a reply made.
    pub(super) fn note(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (Command::SubmitFlow(_), Reply::SubmitFlow(made)) if !made.duplicate => {
                self.flows.push(made.flow_id);
                self.members.extend(made.members.iter().map(|(_, id)| (made.flow_id, *id)));
                self.edges.extend(made.edges.iter().map(|edge| (made.flow_id, *edge)));
            }
            (Command::CreateFlow(op), Reply::CreateFlow(_)) => self.flows.push(op.flow_id),
            (Command::Submit(op), Reply::Submit(made)) => {
                let within = op.within.as_ref();
                self.members.extend(within.map(|within| (within.flow_id, made.execution_id())));
            }
            (Command::AddToFlow(op), Reply::AddToFlow(_)) => {
                self.members.push((op.flow_id, op.execution_id));
            }
            (Command::StageEdge(op), Reply::StageEdge(made)) => {
                self.edges.push((op.flow_id, made.edge_id));
            }
            _ => {}
        }
    }

    /// Executions that a command makes.
    pub(super) fn made(command: &Command) -> Vec<ExecutionId> {
        match command {
            Command::SubmitFlow(op) => {
                op.members.iter().map(|member| member.submit.execution_id).collect()
            }
            _ => Vec::new(),
        }
    }

    fn flow(&self, n: usize) -> FlowId {
        newest(&self.flows, n).unwrap_or_else(|| FlowId::new(Uuid::from_u128(n as u128)))
    }

    fn edge(&self, n: usize) -> (FlowId, EdgeId) {
        let none = || (self.flow(n), EdgeId::new(Uuid::from_u128(n as u128)));
        newest(&self.edges, n).unwrap_or_else(none)
    }

    /// A member of a flow, or of another if it has none.
    fn member(&self, flow: FlowId, n: usize) -> Option<ExecutionId> {
        let here: Vec<_> = self.members.iter().filter(|(of, _)| *of == flow).collect();
        newest(&here, n)
            .or_else(|| newest(&self.members.iter().collect::<Vec<_>>(), n))
            .map(|m| m.1)
    }

    pub(super) fn command(
        &self,
        op: &FlowOp,
        partitions: &PartitionConfig,
        fence: impl Fn(FenceOf) -> Option<(ExecutionId, LeaseFence)>,
        id: impl Fn(Target) -> ExecutionId,
        attached: impl Fn(u8) -> Attached,
    ) -> Option<Command> {
        match op {
            FlowOp::Submit(graph) => {
                let mut submit = graph.submit(partitions);
                submit.flow.attached = attached(graph.limits);
                Some(submit.into())
            }
            FlowOp::Wait { fence: of, children } => self.wait(fence(*of)?, children.as_ref()),
            FlowOp::Add { flow, target } => {
                let (flow_id, execution_id) = (self.flow(*flow), id(*target));
                Some(AddToFlow { flow_id, execution_id, name: None }.into())
            }
            FlowOp::Join { flow, target, join } => {
                let downstream = id(*target);
                let of = self.members.iter().rev().find(|(_, id)| *id == downstream);
                let flow_id = of.map_or_else(|| self.flow(*flow), |(flow, _)| *flow);
                Some(SetGroupPolicy { flow_id, downstream, join: join_of(*join) }.into())
            }
            op => self.building(op, partitions).or_else(|| self.operating(op)),
        }
    }

    fn wait(
        &self,
        shown: (ExecutionId, LeaseFence),
        children: Option<&Vec<usize>>,
    ) -> Option<Command> {
        let (execution_id, fence) = shown;
        let flow = self.members.iter().rev().find(|(_, id)| *id == execution_id);
        let flow = flow.map_or_else(|| self.flow(0), |(flow, _)| *flow);
        let ids =
            |ns: &Vec<usize>| ns.iter().filter_map(|n| self.member(flow, *n)).collect::<Vec<_>>();
        let authority = Authority::Fence(fence);
        Some(WaitChildren { execution_id, authority, children: children.map(ids) }.into())
    }

    fn building(&self, op: &FlowOp, partitions: &PartitionConfig) -> Option<Command> {
        Some(match op {
            FlowOp::Create { uuid } => create(FlowId::new(Uuid::from_u128(*uuid)), None).into(),
            FlowOp::Member { flow, uuid, name: number, policy } => {
                let flow_id = self.flow(*flow);
                let submit = member(flow_id, *uuid, *policy, partitions);
                let within = Some(InFlow { flow_id, name: number.map(name) });
                Submit { within, ..submit }.into()
            }
            FlowOp::Stage { flow, uuid, from, to, kind, passes, stale } => {
                let flow_id = self.flow(*flow);
                let edge = NewEdge {
                    upstream: self.member(flow_id, *from)?,
                    downstream: self.member(flow_id, *to)?,
                    kind: kind_of(*kind),
                    name: None,
                    data_passing_ref: passes.then(|| "payload".to_owned()),
                };
                let edge_id = EdgeId::new(Uuid::from_u128(*uuid));
                let expected_graph_revision = stale.then_some(1);
                let apply = uuid % 2 == 0;
                StageEdge { flow_id, edge_id, edge, expected_graph_revision, apply }.into()
            }
            FlowOp::Apply { edge } => {
                let (flow_id, edge_id) = self.edge(*edge);
                ApplyEdge { flow_id, edge_id }.into()
            }
            FlowOp::Resolve { edge, outcome } => {
                let (flow_id, edge_id) = self.edge(*edge);
                let outcomes = [Outcome::Success, Outcome::Failed, Outcome::Skipped];
                let outcome = outcomes[usize::from(*outcome) % 3];
                ResolveEdge { flow_id, edge_id, outcome }.into()
            }
            _ => return None,
        })
    }

    fn operating(&self, op: &FlowOp) -> Option<Command> {
        Some(match op {
            FlowOp::Cancel { flow, policy } => CancelFlow {
                flow_id: self.flow(*flow),
                policy: CancelPolicy::ALL[usize::from(*policy) % 3],
                reason: "no longer wanted".to_owned(),
            }
            .into(),
            FlowOp::ReplayFailed { flow } => {
                ReplayFlow { flow_id: self.flow(*flow), members: None }.into()
            }
            FlowOp::ReplayMembers { flow, members } => {
                let flow_id = self.flow(*flow);
                let members = members.iter().filter_map(|n| self.member(flow_id, *n)).collect();
                ReplayFlow { flow_id, members: Some(members) }.into()
            }
            FlowOp::ReplayMember { flow, member, descendants } => {
                let execution_id = self.member(self.flow(*flow), *member)?;
                Replay { execution_id, descendants: *descendants }.into()
            }
            FlowOp::Tags { flow, n, expected_revision } => SetFlowTags {
                flow_id: self.flow(*flow),
                tags: tags(*n),
                expected_revision: *expected_revision,
            }
            .into(),
            FlowOp::Cascade { flow } => CascadeCompletion { flow_id: self.flow(*flow) }.into(),
            FlowOp::Delete { flow } => DeleteFlow { flow_id: self.flow(*flow) }.into(),
            _ => return None,
        })
    }
}

fn create(flow_id: FlowId, retention_ms: Option<u64>) -> CreateFlow {
    let kind = Kind::new("graph").expect("a kind");
    CreateFlow {
        namespace: namespace(0),
        tags: tags(1),
        retention_ms,
        ..CreateFlow::new(flow_id, kind)
    }
}

fn member(flow: FlowId, uuid: u128, n: u8, partitions: &PartitionConfig) -> Submit {
    let id = ExecutionId::for_flow(Uuid::from_u128(uuid), flow, partitions);
    let kind = Kind::new("member").expect("a kind");
    Submit { policy: policy(n).into(), ..Submit::new(id, lane(0), kind) }
}

impl GraphOp {
    fn submit(&self, partitions: &PartitionConfig) -> SubmitFlow {
        let flow_id = FlowId::new(Uuid::from_u128(self.uuid));
        let members = (0..self.members).map(|n| {
            let uuid = self.uuid.wrapping_add(1 + u128::from(n));
            let submit = member(flow_id, uuid, self.policy, partitions);
            let payload = Content::new(vec![n; 3]);
            GraphMember { name: name(n), submit: Submit { payload, ..submit } }
        });
        let members: Vec<_> = members.collect();
        let mut edges = Vec::new();
        let pairs = (0..self.members).flat_map(|to| (0..to).map(move |from| (from, to)));
        for (bit, (from, to)) in pairs.enumerate() {
            if self.edges >> (bit % 64) & 1 == 0 {
                continue;
            }
            let (from, to) = if self.backwards && bit == 0 { (to, from) } else { (from, to) };
            let kind = u8::try_from(self.kinds >> (bit % 32) & 3).unwrap_or(0);
            // Most edges ask for success.
            let kind = if kind == 3 { EdgeKind::SuccessOnly } else { kind_of(kind) };
            let passes = bit % 8 == usize::from(self.passes);
            let data_passing_ref = passes.then(|| "payload".to_owned());
            edges.push(GraphEdge {
                from: name(from),
                to: name(to),
                kind,
                name: None,
                data_passing_ref,
            });
        }
        let joins = (0..self.members).filter(|n| *n < 32 && self.joins >> n & 1 == 1);
        let groups = joins.map(|n| GraphGroup {
            member: name(n),
            join: join_of(u8::try_from(self.joins >> (32 + n % 29) & 7).unwrap_or(0)),
        });
        SubmitFlow {
            flow: create(flow_id, self.retention_ms),
            groups: groups.collect(),
            members,
            edges,
            edge_seed: Uuid::from_u128(self.uuid.wrapping_add(1 << 64)),
        }
    }
}
