//! Workers: registered, alive, drained, gone.

use ff_api::worker::{Heartbeat as HeartbeatForm, News as NewsForm, Reason, Register, Registered};
use ff_core::act::{Beat, HearNews};
use ff_core::error::{Code, EngineError};
use ff_core::id::{Namespace, WorkerInstanceId};
use ff_core::operation::{
    DeregisterWorker, DrainWorker, LostWorker, MarkWorkerDead, RegisterWorker, Settled, WorkerGone,
    WorkerRegistered,
};

use super::Asked;
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of, path};

pub(crate) fn register(_: &Link, op: RegisterWorker) -> Asked<WorkerRegistered> {
    let namespace = op.namespace.clone();
    let request = Request::post(path(&["workers"])?, &Register::from(op));
    Ok(Exchange::plain::<Registered>(request.namespace(Some(&namespace))))
}

fn about(
    namespace: &Namespace,
    instance: &WorkerInstanceId,
    part: &str,
    request: impl FnOnce(String) -> Request,
) -> Result<Request, EngineError> {
    Ok(request(of("workers", instance, part)?).namespace(Some(namespace)))
}

pub(crate) fn drain(_: &Link, op: DrainWorker) -> Asked<Settled> {
    let DrainWorker { namespace, worker_instance_id, reason } = op;
    let post = |path| Request::post(path, &Reason { reason });
    let request = about(&namespace, &worker_instance_id, "drain", post)?;
    Ok(Exchange::settled(request))
}

/// What the worker held is claimable when the server answers: there is nothing left to follow up.
fn gone(namespace: Namespace, worker_instance_id: WorkerInstanceId) -> WorkerGone {
    WorkerGone::Gone(LostWorker { namespace, worker_instance_id, losses: Vec::new() })
}

pub(crate) fn leave(_: &Link, op: DeregisterWorker) -> Asked<WorkerGone> {
    let DeregisterWorker { namespace, worker_instance_id } = op;
    let request = about(&namespace, &worker_instance_id, "", Request::delete)?;
    Ok(Exchange::answer(request, move |answer| {
        Ok(match answer.is_replayed() {
            false => gone(namespace, worker_instance_id),
            true => WorkerGone::NotRegistered,
        })
    }))
}

pub(crate) fn mark_dead(_: &Link, op: MarkWorkerDead) -> Asked<WorkerGone> {
    let MarkWorkerDead { namespace, worker_instance_id, reason } = op;
    let post = |path| Request::post(path, &Reason { reason });
    let request = about(&namespace, &worker_instance_id, "mark-dead", post)?;
    let gone = Exchange::answer(request, move |_| Ok(gone(namespace, worker_instance_id)));
    Ok(gone.or(Code::WorkerNotFound, || WorkerGone::NotRegistered))
}

pub(crate) fn heartbeat(act: HearNews) -> Asked<Beat> {
    let HearNews { heartbeat, wait } = act;
    let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let (namespace, instance) = (heartbeat.namespace.clone(), heartbeat.worker_instance_id.clone());
    let form = HeartbeatForm::from(heartbeat);
    let post = |path| Request::post(path, &form).wait_ms(ms);
    let request = about(&namespace, &instance, "heartbeat", post)?;
    let news = Exchange::form(request, |form: NewsForm, _| Ok(Beat::Refreshed(form.into())));
    Ok(news.or(Code::WorkerNotFound, || Beat::NotRegistered))
}
