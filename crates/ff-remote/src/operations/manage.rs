//! What operators do to executions, one by one and many at once.

use std::time::Duration;

use ff_api::bulk::{BulkPreview, BulkReply, NewBulk};
use ff_api::execution::Record as RecordForm;
use ff_api::manage::{self as forms, Cancelled as CancelledForm, Revoked as RevokedForm};
use ff_core::act::{Preview, PreviewBulk};
use ff_core::error::EngineError;
use ff_core::id::{BulkId, ExecutionId, Namespace};
use ff_core::operation::{
    BulkCreated, BulkWish, Cancel, Cancelled, ChangePriority, CreateBulk, Delete, Deleted, Hold,
    PriorityChanged, Release, Replay, Replayed, Resume, ResumedNow, Revoke, Revoked, SetBulk,
    SetTags, Settled, TagsSet,
};
use ff_core::state::BulkAction;
use ff_core::tags::Tags;
use serde::Serialize;

use super::Asked;
use super::execution::{post, post_fenced};
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of, of_execution, path};

/// A bulk operation looks at all that it may act on before it is made.
const LOOKS: Duration = Duration::from_secs(60);

pub(crate) fn cancel(link: &Link, op: Cancel) -> Asked<Cancelled> {
    let (id, fence) = (op.execution_id, op.fence);
    let form = forms::Cancel::from(op);
    let request = match fence {
        Some(fence) => post_fenced(link, id, "cancel", fence, form)?,
        None => post(link, id, "cancel", &form)?,
    };
    Ok(Exchange::plain::<CancelledForm>(request))
}

pub(crate) fn revoke(link: &Link, op: Revoke) -> Asked<Revoked> {
    let request = post(link, op.execution_id, "revoke-lease", &forms::RevokeLease::from(op))?;
    Ok(Exchange::plain::<RevokedForm>(request))
}

pub(crate) fn hold(link: &Link, op: Hold) -> Asked<Settled> {
    let form = forms::Hold { detail: op.detail };
    Ok(Exchange::settled(post(link, op.execution_id, "hold", &form)?))
}

pub(crate) fn release(link: &Link, op: &Release) -> Asked<Settled> {
    let form = forms::Hold::default();
    Ok(Exchange::settled(post(link, op.execution_id, "release", &form)?))
}

/// A change of a part of an execution.
fn change(
    link: &Link,
    id: ExecutionId,
    part: &str,
    request: impl FnOnce(String) -> Request,
) -> Result<Request, EngineError> {
    let namespace = link.known.of(id.uuid());
    Ok(request(of_execution(id, part)?).namespace(namespace.as_ref()))
}

pub(crate) fn change_priority(link: &Link, op: &ChangePriority) -> Asked<PriorityChanged> {
    let form = forms::ChangePriority { new_priority: op.priority };
    let put = |path| Request::put(path, &form);
    let request = change(link, op.execution_id, "priority", put)?;
    Ok(Exchange::plain::<forms::PriorityChanged>(request))
}

/// Tags as a request shows them.
pub(super) fn tags_form(tags: &Tags) -> forms::SetTags {
    forms::SetTags { tags: ff_api::execution::tags(tags) }
}

pub(crate) fn set_tags(link: &Link, op: &SetTags) -> Asked<TagsSet> {
    let form = tags_form(&op.tags);
    let patch = |path| Request::patch(path, &form).if_match(op.expected_revision);
    let request = change(link, op.execution_id, "tags", patch)?;
    Ok(Exchange::plain::<forms::TagsSet>(request))
}

pub(crate) fn replay(link: &Link, op: &Replay) -> Asked<Replayed> {
    let form = forms::Replay { descendants: op.descendants };
    let request = post(link, op.execution_id, "replay", &form)?;
    Ok(Exchange::plain::<forms::Replayed>(request))
}

pub(crate) fn delete(link: &Link, op: &Delete) -> Asked<Deleted> {
    let request = change(link, op.execution_id, "", Request::delete)?;
    Ok(Exchange::answer(request, |_| Ok(Deleted)))
}

pub(crate) fn resume(link: &Link, op: Resume) -> Asked<ResumedNow> {
    let form = forms::Resume { detail: op.trigger, delay_ms: op.delay_ms };
    let request = post(link, op.execution_id, "resume", &form)?;
    Ok(Exchange::form(request, |form: RecordForm, _| {
        Ok(ResumedNow { public_state: form.public_state })
    }))
}

fn post_bulk(namespace: &Namespace, form: &impl Serialize) -> Result<Request, EngineError> {
    Ok(Request::post(path(&["bulk"])?, form).namespace(Some(namespace)).lasting(LOOKS))
}

/// Whether it is new, and how many there are to act on.
pub(crate) fn create_bulk(op: CreateBulk) -> Asked<(BulkCreated, u64)> {
    let (namespace, id) = (op.namespace.clone(), op.bulk_id.uuid());
    let request = post_bulk(&namespace, &NewBulk::from(op))?;
    let created = Exchange::form(request, |form: BulkReply, _| {
        let matched = form.matched;
        let created = match form.status.as_str() {
            "created" => BulkCreated::Created,
            _ => BulkCreated::AlreadySatisfied { matched },
        };
        Ok((created, matched))
    });
    Ok(created.noting(vec![id], namespace))
}

/// The server counts whom it acts on by itself.
pub(crate) fn create_bulk_alone(_: &Link, op: CreateBulk) -> Asked<BulkCreated> {
    Ok(create_bulk(op)?.map(|(created, _)| created))
}

pub(crate) fn preview_bulk(act: PreviewBulk) -> Asked<Preview> {
    let PreviewBulk { namespace, targets } = act;
    let form = NewBulk {
        dry_run: true,
        ..NewBulk::from(CreateBulk {
            bulk_id: BulkId::mint(),
            namespace: namespace.clone(),
            // A look does nothing, whatever would be done.
            action: BulkAction::Cancel,
            targets,
            reason: String::new(),
            matched: 0,
        })
    };
    let request = post_bulk(&namespace, &form)?.asking();
    Ok(Exchange::plain::<BulkPreview>(request))
}

pub(crate) fn set_bulk(link: &Link, op: &SetBulk) -> Asked<Settled> {
    let verb = match op.to {
        BulkWish::Pause => "pause",
        BulkWish::Resume => "resume",
        BulkWish::Abort => "abort",
    };
    let namespace = link.known.of(op.bulk_id.uuid());
    let request = Request::post(of("bulk", op.bulk_id, verb)?, &serde_json::json!({}));
    Ok(Exchange::settled(request.namespace(namespace.as_ref())))
}
