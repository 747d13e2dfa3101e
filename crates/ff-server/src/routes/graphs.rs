//! The graph of a flow: its members, edges and groups.

use axum::response::Response;
use ff_api::again::Again;
use ff_api::flow::{Edge, Flow, Graph, Member};
use ff_api::graph::{
    AddEdge, AddMember, ApplyEdge, EdgeAdded, EdgeApplied, GroupSet, MemberAdded, MemberForm,
    SetGroup, submit_member,
};
use ff_api::list::{Counted, Page, scope};
use ff_api::object::Object;
use ff_core::cursor;
use ff_core::error::EngineError;
use ff_core::id::{EdgeId, ExecutionId, FlowId};
use ff_core::limits;
use ff_core::machine;
use ff_core::operation::{self, AddedToFlow, Operation as _, Submitted};
use ff_core::read::{self, DescribeEdge, ListFlowEdges, ListFlowMembers};

use super::executions::{SUBMIT_BYTES, signed};
use super::flows::own;
use crate::call::Call;
use crate::failure::Failed;
use crate::reply;
use crate::route::Route;
use crate::route::Verb::{Get, Post, Put};
use ff_core::state::Scope::{ExecutionsRead, FlowsWrite};

/// How much of a graph one answer shows: as much as one submit can bring.
const SHOWN_MEMBERS: usize = limits::FLOW_SUBMIT_MEMBERS;
const SHOWN_EDGES: usize = limits::FLOW_SUBMIT_EDGES;

/// How often a graph is looked at that changes meanwhile.
const LOOKS: usize = 4;

pub(super) const ROUTES: &[Route] = &[
    Route::new(Get, "/v1/flows/{flow_id}/graph", ExecutionsRead, "Read a whole graph", |call| {
        Box::pin(graph(call))
    })
    .answers::<Graph>(200),
    Route::new(
        Get,
        "/v1/flows/{flow_id}/members",
        ExecutionsRead,
        "List the members of a flow",
        |call| Box::pin(members(call)),
    )
    .asks::<Counted>()
    .answers::<Page<Member>>(200),
    Route::new(
        Post,
        "/v1/flows/{flow_id}/members",
        FlowsWrite,
        "Add an execution to a flow, or submit a new one into it",
        |call| Box::pin(add_member(call)),
    )
    .takes::<MemberForm>()
    .up_to(SUBMIT_BYTES)
    .answers::<Again<MemberAdded>>(201),
    Route::new(
        Get,
        "/v1/flows/{flow_id}/edges",
        ExecutionsRead,
        "List the edges of a flow",
        |call| Box::pin(edges(call)),
    )
    .asks::<Counted>()
    .answers::<Page<Edge>>(200),
    Route::new(Post, "/v1/flows/{flow_id}/edges", FlowsWrite, "Add an edge to a flow", |call| {
        Box::pin(add_edge(call))
    })
    .takes::<AddEdge>()
    .answers::<EdgeAdded>(201),
    Route::new(Post, "/v1/flows/{flow_id}/edges/apply", FlowsWrite, "Make an edge count", |call| {
        Box::pin(apply_edge(call))
    })
    .takes::<ApplyEdge>()
    .answers::<Again<EdgeApplied>>(200),
    Route::new(
        Put,
        "/v1/flows/{flow_id}/groups/{execution_id}",
        FlowsWrite,
        "Say when the edges to a member let it go",
        |call| Box::pin(set_group(call)),
    )
    .takes::<SetGroup>()
    .answers::<Again<GroupSet>>(200),
];

/// Where a list of a flow goes on.
fn members_scope(call: &Call, id: FlowId) -> String {
    scope("members", &call.namespace, id)
}

fn edges_scope(call: &Call, id: FlowId) -> String {
    scope("edges", &call.namespace, id)
}

async fn members(call: Call) -> Result<Response, Failed> {
    let paging: Counted = call.query()?;
    let (counts, limit) = (paging.counts()?, paging.limit());
    let flow = own(&call).await?;
    let (flow_id, scope) = (flow.flow_id, members_scope(&call, flow.flow_id));
    let from = paging.cursor.as_deref().map(|text| cursor::decode(&scope, text)).transpose()?;
    let question = ListFlowMembers { flow_id, from: from.unwrap_or(0), limit };
    let page = call.ask(question).await?;
    let items: Vec<Member> = page.items.into_iter().map(Into::into).collect();
    let next_cursor = page.next.map(|number| cursor::encode(&scope, &number));
    let count = counts.then_some(flow.node_count.into());
    reply::page(&call, &Page { count, ..Page::new(items, next_cursor) })
}

