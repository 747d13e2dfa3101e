//! Short words for flows: graphs by the names of their members, all on lane `work`.

use std::collections::HashMap;

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::event::EventKind;
use ff_core::id::{Authority, EdgeId, ExecutionId, FlowId, Kind, MemberName};
use ff_core::operation::{
    CancelFlow, CreateFlow, GraphEdge, GraphGroup, GraphMember, NewEdge, StageEdge, Submit,
    SubmitFlow, SubmittedFlow, Task, WaitChildren,
};
use ff_core::read::{DescribeFlow, FlowSnapshot};
use ff_core::state::{CancelPolicy, DueKind, EdgeKind, FlowState, Join, OnSatisfied, PublicState};
use uuid::Uuid;

use crate::world::{World, complete, fail, policy};

/// Events that only flows bring.
pub const FLOW_EVENTS: [EventKind; 9] = [
    EventKind::Skipped,
    EventKind::Released,
    EventKind::FlowCreated,
    EventKind::FlowChanged,
    EventKind::FlowCompleted,
    EventKind::FlowFailed,
    EventKind::FlowCancelled,
    EventKind::FlowReopened,
    EventKind::EdgeResolved,
];

/// What time does to flows.
pub const FLOW_WORK: [DueKind; 5] = [
    DueKind::FlowBuilder,
    DueKind::DependencyReconciler,
    DueKind::EdgeCancelDispatcher,
    DueKind::CancelReconciler,
    DueKind::FlowProjector,
];

/// Fails for good at the first failure.
pub const NO_RETRY: &str = r#"{"retry_policy":{"max_retries":0}}"#;

pub fn name(text: &str) -> MemberName {
    MemberName::new(text).expect("a name")
}

pub fn create_flow() -> CreateFlow {
    CreateFlow::new(FlowId::mint(), Kind::new("graph").expect("a kind"))
}

/// A graph in the making.
pub struct Drawing {
    pub submit: SubmitFlow,
}

/// A submitted flow, its members by name.
pub struct Drawn {
    pub flow_id: FlowId,
    pub reply: SubmittedFlow,
    members: HashMap<String, ExecutionId>,
}

impl World {
    /// A graph with these members and success-only edges, as `["a", "b"]` and `["a>b"]`.
    pub fn draw(&self, members: &[&str], edges: &[&str]) -> Drawing {
        let flow = create_flow();
        let members = members
            .iter()
            .map(|member| GraphMember { name: name(member), submit: self.member_of(flow.flow_id) });
        let edges = edges.iter().map(|edge| edge_of(edge));
        let submit = SubmitFlow {
            members: members.collect(),
            edges: edges.collect(),
            groups: Vec::new(),
            edge_seed: Uuid::now_v7(),
            flow,
        };
        Drawing { submit }
    }

    /// Members `m0`, `m1` … each with an edge from `x`.
    pub fn draw_out(&self, count: usize) -> Drawing {
        self.draw_star(count, |name| format!("x>{name}"))
    }

    /// Members `m0`, `m1` … each with an edge to `x`.
    pub fn draw_in(&self, count: usize) -> Drawing {
        self.draw_star(count, |name| format!("{name}>x"))
    }

    fn draw_star(&self, count: usize, edge: impl Fn(&String) -> String) -> Drawing {
        let mut names: Vec<String> = (0..count).map(|n| format!("m{n}")).collect();
        let edges: Vec<String> = names.iter().map(edge).collect();
        names.push("x".to_owned());
        self.draw(&texts(&names), &texts(&edges))
    }

    /// A submit that stands beside a flow.
    pub fn member_of(&self, flow: FlowId) -> Submit {
        let partitions = &self.backend.settings().partitions;
        let execution_id = ExecutionId::for_flow(Uuid::now_v7(), flow, partitions);
        Submit { execution_id, policy: policy(NO_RETRY), ..self.work() }
    }

    /// Submits a graph; what is left of a large one is carried on.
    pub async fn submit_flow(&self, drawing: Drawing) -> Drawn {
        let reply = self.act(drawing.submit).await;
        self.settle().await;
        Drawn::of(reply)
    }

    pub async fn flow(&self, id: FlowId) -> FlowSnapshot {
        *self.find_flow(id).await.expect("a flow")
    }

    pub async fn find_flow(&self, id: FlowId) -> Option<Box<FlowSnapshot>> {
        self.backend.ask(DescribeFlow { flow_id: id }).await.expect("an answer")
    }

    pub async fn flow_state(&self, id: FlowId) -> FlowState {
        self.flow(id).await.state
    }

    /// Kinds of all events about a flow itself.
    pub async fn flow_history(&self, id: FlowId) -> Vec<EventKind> {
        let log = self.log().await;
        let of_flow = log.iter().filter(|e| e.event.subject.to_string() == id.to_string());
        of_flow.map(|envelope| envelope.event.kind).collect()
    }

    /// Public states of members, in the order of their names here.
    pub async fn states(&self, drawn: &Drawn, names: &[&str]) -> Vec<PublicState> {
        let mut states = Vec::new();
        for name in names {
            states.push(self.public_state(drawn.id(name)).await);
        }
        states
    }

