//! Flows, and what they are made of.

use ff_api::event::Event as EventForm;
use ff_api::flow::{Edge, Flow, Member};
use ff_core::error::{Code, EngineError};
use ff_core::id::FlowId;
use ff_core::read::{
    DescribeFlow, Events, FlowEdges, FlowMembers, FlowSnapshot, ListFlowEdges, ListFlowEvents,
    ListFlowMembers, ListFlows, Page,
};

use super::execution::stretch;
use super::page::{Numbered, walked};
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of, path};
use crate::operations::Asked;

fn get(link: &Link, id: FlowId, part: &str) -> Result<Request, EngineError> {
    let namespace = link.known.of(id.uuid());
    Ok(Request::get(of("flows", id, part)?).namespace(namespace.as_ref()))
}

pub(crate) fn describe(link: &Link, question: &DescribeFlow) -> Asked<Option<Box<FlowSnapshot>>> {
    let request = get(link, question.flow_id, "")?;
    let found = Exchange::form(request, |form: Flow, _| form.try_into().map(Box::new));
    Ok(found.or_none(Code::FlowNotFound))
}

pub(crate) fn list(_: &Link, question: ListFlows) -> Asked<Page<FlowSnapshot>> {
    let ListFlows { filter, cursor, limit } = question;
    let request = Request::get(path(&["flows"])?)
        .namespace(Some(&filter.namespace))
        .each("state", filter.states.iter().map(|state| state.as_str()))
        .each("kind", &filter.kinds)
        .each("tag", filter.tags.iter().map(|(key, value)| format!("{key}:{value}")));
    walked::<Flow, _>(request, cursor, limit)
}

pub(crate) fn events(link: &Link, question: &ListFlowEvents) -> Asked<Events> {
    let ListFlowEvents { flow_id: id, after_seq, limit } = *question;
    let list = Numbered::new("flow events", &link.namespace_of(id.uuid()), id);
    let request = get(link, id, "events")?;
    let page = list.page::<EventForm, _, u64>(request, Some(after_seq), limit)?;
    Ok(page.map(move |(items, next)| stretch(after_seq, items, next)))
}

pub(crate) fn members(link: &Link, question: &ListFlowMembers) -> Asked<FlowMembers> {
    let ListFlowMembers { flow_id: id, from, limit } = *question;
    let list = Numbered::new("members", &link.namespace_of(id.uuid()), id);
    let page = list.page::<Member, _, u32>(get(link, id, "members")?, Some(from), limit)?;
    Ok(page.map(|(items, next)| FlowMembers { items, next }))
}

pub(crate) fn edges(link: &Link, question: &ListFlowEdges) -> Asked<FlowEdges> {
    let ListFlowEdges { flow_id: id, from, limit } = *question;
    let list = Numbered::new("edges", &link.namespace_of(id.uuid()), id);
    let page = list.page::<Edge, _, (u32, u32)>(get(link, id, "edges")?, Some(from), limit)?;
    Ok(page.map(|(items, next)| FlowEdges { items, next }))
}
