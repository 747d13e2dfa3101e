//! Waitpoints and signals.

use ff_api::list::Page as PageForm;
use ff_api::signal::{AcceptedSignal, OpenWaitpoint};
use ff_api::task;
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::ResumeSignal;
use ff_core::read::{
    ListPendingWaitpoints, ListSignals, ListedWaitpoint, ObserveSignals, Page, Signals,
};

use super::execution::get;
use super::page::{Numbered, items, walked};
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, path};
use crate::operations::Asked;

pub(crate) fn signals(link: &Link, question: &ListSignals) -> Asked<Signals> {
    let ListSignals { execution_id: id, from, limit } = *question;
    let list = Numbered::new("signals", &link.namespace_of(id.uuid()), id);
    let request = get(link, id, "signals")?;
    let page = list.page::<AcceptedSignal, _, u32>(request, Some(from), limit)?;
    Ok(page.map(|(items, next)| Signals { items, next }))
}

pub(crate) fn observe(link: &Link, question: &ObserveSignals) -> Asked<Vec<ResumeSignal>> {
    let request = get(link, question.execution_id, "resume-signals")?
        .query("lease_id", &question.fence.lease_id)
        .query("lease_epoch", &question.fence.lease_epoch)
        .query("attempt_id", &question.fence.attempt_id);
    Ok(Exchange::form(request, |form: task::Signals, _| {
        Ok(form.signals.into_iter().map(Into::into).collect())
    }))
}

pub(crate) fn inbox(_: &Link, question: ListPendingWaitpoints) -> Asked<Page<ListedWaitpoint>> {
    let ListPendingWaitpoints { filter, cursor, limit } = question;
    let request = Request::get(path(&["waitpoints"])?)
        .namespace(Some(&filter.namespace))
        .each("lane", &filter.lanes)
        .each("reason", filter.reason)
        .each("age", filter.older_than_ms);
    walked::<OpenWaitpoint, _>(request, cursor, limit)
}

impl Link {
    /// All waitpoints of an execution, page by page.
    pub(crate) async fn waitpoints(
        &self,
        id: ExecutionId,
    ) -> Result<Vec<ListedWaitpoint>, EngineError> {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let request = get(self, id, "pending-waitpoints")?;
            let request = request.each("cursor", cursor).query("limit", &limits::PAGE_MAX);
            let page = Exchange::form(request, |form: PageForm<OpenWaitpoint>, _| {
                Ok((items(form.items)?, form.next_cursor))
            });
            let (items, next): (Vec<ListedWaitpoint>, _) = self.send(page).await?;
            found.extend(items);
            cursor = next;
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }
}