async fn edges(call: Call) -> Result<Response, Failed> {
    let paging: Counted = call.query()?;
    let (counts, limit) = (paging.counts()?, paging.limit());
    let flow = own(&call).await?;
    let (flow_id, scope) = (flow.flow_id, edges_scope(&call, flow.flow_id));
    let from = paging.cursor.as_deref().map(|text| cursor::decode(&scope, text)).transpose()?;
    let question = ListFlowEdges { flow_id, from: from.unwrap_or((0, 0)), limit };
    let page = call.ask(question).await?;
    let items: Vec<Edge> = page.items.into_iter().map(Into::into).collect();
    let next_cursor = page.next.map(|place| cursor::encode(&scope, &place));
    let count = counts.then_some(flow.edge_count.into());
    reply::page(&call, &Page { count, ..Page::new(items, next_cursor) })
}

/// Flow, members and edges are read one after the other: one picture, unless the flow goes on changing.
/// Then counts are still those of the members that are shown, and edges come first, so that none has
/// resolved whose upstream is shown as it was before.
async fn graph(call: Call) -> Result<Response, Failed> {
    let mut flow = own(&call).await?;
    let flow_id = flow.flow_id;
    for _ in 1..LOOKS {
        let shown = show(&call, flow_id).await?;
        let after = own(&call).await?;
        if after == flow {
            return drawn(&call, *flow, shown);
        }
        flow = after;
    }
    let shown = show(&call, flow_id).await?;
    drawn(&call, *flow, shown)
}

/// Members and edges, and where each list goes on.
struct Shown {
    members: Vec<read::MemberSnapshot>,
    next_member: Option<u32>,
    edges: Vec<read::EdgeSnapshot>,
    next_edge: Option<(u32, u32)>,
}

async fn show(call: &Call, flow_id: FlowId) -> Result<Shown, EngineError> {
    let (edges, next_edge) = all_edges(call, flow_id).await?;
    let (members, next_member) = all_members(call, flow_id).await?;
    Ok(Shown { members, next_member, edges, next_edge })
}

fn drawn(call: &Call, flow: read::FlowSnapshot, shown: Shown) -> Result<Response, Failed> {
    let (flow_id, revision) = (flow.flow_id, flow.revision);
    let Shown { members, next_member, edges, next_edge } = shown;
    let mut flow = Flow::from(flow);
    if next_member.is_none() {
        flow.counts.clear();
        members.iter().for_each(|it| *flow.counts.entry(it.public_state).or_default() += 1);
    }
    let graph = Graph {
        flow,
        members: members.into_iter().map(Into::into).collect(),
        edges: edges.into_iter().map(Into::into).collect(),
        members_cursor: next_member
            .map(|number| cursor::encode(&members_scope(call, flow_id), &number)),
        edges_cursor: next_edge.map(|place| cursor::encode(&edges_scope(call, flow_id), &place)),
    };
    Ok(reply::tagged(reply::ok(&graph)?, revision))
}

async fn all_members(
    call: &Call,
    flow_id: FlowId,
) -> Result<(Vec<read::MemberSnapshot>, Option<u32>), EngineError> {
    let (mut found, mut next) = (Vec::new(), Some(0));
    while let Some(from) = next.filter(|_| found.len() < SHOWN_MEMBERS) {
        let page = call.ask(ListFlowMembers { flow_id, from, limit: limits::PAGE_MAX }).await?;
        found.extend(page.items);
        next = page.next;
    }
    Ok((found, next))
}

async fn all_edges(
    call: &Call,
    flow_id: FlowId,
) -> Result<(Vec<read::EdgeSnapshot>, Option<(u32, u32)>), EngineError> {
    let (mut found, mut next) = (Vec::new(), Some((0, 0)));
    while let Some(from) = next.filter(|_| found.len() < SHOWN_EDGES) {
        let page = call.ask(ListFlowEdges { flow_id, from, limit: limits::PAGE_MAX }).await?;
        found.extend(page.items);
        next = page.next;
    }
    Ok((found, next))
}

