//! Acts of several steps: one request each, and the server takes the steps.

use std::time::Duration;

use ff_api::execution::Explanation;
use ff_core::act::{Act, Acted, Acts, CancelWholeFlow, ExplainWhole, TakeUp};
use ff_core::backend::Pending;
use ff_core::error::{Code, EngineError};
use ff_core::limits;
use ff_core::operation::{Command, FlowCancelled, Operation as _, Reply};

use crate::command::exchange;
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of_execution};
use crate::operations::{Asked, flow, grant, limit, manage, worker};

impl Acts for Link {
    fn act(&self, act: Act) -> Pending<'_, Result<Acted, EngineError>> {
        Box::pin(async move {
            if let Act::CancelWholeFlow(act) = act {
                return self.cancel(act).await.map(Acted::CancelWholeFlow);
            }
            self.send(self.request(act)?).await
        })
    }
}

impl Link {
    fn request(&self, act: Act) -> Asked<Acted> {
        Ok(match act {
            Act::TakeUp(act) => self.take_up(act)?.map(Acted::TakeUp),
            Act::ClaimForWorker(act) => {
                act.check()?;
                grant::for_worker(act)?.map(Acted::ClaimForWorker)
            }
            Act::ReportToAll(act) => limit::report_to_all(self, act)?.map(Acted::ReportToAll),
            Act::ExplainWhole(act) => self.explain(&act)?.map(Acted::ExplainWhole),
            Act::SubmitFlow(act) => {
                act.check()?;
                flow::submit(self, act)?.map(Acted::SubmitFlow)
            }
            Act::CancelWholeFlow(CancelWholeFlow { cancel, wait }) => {
                flow::cancel_and_wait(self, cancel, wait)?.map(Acted::CancelWholeFlow)
            }
            Act::HearNews(act) => worker::heartbeat(act)?.map(Acted::HearNews),
            Act::DeregisterWorker(act) => worker::leave(self, act)?.map(Acted::DeregisterWorker),
            Act::MarkWorkerDead(act) => {
                act.check()?;
                worker::mark_dead(self, act)?.map(Acted::MarkWorkerDead)
            }
            Act::PreviewBulk(act) => manage::preview_bulk(act)?.map(Acted::PreviewBulk),
            Act::CreateBulk(act) => manage::create_bulk(act)?.map(Acted::CreateBulk),
        })
    }

    /// The routes of claims by name ask quota policies by themselves.
    fn take_up(&self, TakeUp(command): TakeUp) -> Asked<Reply> {
        command.check()?;
        match command {
            Command::ReclaimExecution(op) if op.max_reclaim_count.is_none() => {
                Ok(grant::use_reclaim(self, op)?.map(Reply::ReclaimExecution))
            }
            command => exchange(self, command),
        }
    }

    fn explain(&self, ExplainWhole { execution_id }: &ExplainWhole) -> Asked<Option<Explained>> {
        let namespace = self.known.of(execution_id.uuid());
        let request = Request::get(of_execution(*execution_id, "explain")?);
        let told = Exchange::plain::<Explanation>(request.namespace(namespace.as_ref()));
        Ok(told.or_none(Code::ExecutionNotFound))
    }

    /// A long wait has one length at the server; what the caller wants may be less.
    async fn cancel(&self, act: CancelWholeFlow) -> Result<FlowCancelled, EngineError> {
        let CancelWholeFlow { cancel, wait } = act;
        let cancelling = self.send(flow::cancel_and_wait(self, cancel, wait)?);
        if wait <= Duration::from_millis(limits::CLAIM_WAIT_MS) {
            return cancelling.await;
        }
        tokio::time::timeout(wait, cancelling).await.unwrap_or_else(|_| {
            let detail = "the cancel stands; its members are still being cancelled".to_owned();
            Err(EngineError::Timeout { detail })
        })
    }
}

type Explained = ff_core::read::Explanation;
