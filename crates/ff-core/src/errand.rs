//! Errands: what steps mean for other homes, carried out.
//!
//! Whatever fails here stays owed where it was decided, and is told again by a tick.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::backend::Backend;
use crate::error::{Code, EngineError};
use crate::id::{BudgetId, ExecutionId, Namespace, QuotaPolicyId, WorkerInstanceId};
use crate::limits;
use crate::operation::{
    AdmissionVoided, AttachBudget, BudgetErrand, Command, ConfirmAdmission, Errand, HeldBy,
    NoteCancellations, ReleaseAdmission, Reply, SettleBudget, SettleSlots, SettleWaking, SlotEnd,
    Unblock, Unblocked, VoidAdmission,
};
use crate::state::{BlockingReason, BudgetScope, CancelNotice, LimitId, OwedSlot, SlotId};
use crate::{disown, routes, unblock};

/// Errands of the steps that this process has made: a store notes them, the next caller carries
/// them out.
#[derive(Debug, Default)]
pub struct Errands {
    any: AtomicBool,
    noted: Mutex<Vec<Errand>>,
}

impl Errands {
    /// Notes what steps that were written mean elsewhere: [`crate::machine::Changes::prompt_errands`] of each.
    pub fn note(&self, mut errands: Vec<Errand>) {
        if errands.is_empty() {
            return;
        }
        let Ok(mut noted) = self.noted.lock() else { return };
        if noted.len() < limits::ERRANDS_NOTED {
            noted.append(&mut errands);
            self.any.store(true, Ordering::Release);
        }
    }

    fn take(&self) -> Vec<Errand> {
        if !self.any.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        self.noted.lock().map(|mut noted| std::mem::take(&mut *noted)).unwrap_or_default()
    }
}

/// Carries out what steps of this process have left.
pub async fn carry_out_noted<B: Backend + ?Sized>(backend: &B) {
    loop {
        let errands = backend.errands().take();
        if errands.is_empty() {
            return;
        }
        // Of a crowd that was leased together, windows hear together.
        let entering: Vec<_> = errands.iter().flat_map(entering).collect();
        if !entering.is_empty() {
            backend.apply(entering).await;
        }
        let is_entering = |errand: &Errand| matches!(errand, Errand::Enter { .. });
        let others = errands.into_iter().filter(|errand| !is_entering(errand));
        for errand in Errand::together(others) {
            // What fails is told again by a tick.
            let _ = carry_out(backend, &errand).await;
        }
    }
}

/// Carries out one errand, except for those that take many steps. An error means that a part of it is
/// left.
pub async fn carry_out<B: Backend + ?Sized>(
    backend: &B,
    errand: &Errand,
) -> Result<(), EngineError> {
    match errand {
        Errand::GiveBack { execution_id, slots } => give_back(backend, *execution_id, slots).await,
        Errand::Enter { .. } => {
            backend.apply(entering(errand)).await.into_iter().try_for_each(settled)
        }
        Errand::LetGo { quota_policy_id, execution_ids } => {
            let_go(backend, *quota_policy_id, execution_ids).await
        }
        Errand::Ask { quota_policy_id, slots } => ask(backend, *quota_policy_id, slots).await,
        Errand::Tell { namespace, worker_instance_id, notices } => {
            tell(backend, namespace, worker_instance_id, notices).await
        }
        Errand::Attach { budget_id, namespace, scope } => {
            attach(backend, *budget_id, namespace, scope).await
        }
        Errand::Welcome { namespace, lanes, capabilities } => {
            routes::welcome(backend, namespace, lanes, capabilities).await.map(|_| ())
        }
        Errand::Lift { namespace, limits } => lift(backend, namespace, limits).await,
        Errand::Disown { namespace, lane, budget_ids, execution_ids } => {
            disown::disown(backend, (namespace, lane), budget_ids, execution_ids).await
        }
        Errand::Admit { .. }
        | Errand::Enforce { .. }
        | Errand::TakeLeases(_)
        | Errand::CarryOn { .. } => Ok(()),
    }
}

/// Tells windows of a lease that has begun.
fn entering(errand: &Errand) -> Vec<Command> {
    let Errand::Enter { execution_id, lease_epoch, quota_policy_ids } = errand else {
        return Vec::new();
    };
    let slot = SlotId { execution_id: *execution_id, lease_epoch: *lease_epoch };
    let enter = |&quota_policy_id| {
        ConfirmAdmission { quota_policy_id, slot, by: HeldBy::Lease, restore: None }.into()
    };
    quota_policy_ids.iter().map(enter).collect()
}

async fn tell<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
    worker_instance_id: &WorkerInstanceId,
    notices: &[CancelNotice],
) -> Result<(), EngineError> {
    let tell = |notices: &[CancelNotice]| {
        let (namespace, worker_instance_id) = (namespace.clone(), worker_instance_id.clone());
        NoteCancellations { namespace, worker_instance_id, notices: notices.to_vec() }.into()
    };
    let commands = notices.chunks(limits::CANCELLATIONS_KEPT).map(tell).collect();
    backend.apply(commands).await.into_iter().try_for_each(settled)
}

