//! A worker hangs with the repair of a database in its hands. The operator takes the work away from
//! it and chooses who goes on; whatever the old worker still says is refused.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use flowfabric::core::id::ExecutionId;
use flowfabric::core::operation::{ClaimGrant, IssueReclaimGrant, IssuedReclaimGrant};
use flowfabric::{
    ClaimedTask, Client, FlowFabricAdminClient, FlowFabricWorker, ReclaimOutcome, Submission,
    WorkerConfig,
};
use flowfabric_examples::{PATIENCE, StoreArgs};

const LANE: &str = "incidents";

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    let night = worker(&client, "night-shift", &["restart"]).await?;
    let day = worker(&client, "day-shift", &["restart", "failover"]).await?;

    let execution = client.submit(Submission::new("repair").lane(LANE)).await?;
    let id = execution.id();
    let stuck = claim(&night).await?;
    println!("{} repairs under lease {}", night.worker_instance_id(), stuck.lease_epoch());

    // It does not answer any more. Everything that it held is free when this returns.
    client.mark_worker_dead(night.worker_instance_id(), "does not answer").await?;
    stuck.cancelled().await;
    println!("{} is told to stop", night.worker_instance_id());

    let grant = choose(&client, id).await?;
    println!("why is it not running? {}", execution.explain().await?.cause.as_str());
    let ReclaimOutcome::Claimed(task) = day.claim_from_reclaim_grant(&grant).await? else {
        bail!("the grant was of no use");
    };
    println!("{} goes on under lease {}", day.worker_instance_id(), task.lease_epoch());

    // The night shift wakes up and believes that it is done.
    match stuck.complete(Some("restarted".into())).await {
        Ok(()) => bail!("two workers have repaired it"),
        Err(refused) => println!("{} is refused: {}", night.worker_instance_id(), refused.error),
    }
    task.complete(Some("failed over".into())).await?;
    println!("the repair {}", execution.wait(PATIENCE).await?);
    println!("result: {}", String::from_utf8_lossy(&execution.result_bytes().await?));

    day.shutdown(PATIENCE).await?;
    client.close().await?;
    Ok(())
}

async fn worker(client: &Client, name: &str, can: &[&str]) -> Result<FlowFabricWorker> {
    let config = WorkerConfig::new(name).lane(LANE);
    let config = can.iter().fold(config, |config, token| config.capability(*token));
    Ok(client.worker(config).await?)
}

/// A loop of claims by hand; most programs leave this to a `WorkerRuntime`.
async fn claim(worker: &FlowFabricWorker) -> Result<ClaimedTask> {
    let claimed = worker.claim(1, PATIENCE.min(worker.claim_wait())).await?;
    claimed.into_iter().next().context("there is something to repair")
}

/// Sets the execution aside for the worker that can do most; nobody else gets it meanwhile.
async fn choose(client: &Client, execution_id: ExecutionId) -> Result<ClaimGrant> {
    let workers = client.list_workers(None).await?.items;
    let here = workers.into_iter().filter(|it| it.lanes.iter().any(|lane| lane.as_str() == LANE));
    let best = here.max_by_key(|worker| worker.capabilities.tokens().count());
    let best = best.context("no worker is left")?;
    println!("{} is chosen: it can {}", best.worker_id, best.capabilities.as_csv());
    let admin = FlowFabricAdminClient::connect_with(Arc::clone(client.backend()));
    let issue = IssueReclaimGrant {
        execution_id,
        worker_id: best.worker_id,
        worker_instance_id: Some(best.worker_instance_id),
        lane: client.describe(execution_id).await?.lane,
        capabilities: best.capabilities,
        grant_ttl_ms: 10_000,
    };
    match admin.issue_reclaim_grant(issue).await? {
        IssuedReclaimGrant::Granted(grant) => Ok(grant),
        other => bail!("there is nothing to take up: {other:?}"),
    }
}
