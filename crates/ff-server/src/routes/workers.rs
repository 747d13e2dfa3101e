//! Workers: registered, alive, drained, gone.

use axum::response::Response;
use ff_api::again::Again;
use ff_api::lease::{RenewItem, RenewedItem};
use ff_api::list::{Counted, Page};
use ff_api::problem::Problem;
use ff_api::worker::{
    Cancellation, Heartbeat, LeaseNews, News, Reason, Register, Registered, Worker,
};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::WorkerInstanceId;
use ff_core::limits;
use ff_core::operation::{
    DeregisterWorker, DrainWorker, MarkWorkerDead, Renew, Renewed, WorkerGone, WorkerRegistered,
};
use ff_core::read::{DescribeWorker, ListWorkers, WorkerSnapshot};
use ff_engine::acts::{self, Beat};
use futures_util::stream::{self, StreamExt as _};

use super::manage::Nothing;
use crate::call::Call;
use crate::failure::Failed;
use crate::route::Route;
use crate::route::Verb::{Delete, Get, Post};
use crate::{lists, reply};
use ff_core::state::Scope::{ExecutionsRead, WorkersClaim};

/// Room for a thousand leases.
pub(super) const LEASES_BYTES: usize = 1 << 20;

/// Leases of one request that are looked up at a time.
const LOOKS_AT_ONCE: usize = 64;

pub(super) const ROUTES: &[Route] = &[
    Route::new(Post, "/v1/workers", WorkersClaim, "Register a worker instance", |call| {
        Box::pin(register(call))
    })
    .takes::<Register>()
    .answers::<Registered>(201),
    Route::new(Get, "/v1/workers", ExecutionsRead, "List worker instances", |call| {
        Box::pin(list(call))
    })
    .asks::<Counted>()
    .answers::<Page<Worker>>(200),
    Route::new(
        Get,
        "/v1/workers/{worker_instance_id}",
        ExecutionsRead,
        "Read a worker instance",
        |call| Box::pin(get(call)),
    )
    .answers::<Worker>(200),
    Route::new(
        Post,
        "/v1/workers/{worker_instance_id}/heartbeat",
        WorkersClaim,
        "Say that a worker lives, renew its leases, hear what is new",
        |call| Box::pin(heartbeat(call)),
    )
    .takes::<Heartbeat>()
    .up_to(LEASES_BYTES)
    .waits_in_body(limits::HEARTBEAT_WAIT_MS)
    .answers::<News>(200),
    Route::new(
        Post,
        "/v1/workers/{worker_instance_id}/drain",
        WorkersClaim,
        "Give a worker no more tasks",
        |call| Box::pin(drain(call)),
    )
    .takes::<Reason>()
    .answers::<Again<Worker>>(200),
    Route::new(
        Post,
        "/v1/workers/{worker_instance_id}/mark-dead",
        WorkersClaim,
        "Tell that a worker is dead; its tasks are claimable again",
        |call| Box::pin(mark_dead(call)),
    )
    .takes::<Reason>()
    .answers::<Worker>(200),
    Route::new(
        Delete,
        "/v1/workers/{worker_instance_id}",
        WorkersClaim,
        "Deregister a worker instance",
        |call| Box::pin(deregister(call)),
    )
    .takes::<Nothing>()
    .answers_nothing(),
];

pub(super) fn instance(call: &Call) -> Result<WorkerInstanceId, Failed> {
    call.parsed("worker_instance_id")
}

fn worker_not_found() -> EngineError {
    Refusal::new(Code::WorkerNotFound, "no such worker instance is registered").into()
}

async fn register(mut call: Call) -> Result<Response, Failed> {
    let form: Register = call.body()?;
    form.lanes.iter().try_for_each(|lane| call.caller.check_lane(lane))?;
    let operation = form.operation(call.namespace.clone())?;
    let ttl_ms = operation.ttl_ms;
    let (status, word, next_expiry) = match call.act(operation).await? {
        WorkerRegistered::Registered { next_expiry } => (201, "registered", next_expiry),
        WorkerRegistered::Refreshed { next_expiry } => (200, "refreshed", next_expiry),
    };
    let next_expiry_at = next_expiry.into();
    reply::json(status, &Registered { status: word.to_owned(), ttl_ms, next_expiry_at })
}

