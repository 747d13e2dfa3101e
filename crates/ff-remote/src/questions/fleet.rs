//! Workers and lanes.

use ff_api::lane::Lane;
use ff_api::worker::Worker;
use ff_core::error::Code;
use ff_core::id::LaneId;
use ff_core::read::{
    DescribeLane, DescribeWorker, LaneSnapshot, ListLanes, ListWorkers, Page, WorkerSnapshot,
};

use super::page::walked;
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of, path};
use crate::operations::Asked;

/// Those of a page that are on these lanes alone. A server restricts lists to the lanes of the key, so
/// what is asked for besides is left out here, and the page may be short.
fn within<T: 'static>(
    page: Exchange<Page<T>>,
    lanes: Option<Vec<LaneId>>,
    of: impl Fn(&T) -> &[LaneId] + Send + 'static,
) -> Exchange<Page<T>> {
    page.map(move |mut page| {
        if let Some(lanes) = lanes {
            page.items.retain(|item| of(item).iter().all(|lane| lanes.contains(lane)));
        }
        page
    })
}

pub(crate) fn worker(_: &Link, question: &DescribeWorker) -> Asked<Option<Box<WorkerSnapshot>>> {
    let request = Request::get(of("workers", &question.worker_instance_id, "")?);
    let request = request.namespace(Some(&question.namespace));
    let found = Exchange::form(request, |form: Worker, _| form.try_into().map(Box::new));
    Ok(found.or_none(Code::WorkerNotFound))
}

pub(crate) fn workers(_: &Link, question: ListWorkers) -> Asked<Page<WorkerSnapshot>> {
    let ListWorkers { namespace, within: lanes, cursor, limit } = question;
    let request = Request::get(path(&["workers"])?).namespace(Some(&namespace));
    let page = walked::<Worker, WorkerSnapshot>(request, cursor, limit)?;
    Ok(within(page, lanes, |worker| &worker.lanes))
}

pub(crate) fn lane(_: &Link, question: &DescribeLane) -> Asked<Box<LaneSnapshot>> {
    let request = Request::get(of("lanes", &question.lane, "")?);
    let request = request.namespace(Some(&question.namespace));
    Ok(Exchange::form(request, |form: Lane, _| Ok(Box::new(form.into()))))
}

pub(crate) fn lanes(_: &Link, question: ListLanes) -> Asked<Page<LaneSnapshot>> {
    let ListLanes { namespace, within: lanes, cursor, limit } = question;
    let request = Request::get(path(&["lanes"])?).namespace(Some(&namespace));
    let page = walked::<Lane, LaneSnapshot>(request, cursor, limit)?;
    Ok(within(page, lanes, |lane| std::slice::from_ref(&lane.lane)))
}
