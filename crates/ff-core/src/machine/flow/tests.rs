//! How large a flow may grow.

use uuid::Uuid;

use super::super::trial::Trial;
use crate::error::Code;
use crate::id::{DocumentId, EdgeId, ExecutionId, FlowId, Kind, LaneId};
use crate::limits;
use crate::operation::{Command, CreateFlow, InFlow, NewEdge, StageEdge, Submit};
use crate::partition::PartitionConfig;
use crate::state::{Body, EdgeKind, Flow};

fn kind() -> Kind {
    Kind::new("test").unwrap()
}

/// A flow that says of itself what it could not be grown to in a test.
fn grown(change: impl FnOnce(&mut Flow)) -> (Trial, FlowId) {
    let id = FlowId::mint();
    let mut trial = Trial::new(|partitions| DocumentId::flow(id, partitions));
    trial.call(CreateFlow::new(id, kind()));
    trial.spoil(|document| {
        let Body::Flow(flow) = &mut document.body else { panic!("a flow") };
        change(flow);
    });
    (trial, id)
}

fn member(flow_id: FlowId) -> ExecutionId {
    ExecutionId::for_flow(Uuid::now_v7(), flow_id, &PartitionConfig::default())
}

#[test]
fn a_flow_takes_no_more_members_than_it_may_have() {
    let (mut trial, flow_id) = grown(|flow| flow.members = limits::FLOW_MEMBERS);
    let submit = Submit::new(member(flow_id), LaneId::new("work").unwrap(), kind());
    let within = Some(InFlow { flow_id, name: None });
    let refusal = trial.refusal(&Command::from(Submit { within, ..submit }));
    assert_eq!((refusal.code, refusal.field.as_deref()), (Code::InvalidInput, Some("members")));
}

#[test]
fn a_flow_takes_no_more_edges_than_it_may_have() {
    let (mut trial, flow_id) = grown(|flow| flow.edges = limits::FLOW_EDGES);
    let (upstream, downstream) = (member(flow_id), member(flow_id));
    let kind = EdgeKind::SuccessOnly;
    let edge = NewEdge { upstream, downstream, kind, name: None, data_passing_ref: None };
    let (edge_id, expected_graph_revision) = (EdgeId::mint(), None);
    let stage = StageEdge { flow_id, edge_id, edge, expected_graph_revision, apply: true };
    let refusal = trial.refusal(&stage.into());
    assert_eq!((refusal.code, refusal.field.as_deref()), (Code::InvalidInput, Some("edges")));
}