async fn list(call: Call) -> Result<Response, Failed> {
    let paging: Counted = call.query()?;
    let namespace = call.namespace.clone();
    let within = call.caller.lanes().map(<[_]>::to_vec);
    let question = |cursor, limit| ListWorkers {
        namespace: namespace.clone(),
        within: within.clone(),
        cursor,
        limit,
    };
    lists::page::<Worker, _, _>(&call, paging, question).await
}

/// What is registered of a worker instance, whatever its lanes; not what it runs.
pub(super) async fn known(
    call: &Call,
    worker_instance_id: WorkerInstanceId,
) -> Result<Option<Box<WorkerSnapshot>>, EngineError> {
    describe(call, worker_instance_id, false).await
}

async fn describe(
    call: &Call,
    worker_instance_id: WorkerInstanceId,
    counted: bool,
) -> Result<Option<Box<WorkerSnapshot>>, EngineError> {
    let namespace = call.namespace.clone();
    call.ask(DescribeWorker { namespace, worker_instance_id, counted }).await
}

/// Whether a worker is there for the caller: it serves no lane that the key is not for.
fn is_seen(call: &Call, worker: &WorkerSnapshot) -> bool {
    worker.lanes.iter().all(|lane| call.caller.serves(lane))
}

async fn row(call: &Call) -> Result<Worker, Failed> {
    let found = describe(call, instance(call)?, true).await?;
    let found = found.filter(|worker| is_seen(call, worker));
    Ok(Worker::from(*found.ok_or_else(worker_not_found)?))
}

/// Refuses a worker of lanes that the caller's key is not for. A key without lanes needs no look.
async fn check_lanes(call: &Call) -> Result<(), Failed> {
    if call.caller.lanes().is_none() {
        return Ok(());
    }
    match known(call, instance(call)?).await? {
        Some(worker) if !is_seen(call, &worker) => Err(worker_not_found().into()),
        _ => Ok(()),
    }
}

async fn get(call: Call) -> Result<Response, Failed> {
    reply::ok(&row(&call).await?)
}

async fn drain(mut call: Call) -> Result<Response, Failed> {
    let Reason { reason } = call.body()?;
    check_lanes(&call).await?;
    let (namespace, worker_instance_id) = (call.namespace.clone(), instance(&call)?);
    let settled = call.act(DrainWorker { namespace, worker_instance_id, reason }).await?;
    reply::settled(row(&call).await?, settled)
}

async fn mark_dead(mut call: Call) -> Result<Response, Failed> {
    let Reason { reason } = call.body()?;
    let worker = row(&call).await?;
    let (namespace, worker_instance_id) = (call.namespace.clone(), instance(&call)?);
    let mark = MarkWorkerDead { namespace, worker_instance_id, reason };
    match acts::mark_dead(call.backend(), mark).await? {
        WorkerGone::Gone(_) => {
            reply::ok(&Worker { status: "dead".to_owned(), running: 0, ..worker })
        }
        WorkerGone::NotRegistered => Err(worker_not_found().into()),
    }
}

async fn deregister(mut call: Call) -> Result<Response, Failed> {
    let Nothing {} = call.body()?;
    check_lanes(&call).await?;
    let (namespace, worker_instance_id) = (call.namespace.clone(), instance(&call)?);
    let leave = DeregisterWorker { namespace, worker_instance_id };
    match acts::deregister(call.backend(), leave).await? {
        WorkerGone::Gone(_) => Ok(reply::nothing()),
        WorkerGone::NotRegistered => Ok(reply::marked(reply::nothing())),
    }
}