    /// Claims the member with this name, which must be claimable; others are left alone.
    pub async fn take(&self, drawn: &Drawn, name: &str) -> Task {
        self.act(crate::grants::grant_and_claim(drawn.id(name))).await.as_ref().clone()
    }

    /// Runs a member to its success.
    pub async fn run(&self, drawn: &Drawn, name: &str) {
        let task = self.take(drawn, name).await;
        let result = Some(Content::new(format!("result of {name}")));
        self.act(ff_core::operation::Complete { result, ..complete(&task) }).await;
        self.settle().await;
    }

    /// Runs a member to its failure.
    pub async fn break_down(&self, drawn: &Drawn, name: &str) {
        let task = self.take(drawn, name).await;
        self.act(fail(&task, "permanent")).await;
        self.settle().await;
    }

    /// Names of the members that a worker gets now.
    pub async fn claimable(&self, drawn: &Drawn) -> Vec<String> {
        let mut names = Vec::new();
        for (name, id) in &drawn.members {
            if self.public_state(*id).await == PublicState::Waiting {
                names.push(name.clone());
            }
        }
        names.sort_unstable();
        names
    }
}

impl Drawing {
    /// One more member; its id is beside those of the others.
    pub fn member(mut self, member: &str) -> Self {
        let first = &self.submit.members[0].submit;
        let execution_id = ExecutionId::new(first.execution_id.partition(), Uuid::now_v7());
        let submit = Submit { execution_id, ..first.clone() };
        self.submit.members.push(GraphMember { name: name(member), submit });
        self
    }

    pub fn more_edges(mut self, edges: &[&str]) -> Self {
        self.submit.edges.extend(edges.iter().map(|edge| edge_of(edge)));
        self
    }

    /// Another kind for the edges given so far, by `["a>b"]`.
    pub fn kind(mut self, edge: &str, kind: EdgeKind) -> Self {
        let wanted = edge_of(edge);
        for edge in &mut self.submit.edges {
            if (&edge.from, &edge.to) == (&wanted.from, &wanted.to) {
                edge.kind = kind;
            }
        }
        self
    }

    pub fn join(mut self, member: &str, join: Join) -> Self {
        self.submit.groups.push(GraphGroup { member: name(member), join });
        self
    }

    /// Changes the submit of one member.
    pub fn with(mut self, member: &str, change: impl FnOnce(&mut Submit)) -> Self {
        let found = self.submit.members.iter_mut().find(|m| m.name.as_str() == member);
        change(&mut found.expect("a member").submit);
        self
    }

    /// Changes one edge.
    pub fn edge(mut self, edge: &str, change: impl FnOnce(&mut GraphEdge)) -> Self {
        let wanted = edge_of(edge);
        let mut edges = self.submit.edges.iter_mut();
        let found = edges.find(|e| (&e.from, &e.to) == (&wanted.from, &wanted.to));
        change(found.expect("an edge"));
        self
    }
}

impl Drawn {
    pub fn of(reply: SubmittedFlow) -> Self {
        let members = reply.members.iter().map(|(name, id)| (name.to_string(), *id)).collect();
        Self { flow_id: reply.flow_id, members, reply }
    }

    pub fn id(&self, name: &str) -> ExecutionId {
        *self.members.get(name).unwrap_or_else(|| panic!("no member {name}"))
    }

    pub fn cancel(&self, policy: CancelPolicy) -> CancelFlow {
        CancelFlow { flow_id: self.flow_id, policy, reason: "not wanted".to_owned() }
    }
}

fn texts(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

/// `a>b`.
pub fn edge_of(text: &str) -> GraphEdge {
    let (from, to) = text.split_once('>').expect("an edge as a>b");
    let kind = EdgeKind::SuccessOnly;
    GraphEdge { from: name(from), to: name(to), kind, name: None, data_passing_ref: None }
}

/// An edge of a flow by the names of its members.
pub fn stage(drawn: &Drawn, edge: &str) -> StageEdge {
    let (from, to) = edge.split_once('>').expect("an edge as a>b");
    stage_between(drawn.flow_id, drawn.id(from), drawn.id(to))
}

pub fn stage_between(flow_id: FlowId, upstream: ExecutionId, downstream: ExecutionId) -> StageEdge {
    let kind = EdgeKind::SuccessOnly;
    let edge = NewEdge { upstream, downstream, kind, name: None, data_passing_ref: None };
    let edge_id = EdgeId::mint();
    StageEdge { flow_id, edge_id, edge, expected_graph_revision: None, apply: false }
}

pub fn wait_children(task: &Task, children: Option<Vec<ExecutionId>>) -> WaitChildren {
    let authority = Authority::Fence(task.fence());
    WaitChildren { execution_id: task.execution_id, authority, children }
}

pub fn let_run(k: u32) -> Join {
    Join::Quorum(k, OnSatisfied::LetRun)
}

pub fn any_of() -> Join {
    Join::AnyOf(OnSatisfied::CancelRemaining)
}

pub fn quorum(k: u32) -> Join {
    Join::Quorum(k, OnSatisfied::CancelRemaining)
}
