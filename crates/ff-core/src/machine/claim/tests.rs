//! What a claim asks of its store.

use std::sync::Arc;

use uuid::Uuid;

use super::super::{Need, Overlay, Settings, apply};
use super::claim;
use crate::capability::Capabilities;
use crate::id::{DocumentId, ExecutionId, LaneId, Namespace, WorkerId, WorkerInstanceId};
use crate::operation::{Claim, RegisterWorker};
use crate::partition::PartitionConfig;
use crate::time::TimestampMs;

const NOW: TimestampMs = TimestampMs(1_000_000);

fn claim_of(lane: &LaneId) -> Claim {
    let worker_id = WorkerId::new("w").unwrap();
    Claim::new(worker_id, WorkerInstanceId::new("w-1").unwrap(), [lane.clone()])
}

/// Facts among which the worker of a claim is registered.
fn registered(claim: &Claim, lane: &LaneId) -> Overlay {
    let settings = Settings::new("test", PartitionConfig::default());
    let mut overlay = Overlay::new(Arc::new(settings));
    let worker = DocumentId::worker(&claim.namespace, &claim.worker_instance_id);
    overlay.supply_document(worker, None);
    let register = RegisterWorker {
        namespace: claim.namespace.clone(),
        worker_id: claim.worker_id.clone(),
        worker_instance_id: claim.worker_instance_id.clone(),
        boot_id: "boot".to_owned(),
        lanes: vec![lane.clone()],
        capabilities: Capabilities::default(),
        ttl_ms: 30_000,
        max_concurrent: 1,
    };
    let step = apply(&overlay, &register.into(), NOW).expect("nothing is lacking");
    overlay.absorb(&step.changes);
    for id in
        [DocumentId::namespace(&Namespace::default()), DocumentId::lane(&claim.namespace, lane)]
    {
        overlay.supply_document(id, None);
    }
    overlay
}

/// How often the store is asked, and for how many entries and executions, until a claim is through with a
/// queue of so many entries that are of no use.
fn asked_for(count: usize) -> (u32, usize, usize) {
    let lane = LaneId::new("work").unwrap();
    let claim_one = claim_of(&lane);
    let mut overlay = registered(&claim_one, &lane);
    let queue: Vec<_> =
        (0..count).map(|n| (n as i64, ExecutionId::new(0, Uuid::from_u128(n as u128)))).collect();
    let (mut rounds, mut entries, mut executions) = (0, 0, 0);
    loop {
        let lacking = match claim(&overlay, &claim_one, NOW) {
            Ok(step) => {
                assert_eq!(step.reply.unwrap().len(), 0);
                return (rounds, entries, executions);
            }
            Err(lacking) => lacking,
        };
        rounds += 1;
        for need in lacking.0 {
            match need {
                Need::Queue(view, most) => {
                    let front = queue[..count.min(most)].to_vec();
                    entries += front.len();
                    overlay.supply_queue(view, front, most > count);
                }
                Need::Execution(id) => {
                    executions += 1;
                    overlay.supply_execution(id, None);
                }
                Need::Payload(id) => overlay.supply_payload(id, None),
                other => panic!("it asks for {other:?}"),
            }
        }
    }
}

#[test]
fn a_crowd_of_no_use_is_passed_in_few_rounds() {
    for (count, rounds_most) in [(1, 6), (100, 20), (10_000, 35)] {
        let (rounds, entries, executions) = asked_for(count);
        assert!(rounds <= rounds_most, "{rounds} rounds behind {count}");
        assert!(entries <= 4 * count + 8, "{entries} entries of {count}");
        assert_eq!(executions, count, "each once");
    }
}