async fn heartbeat(mut call: Call) -> Result<Response, Failed> {
    let form: Heartbeat = call.body()?;
    check_lanes(&call).await?;
    let (passed, told) = renewals(&call, &form.leases).await;
    let heartbeat = acts::Heartbeat {
        namespace: call.namespace.clone(),
        worker_instance_id: instance(&call)?,
        boot_id: form.boot_id,
        leases: passed,
        after: form.after,
    };
    let news = match beat(&call, &heartbeat).await? {
        Beat::Refreshed(news) => news,
        Beat::NotRegistered => return Err(worker_not_found().into()),
    };
    let mut renewed = heartbeat.leases.iter().zip(&news.leases);
    let leases = told.into_iter().filter_map(|told| match told {
        Some(told) => Some(told),
        None => renewed.next().map(|(lease, result)| outcome(&call, lease, result)),
    });
    let leases = leases.enumerate().map(|(number, item)| item.placed("leases", number));
    let leases = leases.map(|RenewedItem { execution_id, expires_at, problem }| LeaseNews {
        execution_id,
        expires_at,
        problem,
    });
    reply::ok(&News {
        next_expiry_at: news.next_expiry.into(),
        leases: leases.collect(),
        cancellations: news.cancellations.into_iter().map(cancellation).collect(),
        paused_lanes: news.paused_lanes,
        drain: news.drain,
        stopped: news.stopped.into_iter().map(Into::into).collect(),
        cursor: news.cursor,
    })
}

/// Waits for news, but not beyond the wish to stop: then it is told what there is.
async fn beat(call: &Call, heartbeat: &acts::Heartbeat) -> Result<Beat, EngineError> {
    let mut shutdown = call.app.shutdown.clone();
    let waiting = acts::heartbeat(call.backend(), heartbeat, call.wait);
    match shutdown.or(waiting).await {
        Some(beat) => beat,
        None => acts::heartbeat(call.backend(), heartbeat, std::time::Duration::ZERO).await,
    }
}

fn cancellation(cancellation: acts::Cancellation) -> Cancellation {
    let acts::Cancellation { execution_id, lease_id, reason } = cancellation;
    Cancellation { execution_id, lease_id, reason }
}

/// Those of these leases that the caller may renew, and for each of all why not. They are looked up side
/// by side: those that a store answers for do not wait for those that it does not.
pub(super) async fn renewals(
    call: &Call,
    items: &[RenewItem],
) -> (Vec<Renew>, Vec<Option<RenewedItem>>) {
    let looks: Vec<_> = items.iter().map(|item| renewal(call, item)).collect();
    let looked: Vec<_> = stream::iter(looks).buffered(LOOKS_AT_ONCE).collect().await;
    let (mut passed, mut told) = (Vec::new(), Vec::new());
    for (item, renewal) in items.iter().zip(looked) {
        told.push(renewal.as_ref().err().map(|problem| refused(item, problem.clone())));
        passed.extend(renewal);
    }
    (passed, told)
}

/// A lease to renew, if the caller may.
async fn renewal(call: &Call, item: &RenewItem) -> Result<Renew, Problem> {
    let renew = item.operation(call.app.store()).map_err(|failure| *failure)?;
    let id = renew.execution_id;
    call.check(id).await.map_err(|error| call.problem(&error))?;
    Ok(renew)
}

fn refused(item: &RenewItem, problem: Problem) -> RenewedItem {
    RenewedItem { execution_id: item.execution_id, expires_at: None, problem: Some(problem) }
}

pub(super) fn outcome(
    call: &Call,
    lease: &Renew,
    result: &Result<Renewed, EngineError>,
) -> RenewedItem {
    let execution_id = lease.execution_id;
    let (expires_at, problem) = match result {
        Ok(renewed) => (Some(renewed.expires_at.into()), None),
        Err(error) => (None, Some(call.problem(error))),
    };
    RenewedItem { execution_id, expires_at, problem }
}
