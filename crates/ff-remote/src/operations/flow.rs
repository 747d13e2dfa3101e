//! Flows: made, grown, cancelled, replayed, removed.

use std::time::Duration;

use ff_api::flow::{Cancel, Cancelled, Replay, Replayed};
use ff_api::graph::{
    AddEdge, AddMember, ApplyEdge as ApplyForm, EdgeAdded, EdgeApplied as AppliedForm, FlowReply,
    GroupSet as GroupSetForm, MemberAdded, NewFlow, SetGroup,
};
use ff_api::manage;
use ff_core::error::EngineError;
use ff_core::id::FlowId;
use ff_core::limits;
use ff_core::operation::{
    AddToFlow, AddedToFlow, ApplyEdge, CancelFlow, CreateFlow, DeleteFlow, Deleted, EdgeApplied,
    EdgeStaged, FlowCancelled, FlowCreated, FlowReplayed, GroupSet, ReplayFlow, SetFlowTags,
    SetGroupPolicy, StageEdge, SubmitFlow, SubmittedFlow, TagsSet,
};
use serde::Serialize;

use super::Asked;
use super::manage::tags_form;
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of, path};

/// A call about a flow, in the namespace that it is in.
fn about(
    link: &Link,
    id: FlowId,
    part: &str,
    request: impl FnOnce(String) -> Request,
) -> Result<Request, EngineError> {
    let namespace = link.known.of(id.uuid());
    Ok(request(of("flows", id, part)?).namespace(namespace.as_ref()))
}

fn post(
    link: &Link,
    id: FlowId,
    part: &str,
    body: &impl Serialize,
) -> Result<Request, EngineError> {
    about(link, id, part, |path| Request::post(path, body))
}

/// The server waits until all members are there.
pub(crate) fn submit(_: &Link, op: SubmitFlow) -> Asked<SubmittedFlow> {
    let namespace = op.flow.namespace.clone();
    let mut ids = vec![op.flow.flow_id.uuid()];
    ids.extend(op.members.iter().map(|member| member.submit.execution_id.uuid()));
    let members: Vec<_> = op.members.iter().map(|member| member.name.clone()).collect();
    let form = NewFlow::try_from(op).map_err(|error| EngineError::bug(error.to_string()))?;
    let request = Request::post(path(&["flows"])?, &form).namespace(Some(&namespace));
    let submitted = Exchange::form(request, move |form: FlowReply, _| form.read(&members));
    Ok(submitted.noting(ids, namespace))
}

pub(crate) fn create(_: &Link, op: CreateFlow) -> Asked<FlowCreated> {
    let (namespace, id) = (op.namespace.clone(), op.flow_id.uuid());
    let request = Request::post(path(&["flows"])?, &NewFlow::from(op));
    let request = request.namespace(Some(&namespace));
    Ok(Exchange::plain::<FlowReply>(request).noting(vec![id], namespace))
}

pub(crate) fn add_member(link: &Link, op: AddToFlow) -> Asked<AddedToFlow> {
    let request = post(link, op.flow_id, "members", &AddMember::from(op))?;
    Ok(Exchange::plain::<MemberAdded>(request))
}

pub(crate) fn stage_edge(link: &Link, op: StageEdge) -> Asked<EdgeStaged> {
    let request = post(link, op.flow_id, "edges", &AddEdge::from(op))?;
    Ok(Exchange::plain::<EdgeAdded>(request))
}

pub(crate) fn apply_edge(link: &Link, op: &ApplyEdge) -> Asked<EdgeApplied> {
    let path = path(&["flows", &op.flow_id.to_string(), "edges", "apply"])?;
    let namespace = link.known.of(op.flow_id.uuid());
    let request = Request::post(path, &ApplyForm { edge_id: op.edge_id });
    Ok(Exchange::plain::<AppliedForm>(request.namespace(namespace.as_ref())))
}

pub(crate) fn set_group(link: &Link, op: SetGroupPolicy) -> Asked<GroupSet> {
    let downstream = op.downstream.to_string();
    let path = path(&["flows", &op.flow_id.to_string(), "groups", &downstream])?;
    let namespace = link.known.of(op.flow_id.uuid());
    let request = Request::put(path, &SetGroup::from(op)).namespace(namespace.as_ref());
    Ok(Exchange::plain::<GroupSetForm>(request))
}

pub(crate) fn cancel(link: &Link, op: CancelFlow) -> Asked<FlowCancelled> {
    cancel_and_wait(link, op, Duration::ZERO)
}

/// The server carries the cancel on until all members have ended, up to `wait`.
pub(crate) fn cancel_and_wait(link: &Link, op: CancelFlow, wait: Duration) -> Asked<FlowCancelled> {
    let request = post(link, op.flow_id, "cancel", &Cancel::from(op))?;
    let ms = match u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) {
        // Who waits for less than a millisecond waits all the same.
        0 if !wait.is_zero() => 1,
        ms => ms,
    };
    let request = match ms {
        0 => request,
        1..=limits::CLAIM_WAIT_MS => request.wait_ms(ms),
        // The route knows one longer wait.
        _ => request.query("wait", "true").patient(true),
    };
    Ok(Exchange::plain::<Cancelled>(request))
}

pub(crate) fn replay(link: &Link, op: ReplayFlow) -> Asked<FlowReplayed> {
    let request = post(link, op.flow_id, "replay", &Replay::from(op))?;
    Ok(Exchange::plain::<Replayed>(request))
}

pub(crate) fn delete(link: &Link, op: &DeleteFlow) -> Asked<Deleted> {
    let request = about(link, op.flow_id, "", Request::delete)?;
    Ok(Exchange::answer(request, |_| Ok(Deleted)))
}

pub(crate) fn set_tags(link: &Link, op: &SetFlowTags) -> Asked<TagsSet> {
    let form = tags_form(&op.tags);
    let patch = |path| Request::patch(path, &form).if_match(op.expected_revision);
    let request = about(link, op.flow_id, "tags", patch)?;
    Ok(Exchange::plain::<manage::TagsSet>(request))
}
