//! Whose turn it is among the lanes of a worker, from one claim to the next.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ff_core::id::{LaneId, Namespace, WorkerInstanceId};
use ff_core::operation::{Claim, Task};
use ff_core::recent::Recent;
use ff_core::rota;

/// Workers of one generation that are remembered. Who is forgotten begins anew.
const REMEMBERED: usize = 10_000;

type Worker = (Namespace, WorkerInstanceId);

/// Credits by worker and lane. Callers over HTTP do not carry them along; without them a lane of
/// low weight would never be first.
pub(crate) struct Rotas(Mutex<Recent<Worker, HashMap<LaneId, i64>>>);

impl Default for Rotas {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(REMEMBERED)))
    }
}

impl Rotas {
    /// Puts the credits of the claims before into this one.
    pub(crate) fn lend(&self, claim: &mut Claim) {
        let worker = (claim.namespace.clone(), claim.worker_instance_id.clone());
        let credits = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&worker);
        let Some(credits) = credits else { return };
        for share in &mut claim.lanes {
            share.credit = credits.get(&share.lane).copied().unwrap_or(0);
        }
    }

    /// Charges the lanes that tasks came from.
    pub(crate) fn charge(&self, claim: &Claim, tasks: &[Task]) {
        if claim.lanes.len() < 2 || tasks.is_empty() {
            return;
        }
        let shares = rota::charged(&claim.lanes, claim.order, tasks).into_iter();
        let credits = shares.map(|share| (share.lane, share.credit)).collect();
        let worker = (claim.namespace.clone(), claim.worker_instance_id.clone());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keep(worker, credits);
    }
}