async fn attach<B: Backend + ?Sized>(
    backend: &B,
    budget_id: BudgetId,
    namespace: &Namespace,
    scope: &BudgetScope,
) -> Result<(), EngineError> {
    let (namespace, scope) = (namespace.clone(), scope.clone());
    let attach = AttachBudget { budget_id, namespace, scope };
    match backend.apply(vec![attach.into()]).await.pop() {
        Some(Err(error)) if error.refusal().is_none() => return Err(error),
        // Where it cannot be attached any more, it need not be.
        _ => {}
    }
    let settle = SettleBudget { budget_id, done: BudgetErrand::Attach };
    backend.apply(vec![settle.into()]).await.pop().map_or(Ok(()), settled)
}

/// Of each limit as much as a claim can take; what is beyond is left to the engine.
async fn lift<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
    lifted: &[LimitId],
) -> Result<(), EngineError> {
    for limit in lifted {
        unblock::let_go(backend, namespace, *limit, limits::CLAIM_TASKS, |_| false).await?;
    }
    Ok(())
}

async fn give_back<B: Backend + ?Sized>(
    backend: &B,
    execution_id: ExecutionId,
    owed: &[OwedSlot],
) -> Result<(), EngineError> {
    let releases = owed.iter().map(|owed| {
        let slot = SlotId { execution_id, lease_epoch: owed.lease_epoch };
        let why = owed.claimant.map_or(SlotEnd::LeaseOver, SlotEnd::Unused);
        ReleaseAdmission { quota_policy_id: owed.quota_policy_id, slot, why }
    });
    let replies = backend.apply(releases.map(Command::from).collect()).await;
    let mut failed = None;
    let mut slots = Vec::with_capacity(owed.len());
    for (owed, reply) in owed.iter().zip(replies) {
        match settled(reply) {
            Ok(()) => slots.push(*owed),
            Err(error) => failed = Some(error),
        }
    }
    if !slots.is_empty() {
        let reply = backend.apply(vec![SettleSlots { execution_id, slots }.into()]).await.pop();
        reply.map_or(Ok(()), settled)?;
    }
    failed.map_or(Ok(()), Err)
}

async fn let_go<B: Backend + ?Sized>(
    backend: &B,
    quota_policy_id: QuotaPolicyId,
    execution_ids: &[ExecutionId],
) -> Result<(), EngineError> {
    let expected = BlockingReason::WaitingForQuota;
    let unblocks = execution_ids.iter().map(|&execution_id| Unblock { execution_id, expected });
    let replies = backend.apply(unblocks.map(Command::from).collect()).await;
    let (mut idle, mut let_go) = (Vec::new(), Vec::new());
    for (id, reply) in execution_ids.iter().zip(replies) {
        match reply {
            Ok(Reply::Unblock(Unblocked { claimable: true })) => let_go.push(*id),
            Err(error) if error.refusal().is_none() && !error.is_bug() => return Err(error),
            // It is gone, is broken, was not waiting, or cannot be claimed for another reason.
            _ => idle.push(*id),
        }
    }
    // Whoever claims one asks the policy, which then knows, and goes on.
    if idle.is_empty() && let_go.len() < limits::QUOTA_WAKES as usize {
        return Ok(());
    }
    let settle = SettleWaking { quota_policy_id, execution_ids: idle, let_go };
    backend.apply(vec![settle.into()]).await.pop().map_or(Ok(()), settled)
}

async fn ask<B: Backend + ?Sized>(
    backend: &B,
    quota_policy_id: QuotaPolicyId,
    slots: &[SlotId],
) -> Result<(), EngineError> {
    let questions = slots.iter().map(|slot| VoidAdmission {
        execution_id: slot.execution_id,
        lease_epoch: slot.lease_epoch,
        quota_policy_id: Some(quota_policy_id),
    });
    let replies = backend.apply(questions.map(Command::from).collect()).await;
    let confirm = |slot, by| ConfirmAdmission { quota_policy_id, slot, by, restore: None }.into();
    let mut commands = Vec::with_capacity(slots.len());
    for (&slot, reply) in slots.iter().zip(replies) {
        commands.push(match reply {
            Ok(Reply::VoidAdmission(AdmissionVoided::Leased)) => confirm(slot, HeldBy::Lease),
            Ok(Reply::VoidAdmission(AdmissionVoided::Granted)) => confirm(slot, HeldBy::Grant),
            Ok(Reply::VoidAdmission(AdmissionVoided::Never)) => {
                ReleaseAdmission { quota_policy_id, slot, why: SlotEnd::NeverLeased }.into()
            }
            Err(error) if error.refusal().is_none() => return Err(error),
            _ => ReleaseAdmission { quota_policy_id, slot, why: SlotEnd::NoLease }.into(),
        });
    }
    backend.apply(commands).await.into_iter().try_for_each(settled)
}

/// What is gone needs no more.
fn settled(reply: Result<Reply, EngineError>) -> Result<(), EngineError> {
    let gone = [Code::QuotaPolicyNotFound, Code::BudgetNotFound, Code::ExecutionNotFound];
    match reply {
        Err(error) if gone.contains(&error.code()) => Ok(()),
        other => other.map(|_| ()),
    }
}
