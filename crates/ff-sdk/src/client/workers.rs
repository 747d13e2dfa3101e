//! Workers, as operators see them.

use ff_core::error::{Code, Refusal};
use ff_core::limits;
use ff_core::operation::{DrainWorker, MarkWorkerDead, Settled, WorkerGone};
use ff_core::read::{
    DescribeWorker, LeasesOf, ListExpiredLeases, ListWorkers, ListedLease, Page, WorkerSnapshot,
};
use ff_engine::acts;

use super::Client;
use crate::config::parse;
use crate::error::SdkError;
use crate::patience::within;

impl Client {
    /// Live workers of the client's namespace, in the order of registration.
    pub async fn list_workers(
        &self,
        cursor: Option<String>,
    ) -> Result<Page<WorkerSnapshot>, SdkError> {
        let namespace = self.namespace.clone();
        self.ask(ListWorkers { namespace, within: None, cursor, limit: limits::PAGE }).await
    }

    /// One worker, by the name of its process. `worker_not_found` when it is none, or dead.
    pub async fn describe_worker(
        &self,
        worker_instance_id: &str,
    ) -> Result<WorkerSnapshot, SdkError> {
        let (namespace, instance) = (self.namespace.clone(), worker_instance_id);
        let worker_instance_id = parse("worker_instance_id", instance)?;
        let found = self.ask(DescribeWorker { namespace, worker_instance_id }).await?;
        let missing = || {
            let detail = format!("no worker {instance}");
            Refusal::at(Code::WorkerNotFound, "worker_instance_id", detail)
        };
        Ok(*found.ok_or_else(missing)?)
    }

    /// The worker gets no more tasks; those that it runs may end.
    pub async fn drain_worker(&self, worker_instance_id: &str) -> Result<Settled, SdkError> {
        let worker_instance_id = parse("worker_instance_id", worker_instance_id)?;
        let namespace = self.namespace.clone();
        self.insist(DrainWorker { namespace, worker_instance_id }).await
    }

    /// The worker is known to be dead: what it ran is claimable by others at once. True if it was
    /// registered.
    pub async fn mark_worker_dead(
        &self,
        worker_instance_id: &str,
        reason: &str,
    ) -> Result<bool, SdkError> {
        let mark = MarkWorkerDead {
            namespace: self.namespace.clone(),
            worker_instance_id: parse("worker_instance_id", worker_instance_id)?,
            reason: reason.to_owned(),
        };
        let marked = acts::mark_dead(&**self.backend(), mark);
        let gone = within("mark_worker_dead", marked).await?;
        Ok(matches!(gone, WorkerGone::Gone(_)))
    }

    /// Leases that are held in the client's namespace: of one worker process, or all. Over a store
    /// only: no route tells of them.
    pub async fn list_leases(
        &self,
        worker_instance_id: Option<&str>,
        cursor: Option<String>,
    ) -> Result<Page<ListedLease>, SdkError> {
        let instance = worker_instance_id.map(|id| parse("worker_instance_id", id)).transpose()?;
        let (namespace, worker_instance_id) = (self.namespace.clone(), instance);
        self.ask(LeasesOf { namespace, worker_instance_id, cursor, limit: limits::PAGE }).await
    }

    /// Leases that have run out and that no timer has handled yet.
    pub async fn list_expired_leases(
        &self,
        cursor: Option<String>,
    ) -> Result<Page<ListedLease>, SdkError> {
        let namespace = self.namespace.clone();
        self.ask(ListExpiredLeases { namespace, cursor, limit: limits::PAGE }).await
    }
}
