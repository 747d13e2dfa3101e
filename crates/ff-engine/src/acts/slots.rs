//! Leases, and the slots of quota policies that they hold.
//!
//! A slot is taken before its lease is made and given back after it has ended. So a lease that lived
//! before and after its slot was not found has none, whatever else was under way.

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::id::{Namespace, QuotaPolicyId};
use ff_core::operation::{Command, ConfirmAdmission, Confirmed, HeldBy, Operation, Reconciled};
use ff_core::read::{Describe, LeasesOf, ListedLease};
use ff_core::state::SlotId;

use super::namespaces::Pages;

/// A walk over all leases.
#[derive(Debug, Default)]
pub struct SlotCheck {
    pages: Pages,
}

/// A slot that a lease must hold.
struct Held {
    lease: ListedLease,
    quota_policy_id: QuotaPolicyId,
}

impl SlotCheck {
    pub fn new(only: Option<Namespace>) -> Self {
        Self { pages: Pages::new(only) }
    }

    /// Looks at up to so many leases; with `repair` those that lack a slot get it again. The cursor of
    /// the answer says where it goes on: without one it begins again.
    pub async fn page(
        &mut self,
        backend: &dyn Backend,
        limit: u32,
        repair: bool,
    ) -> Result<Reconciled, EngineError> {
        let mut done = Reconciled::default();
        let Some((namespace, cursor)) = self.pages.next(backend).await? else { return Ok(done) };
        let leases =
            LeasesOf { namespace: namespace.clone(), worker_instance_id: None, cursor, limit };
        let page = backend.ask(leases).await?;
        done.found.checked = page.items.len() as u64;
        self.pages.passed(backend, namespace, page.next_cursor).await?;
        compare(backend, page.items, repair, &mut done).await?;
        done.next_cursor = self.pages.place();
        Ok(done)
    }
}

async fn compare(
    backend: &dyn Backend,
    leases: Vec<ListedLease>,
    repair: bool,
    done: &mut Reconciled,
) -> Result<(), EngineError> {
    let of_lease = |lease: ListedLease| {
        let slots = lease.slots.clone().into_iter();
        slots.map(move |quota_policy_id| Held { lease: lease.clone(), quota_policy_id })
    };
    let held: Vec<Held> = leases.into_iter().flat_map(of_lease).collect();
    let missing = missing(backend, held).await?;
    let asked = missing.iter().map(|it| Describe { execution_id: it.lease.execution_id });
    let records = backend.ask_all(asked.collect()).await;
    let mut restored: Vec<Command> = Vec::new();
    for (it, record) in missing.into_iter().zip(records) {
        // A lease that has ended meanwhile holds nothing.
        if record?.is_none_or(|record| record.lease_id != Some(it.lease.lease_id)) {
            continue;
        }
        let detail = format!("its lease holds no slot of quota policy {}", it.quota_policy_id);
        done.found.report("I19", Some(it.lease.execution_id), detail);
        restored.push(it.confirm(true).into());
    }
    if repair && !restored.is_empty() {
        for reply in backend.apply(restored).await {
            done.mended +=
                u32::from(reply.and_then(ConfirmAdmission::reply)? == Confirmed::Restored);
        }
    }
    Ok(())
}

/// Those whose policy knows no slot of them; one that is gone limits nobody.
async fn missing(backend: &dyn Backend, held: Vec<Held>) -> Result<Vec<Held>, EngineError> {
    if held.is_empty() {
        return Ok(held);
    }
    let replies = backend.apply(held.iter().map(|it| it.confirm(false).into()).collect()).await;
    let mut missing = Vec::new();
    for (it, reply) in held.into_iter().zip(replies) {
        match reply.and_then(ConfirmAdmission::reply) {
            Ok(Confirmed::NoSlot) => missing.push(it),
            Err(error) if error.refusal().is_none() => return Err(error),
            _ => {}
        }
    }
    Ok(missing)
}

impl Held {
    fn confirm(&self, restores: bool) -> ConfirmAdmission {
        let ListedLease { execution_id, lease_epoch, lease_id, .. } = self.lease;
        ConfirmAdmission {
            quota_policy_id: self.quota_policy_id,
            slot: SlotId { execution_id, lease_epoch },
            by: HeldBy::Lease,
            restore: restores.then_some(lease_id),
        }
    }
}
