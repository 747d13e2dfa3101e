//! Answers questions about workers.

use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::{DocumentId, Namespace};
use ff_core::limits;
use ff_core::read::{Answer, DescribeWorker, ListWorkers, Page, Query, WorkerSnapshot};
use ff_core::state::Document;

use crate::store::Shared;
use crate::{lanes, leases, listing, read};

/// Questions about lanes, workers and leases.
pub(crate) async fn answer(shared: &Arc<Shared>, query: &Query) -> Result<Answer, EngineError> {
    Ok(match query {
        Query::DescribeWorker(q) => Answer::DescribeWorker(describe_worker(shared, q).await?),
        Query::ListWorkers(q) => Answer::ListWorkers(list_workers(shared, q).await?),
        Query::LeasesOf(q) => Answer::LeasesOf(leases::page(shared, q).await?),
        Query::ListExpiredLeases(q) => Answer::ListExpiredLeases(leases::page(shared, q).await?),
        Query::DescribeLane(q) => Answer::DescribeLane(Box::new(lanes::describe(shared, q).await?)),
        Query::ListLanes(q) => Answer::ListLanes(lanes::list(shared, q).await?),
        other => return Err(EngineError::bug(format!("{} is not answered here", other.name()))),
    })
}

async fn describe_worker(
    shared: &Arc<Shared>,
    query: &DescribeWorker,
) -> Result<Option<Box<WorkerSnapshot>>, EngineError> {
    let id = DocumentId::worker(&query.namespace, &query.worker_instance_id);
    let (now, mut found) = read::documents(shared, &id.home, std::slice::from_ref(&id)).await?;
    let found = found.pop().flatten();
    let worker = found.as_ref().and_then(|(document, _)| Document::worker(document));
    let Some(worker) = worker.and_then(|worker| WorkerSnapshot::of(worker, now)) else {
        return Ok(None);
    };
    let mut page = Page { items: vec![worker], next_cursor: None };
    if query.counted {
        count_running(shared, &query.namespace, &mut page).await?;
    }
    Ok(page.items.pop().map(Box::new))
}

async fn list_workers(
    shared: &Arc<Shared>,
    query: &ListWorkers,
) -> Result<Page<WorkerSnapshot>, EngineError> {
    let mut page = listing::walk(shared, query).await?;
    count_running(shared, &query.namespace, &mut page).await?;
    Ok(page)
}

/// One walk over leases, for all workers of a page.
async fn count_running(
    shared: &Arc<Shared>,
    namespace: &Namespace,
    page: &mut Page<WorkerSnapshot>,
) -> Result<(), EngineError> {
    if page.items.is_empty() {
        return Ok(());
    }
    let running = leases::running(shared, namespace).await?;
    for item in &mut page.items {
        item.running = running.get(&item.worker_instance_id).copied().unwrap_or_default();
    }
    Ok(())
}

/// Live workers of a namespace, without what they run.
pub(crate) async fn live_workers(
    shared: &Arc<Shared>,
    namespace: &Namespace,
) -> Result<Vec<WorkerSnapshot>, EngineError> {
    listing::walk_all(shared, |cursor| ListWorkers {
        within: None,
        namespace: namespace.clone(),
        cursor,
        limit: limits::PAGE_MAX,
    })
    .await
}
