//! Lanes, namespaces and keys.

use ff_api::lane::{ChangeLane, ChangeNamespace, Lane, NamespaceRow};
use ff_core::operation::{DeleteKey, LaneSet, NamespaceSet, SetLane, SetNamespace, Settled};

use super::Asked;
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of};

pub(crate) fn set_lane(_: &Link, op: SetLane) -> Asked<LaneSet> {
    let (namespace, revision) = (op.namespace.clone(), op.expected_revision);
    let path = of("lanes", &op.lane, "")?;
    let request = Request::patch(path, &ChangeLane::from(op)).if_match(revision);
    Ok(Exchange::plain::<Lane>(request.namespace(Some(&namespace))))
}

pub(crate) fn set_namespace(_: &Link, op: SetNamespace) -> Asked<NamespaceSet> {
    let revision = op.expected_revision;
    let path = of("namespaces", &op.namespace, "")?;
    let request = Request::patch(path, &ChangeNamespace::from(op)).if_match(revision);
    Ok(Exchange::plain::<NamespaceRow>(request))
}

pub(crate) fn delete_key(_: &Link, op: &DeleteKey) -> Asked<Settled> {
    Ok(Exchange::settled(Request::delete(of("keys", &op.key_id, "")?)))
}
