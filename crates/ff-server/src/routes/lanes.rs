//! Lanes and namespaces: looked at, and told what holds for them.

use axum::response::Response;
use ff_api::lane::{ChangeLane, ChangeNamespace, Lane, LaneReason, NamespaceRow};
use ff_api::list::{Counted, Page};
use ff_core::error::{Code, Refusal};
use ff_core::id::LaneId;
use ff_core::operation::SetLane;
use ff_core::read::{DescribeLane, DescribeNamespace, ListLanes};
use ff_core::state::LaneState;

use crate::call::Call;
use crate::failure::Failed;
use crate::route::Route;
use crate::route::Verb::{Get, Patch, Post};
use crate::{lists, reply};
use ff_core::state::Scope::{ExecutionsRead, LanesWrite};

pub(super) const ROUTES: &[Route] = &[
    Route::new(Get, "/v1/lanes", ExecutionsRead, "List lanes by name", |call| Box::pin(list(call)))
        .asks::<Counted>()
        .answers::<Page<Lane>>(200),
    Route::new(Get, "/v1/lanes/{lane}", ExecutionsRead, "Read a lane", |call| Box::pin(get(call)))
        .answers::<Lane>(200),
    Route::new(Patch, "/v1/lanes/{lane}", LanesWrite, "Change a lane", |call| {
        Box::pin(change(call))
    })
    .takes::<ChangeLane>()
    .answers::<Lane>(200),
    Route::new(Post, "/v1/lanes/{lane}/pause", LanesWrite, "Let nothing be claimed", |call| {
        Box::pin(turn(call, LaneState::Paused))
    })
    .takes::<LaneReason>()
    .answers::<Lane>(200),
    Route::new(Post, "/v1/lanes/{lane}/resume", LanesWrite, "Let a lane work again", |call| {
        Box::pin(turn(call, LaneState::Active))
    })
    .takes::<LaneReason>()
    .answers::<Lane>(200),
    Route::new(Post, "/v1/lanes/{lane}/drain", LanesWrite, "Take no new work", |call| {
        Box::pin(turn(call, LaneState::Draining))
    })
    .takes::<LaneReason>()
    .answers::<Lane>(200),
    Route::new(Get, "/v1/namespaces/{namespace}", ExecutionsRead, "Read a namespace", |call| {
        Box::pin(get_namespace(call))
    })
    .answers::<NamespaceRow>(200),
    Route::new(Patch, "/v1/namespaces/{namespace}", LanesWrite, "Change a namespace", |call| {
        Box::pin(change_namespace(call))
    })
    .takes::<ChangeNamespace>()
    .answers::<NamespaceRow>(200),
];

async fn list(call: Call) -> Result<Response, Failed> {
    let paging: Counted = call.query()?;
    let namespace = call.namespace.clone();
    let within = call.caller.lanes().map(<[_]>::to_vec);
    let question = |cursor, limit| ListLanes {
        namespace: namespace.clone(),
        within: within.clone(),
        cursor,
        limit,
    };
    lists::page::<Lane, _, _>(&call, paging, question).await
}

/// The lane of the path, which the caller's key must be for.
fn named(call: &Call) -> Result<LaneId, Failed> {
    let lane = call.parsed("lane")?;
    call.caller.check_lane(&lane)?;
    Ok(lane)
}

async fn as_it_is_now(call: &Call, lane: LaneId) -> Result<Response, Failed> {
    let namespace = call.namespace.clone();
    let lane = Lane::from(*call.ask(DescribeLane { namespace, lane }).await?);
    Ok(reply::tagged(reply::ok(&lane)?, lane.revision))
}

async fn get(call: Call) -> Result<Response, Failed> {
    as_it_is_now(&call, named(&call)?).await
}

async fn change(mut call: Call) -> Result<Response, Failed> {
    let form: ChangeLane = call.body()?;
    let lane = named(&call)?;
    let expected_revision = call.expected_revision()?;
    call.act(form.operation(call.namespace.clone(), lane.clone(), expected_revision)).await?;
    as_it_is_now(&call, lane).await
}

async fn turn(mut call: Call, state: LaneState) -> Result<Response, Failed> {
    let LaneReason { reason } = call.body()?;
    let lane = named(&call)?;
    let set = SetLane::new(call.namespace.clone(), lane.clone());
    call.act(SetLane { state: Some(state), reason, ..set }).await?;
    as_it_is_now(&call, lane).await
}

async fn namespace_now(call: &Call) -> Result<Response, Failed> {
    let question = DescribeNamespace { namespace: call.namespace.clone() };
    let row = NamespaceRow::from(*call.ask(question).await?);
    Ok(reply::tagged(reply::ok(&row)?, row.revision))
}

async fn get_namespace(call: Call) -> Result<Response, Failed> {
    namespace_now(&call).await
}

async fn change_namespace(mut call: Call) -> Result<Response, Failed> {
    let form: ChangeNamespace = call.body()?;
    if call.caller.lanes().is_some() {
        let detail = "a namespace is changed for all its lanes: that needs a key of all of them";
        return Err(Refusal::new(Code::Forbidden, detail).into());
    }
    let expected_revision = call.expected_revision()?;
    call.act(form.operation(call.namespace.clone(), expected_revision)).await?;
    namespace_now(&call).await
}
