//! Bulk operations: looked at before, made, and carried out step by step.

use ff_core::act::{self, Preview, PreviewBulk};
use ff_core::backend::{Backend, BackendExt};
use ff_core::each::{Each, each};
use ff_core::error::EngineError;
use ff_core::id::{BulkId, ExecutionId, Namespace};
use ff_core::limits;
use ff_core::operation::{
    AdvanceBulk, BulkCreated, Cancel, Command, CreateBulk, Delete, Hold, Operation as _, Release,
    Replay,
};
use ff_core::read::{Describe, Filter, GetBulk, Search};
use ff_core::state::{Bulk, BulkAction, BulkState, BulkTargets, CancelSource};

/// Executions that a preview shows.
const SAMPLE: usize = 20;

/// Looks whom a bulk operation would act on, and changes nothing.
pub async fn preview(
    backend: &dyn Backend,
    namespace: &Namespace,
    targets: &BulkTargets,
) -> Result<Preview, EngineError> {
    if let Some(acts) = backend.acts() {
        let (namespace, targets) = (namespace.clone(), targets.clone());
        return act::whole(acts, PreviewBulk { namespace, targets }).await;
    }
    let mut found = Preview::default();
    match targets {
        BulkTargets::Ids(ids) => {
            for part in ids.chunks(limits::BULK_STEP as usize) {
                add(&mut found, own(backend, namespace, part).await?);
            }
        }
        BulkTargets::Filter(filter) => {
            let mut cursor = None;
            loop {
                let page = backend.ask(search(filter, cursor)).await?;
                add(&mut found, page.items.into_iter().map(|record| record.execution_id));
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
        }
    }
    Ok(found)
}

/// Makes a bulk operation: whether it is new, and how many there are to act on.
pub async fn create(
    backend: &dyn Backend,
    mut create: CreateBulk,
) -> Result<(BulkCreated, u64), EngineError> {
    create.check()?;
    if let Some(acts) = backend.acts() {
        return act::whole(acts, create).await;
    }
    create.matched = preview(backend, &create.namespace, &create.targets).await?.matched;
    let matched = create.matched;
    match backend.call(create).await? {
        BulkCreated::Created => Ok((BulkCreated::Created, matched)),
        before @ BulkCreated::AlreadySatisfied { matched } => Ok((before, matched)),
    }
}

/// Carries out one step of a bulk operation. When there is more, it is told again at once.
pub async fn carry_on(backend: &dyn Backend, bulk_id: BulkId) -> Result<Each, EngineError> {
    let Some(bulk) = backend.ask(GetBulk { bulk_id }).await? else { return Ok(Each::default()) };
    if bulk.state != BulkState::Running {
        return Ok(Each::default());
    }
    let Slice { ids, strangers, cursor, is_last } = next(backend, &bulk).await?;
    let acts = ids.into_iter().map(|id| act(&bulk, id)).collect::<Vec<_>>();
    // Should this stop half way, whoever does it again meets those that were done as refusals.
    let acted = each(backend, acts, |_| true).await?;
    let (steps, done) = (bulk.steps, acted.done);
    let failed = strangers + acted.refused + acted.passed_over();
    let advance = AdvanceBulk { bulk_id, steps, done, failed, cursor, is_last };
    match backend.call(advance).await {
        Err(error) if error.refusal().is_none() => Err(error),
        // One that is gone needs no more.
        _ => Ok(acted),
    }
}

/// On whom a step acts.
struct Slice {
    ids: Vec<ExecutionId>,
    /// Those of other namespaces, and those that are gone.
    strangers: u32,
    /// Where the next step begins.
    cursor: Option<String>,
    is_last: bool,
}

async fn next(backend: &dyn Backend, bulk: &Bulk) -> Result<Slice, EngineError> {
    let filter = match &bulk.targets {
        BulkTargets::Filter(filter) => filter,
        BulkTargets::Ids(ids) => return of_ids(backend, bulk, ids).await,
    };
    let page = backend.ask(search(filter, bulk.cursor.clone())).await?;
    let is_last = page.next_cursor.is_none();
    let ids = page.items.into_iter().map(|record| record.execution_id).collect();
    Ok(Slice { ids, strangers: 0, cursor: page.next_cursor, is_last })
}

async fn of_ids(
    backend: &dyn Backend,
    bulk: &Bulk,
    ids: &[ExecutionId],
) -> Result<Slice, EngineError> {
    let step = limits::BULK_STEP as usize;
    let behind = usize::try_from(bulk.steps).unwrap_or(usize::MAX).saturating_mul(step);
    let is_last = behind.saturating_add(step) >= ids.len();
    let looked_at = &ids[behind.min(ids.len())..behind.saturating_add(step).min(ids.len())];
    let ids = own(backend, &bulk.namespace, looked_at).await?;
    let strangers = u32::try_from(looked_at.len() - ids.len()).unwrap_or(u32::MAX);
    Ok(Slice { ids, strangers, cursor: None, is_last })
}

/// Those of these executions that are there and of the namespace.
async fn own(
    backend: &dyn Backend,
    namespace: &Namespace,
    ids: &[ExecutionId],
) -> Result<Vec<ExecutionId>, EngineError> {
    let questions = ids.iter().map(|&execution_id| Describe { execution_id }).collect();
    let mut own = Vec::with_capacity(ids.len());
    for record in backend.ask_all(questions).await {
        let record = record?.filter(|record| record.namespace == *namespace);
        own.extend(record.map(|record| record.execution_id));
    }
    Ok(own)
}

fn search(filter: &Filter, cursor: Option<String>) -> Search {
    Search { filter: filter.clone(), cursor, limit: limits::BULK_STEP }
}

fn act(bulk: &Bulk, execution_id: ExecutionId) -> Command {
    let reason = bulk.reason.clone();
    match bulk.action {
        BulkAction::Cancel => {
            let source = CancelSource::OperatorOverride;
            Cancel { execution_id, reason, source, fence: None }.into()
        }
        BulkAction::Replay => Replay { execution_id, descendants: false }.into(),
        BulkAction::Delete => Delete { execution_id }.into(),
        BulkAction::Hold => Hold { execution_id, detail: reason }.into(),
        BulkAction::Release => Release { execution_id }.into(),
    }
}

/// Counts those, and shows the first of them.
fn add(found: &mut Preview, ids: impl IntoIterator<Item = ExecutionId>) {
    for id in ids {
        found.matched += 1;
        if found.sample.len() < SAMPLE {
            found.sample.push(id);
        }
    }
}
