//! Walks over leases: partition by partition, inside one by id. So a lease that is renewed meanwhile
//! keeps its place.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Home, Namespace, WorkerInstanceId};
use ff_core::read::{Leaf, LeasePosition, LeaseWalk, ListedLease, Page};
use ff_core::state::Execution;
use ff_core::time::TimestampMs;

use crate::store::{Shared, join_all};
use crate::{read, reply, walk};

/// Partitions whose leases are asked for at once.
const PARTITIONS_AT_ONCE: usize = 16;

/// Records that are read at once.
const RECORDS_AT_ONCE: usize = 256;

/// A page of leases.
pub(crate) async fn page(
    shared: &Arc<Shared>,
    query: &(impl LeaseWalk + Sync),
) -> Result<Page<ListedLease>, EngineError> {
    let behind = query.behind()?.map(|behind| behind.execution_id);
    // A lease that ends while this is on its way is left to the next walk.
    let now = read::read_keys(shared, 0, Vec::new()).await?.0;
    let mut leaf = Leaf::new(query.limit());
    walk(shared, behind, query.ends_by(now), |execution, now| {
        let (lane, execution_id) = (execution.about.lane.clone(), execution.id);
        leaf.look(LeasePosition { lane, execution_id }, || query.see(execution, now))
    })
    .await?;
    Ok(query.page(leaf))
}

/// How many leases each instance of a namespace holds.
pub(crate) async fn running(
    shared: &Arc<Shared>,
    namespace: &Namespace,
) -> Result<HashMap<WorkerInstanceId, u32>, EngineError> {
    let mut running = HashMap::new();
    walk(shared, None, None, |execution, _| {
        let lease = execution.phase.lease().filter(|_| execution.about.namespace == *namespace);
        if let Some(lease) = lease {
            *running.entry(lease.worker_instance_id.clone()).or_default() += 1;
        }
        ControlFlow::Continue(())
    })
    .await?;
    Ok(running)
}

/// Shows active executions of all namespaces behind one, with the time at which they were read, until
/// `look` has seen enough. `ends_by`: only those whose leases end by then.
async fn walk(
    shared: &Arc<Shared>,
    behind: Option<ExecutionId>,
    ends_by: Option<TimestampMs>,
    mut look: impl FnMut(&Execution, TimestampMs) -> ControlFlow<()>,
) -> Result<(), EngineError> {
    let first = behind.map_or(0, |behind| behind.partition());
    let partitions: Vec<_> = (first..shared.settings.partitions.flow).collect();
    for some in partitions.chunks(PARTITIONS_AT_ONCE) {
        let asking = some.iter().map(|partition| ids(shared, *partition, ends_by));
        let mut leased = Vec::new();
        for ids in join_all(asking).await {
            leased.extend(ids?);
        }
        leased.retain(|id| behind.is_none_or(|behind| place(id) > place(&behind)));
        for part in leased.chunks(RECORDS_AT_ONCE) {
            let found = walk::load(shared, part.iter().map(|id| (*id).into()).collect()).await?;
            for id in part {
                let Some((execution, now)) =
                    found.get(&(*id).into()).and_then(walk::Found::execution)
                else {
                    continue;
                };
                if look(execution, now).is_break() {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// The order of the walk.
fn place(id: &ExecutionId) -> (u16, ExecutionId) {
    (id.partition(), *id)
}

/// What is leased in a partition, in order. All of it is read, since it stands there by the ends of
/// leases: 16 bytes for each that runs.
async fn ids(
    shared: &Shared,
    partition: u16,
    ends_by: Option<TimestampMs>,
) -> Result<Vec<ExecutionId>, EngineError> {
    let mut range = redis::cmd("ZRANGE");
    range.arg(shared.keys.index_of(&Home::partition(partition), "leases")).arg("-inf");
    match ends_by {
        Some(end) => range.arg(end.0),
        None => range.arg("+inf"),
    };
    range.arg("BYSCORE");
    let members = reply::array(shared.send(partition, &range).await?)?.into_iter();
    let ids = members.map(|member| reply::execution_id(partition, member));
    let mut ids: Vec<_> = ids.collect::<Result<_, _>>()?;
    ids.sort_unstable();
    Ok(ids)
}