async fn add_member(mut call: Call) -> Result<Response, Failed> {
    let (fields, _) = call.fields();
    let flow_id = own(&call).await?.flow_id;
    let submits = ["lane", "lane_id", "kind", "execution_kind"];
    if submits.iter().any(|name| fields.has(name)) {
        return submit(&call, fields, flow_id).await;
    }
    let form: AddMember = fields.read()?;
    let execution_id = form.execution_id;
    let add = form.operation(flow_id);
    // An execution that cannot be a member is refused as that, whether it is there or not.
    machine::check(call.backend().settings(), &add.clone().into())?;
    call.record(execution_id).await?;
    let (is_new, node_count) = match call.act(add).await? {
        AddedToFlow::Added { node_count } => (true, node_count),
        AddedToFlow::AlreadyMember { node_count } => (false, node_count),
    };
    match is_new {
        true => reply::json(201, &added("added", execution_id, node_count)),
        false => reply::again(added("already_member", execution_id, node_count), true),
    }
}

fn added(status: &str, execution_id: ExecutionId, node_count: u32) -> MemberAdded {
    MemberAdded { status: status.to_owned(), execution_id, node_count }
}

/// A new execution, made as a member.
async fn submit(call: &Call, fields: Object, flow_id: FlowId) -> Result<Response, Failed> {
    let mut form = signed(call, submit_member(fields, flow_id)?).await?;
    form.idempotency_key = call.key(form.idempotency_key, "idempotency_key")?;
    let (by_key, lane) = (form.idempotency_key.is_some(), form.lane.clone());
    let partitions = call.backend().settings().partitions;
    let operation = form.operation(call.namespace.clone(), None, &partitions)?;
    let (is_new, execution_id) = match call.act(operation).await? {
        Submitted::Created { execution_id, .. } => (true, execution_id),
        Submitted::Duplicate { execution_id, .. } => (false, execution_id),
    };
    call.app.namespaces.note(execution_id, &call.namespace, &lane);
    let node_count = own(call).await?.node_count;
    match (is_new, by_key) {
        (true, _) => reply::json(201, &added("added", execution_id, node_count)),
        (false, true) => reply::repeated(added("already_member", execution_id, node_count), true),
        (false, false) => reply::again(added("already_member", execution_id, node_count), true),
    }
}

async fn add_edge(mut call: Call) -> Result<Response, Failed> {
    let form: AddEdge = call.body()?;
    let stage = form.operation(call.flow_id()?);
    stage.check()?;
    own(&call).await?;
    reply::json(201, &EdgeAdded::from(call.act(stage).await?))
}

async fn apply_edge(mut call: Call) -> Result<Response, Failed> {
    let ApplyEdge { edge_id } = call.body()?;
    let flow_id = own(&call).await?.flow_id;
    let apply = operation::ApplyEdge { flow_id, edge_id };
    let applied = EdgeApplied::from(call.act(apply).await?);
    let known = applied.unresolved.is_none();
    let unresolved = match applied.unresolved {
        None => awaited(&call, flow_id, edge_id).await?,
        counted => counted,
    };
    reply::again(EdgeApplied { unresolved, ..applied }, known)
}

/// How many edges the downstream of an edge still waits for.
async fn awaited(
    call: &Call,
    flow_id: FlowId,
    edge_id: EdgeId,
) -> Result<Option<u32>, EngineError> {
    let edge = call.ask(DescribeEdge { flow_id, edge_id }).await?;
    let mut next = Some(0);
    while let Some(from) = next {
        let page = call.ask(ListFlowMembers { flow_id, from, limit: limits::PAGE_MAX }).await?;
        let mut members = page.items.into_iter();
        if let Some(found) = members.find(|member| member.execution_id == edge.downstream) {
            return Ok(Some(found.group.unresolved()));
        }
        next = page.next;
    }
    Ok(None)
}

async fn set_group(mut call: Call) -> Result<Response, Failed> {
    let form: SetGroup = call.body()?;
    let downstream = call.execution_id()?;
    let flow_id = own(&call).await?.flow_id;
    let set = call.act(form.operation(flow_id, downstream)?).await?;
    reply::again(GroupSet::from(set), set == operation::GroupSet::AlreadySet)
}
