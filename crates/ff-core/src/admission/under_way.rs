//! An execution that is on its way through its limits.

use super::Prize;
use crate::error::{Code, EngineError, Refusal};
use crate::id::QuotaPolicyId;
use crate::operation::{
    Admission, Applicant, BlockForAdmission, CheckAdmission, Claim, ClaimAdmitted, Command,
    GrantAdmitted, ReleaseAdmission, Reply, SlotEnd,
};
use crate::state::{AdmissionReason, LimitId, SlotId};

pub(super) struct UnderWay {
    pub(super) applicant: Applicant,
    /// Quota policies that have not been asked.
    pub(super) left: std::vec::IntoIter<QuotaPolicyId>,
    pub(super) slots: Vec<QuotaPolicyId>,
    /// Those of them that keep a place in their window.
    pub(super) places: Vec<QuotaPolicyId>,
}

impl UnderWay {
    /// `held`: policies that have given a slot before.
    pub(super) fn new(applicant: Applicant, held: &[QuotaPolicyId]) -> Self {
        let mut left = applicant.standing.quota_policy_ids.clone();
        left.retain(|id| !held.contains(id));
        Self { applicant, left: left.into_iter(), slots: Vec::new(), places: Vec::new() }
    }

    /// What a policy answered: a slot, or why there is none.
    pub(super) fn note(
        &mut self,
        id: QuotaPolicyId,
        reply: Result<Reply, EngineError>,
    ) -> Result<Option<Refusal>, EngineError> {
        let refusal = |code, what, ms| {
            // It is shown for as long as the execution waits: how long that is stands beside it.
            let detail = format!("quota policy {id}: {what}");
            Ok(Some(Refusal::new(code, detail).for_ms(ms)))
        };
        match reply {
            Ok(Reply::CheckAdmission(
                Admission::Admitted { keeps_place } | Admission::AlreadyAdmitted { keeps_place },
            )) => {
                self.slots.push(id);
                self.places.extend(keeps_place.then_some(id));
                Ok(None)
            }
            Ok(Reply::CheckAdmission(Admission::RateExceeded { retry_after_ms })) => {
                refusal(Code::RateLimitExceeded, "the window is full", retry_after_ms)
            }
            Ok(Reply::CheckAdmission(Admission::ConcurrencyExceeded { retry_after_ms })) => {
                refusal(Code::ConcurrencyLimitExceeded, "all slots are taken", retry_after_ms)
            }
            // It is gone, and holds nobody up.
            Err(error) if error.code() == Code::QuotaPolicyNotFound => Ok(None),
            Ok(other) => Err(EngineError::bug(format!("admission: got {other:?}"))),
            Err(error) => Err(error),
        }
    }

    fn slot(&self) -> SlotId {
        let Applicant { execution_id, lease_epoch, .. } = self.applicant;
        SlotId { execution_id, lease_epoch }
    }

    pub(super) fn check(&self, quota_policy_id: QuotaPolicyId) -> CheckAdmission {
        CheckAdmission {
            quota_policy_id,
            slot: self.slot(),
            claimant: self.applicant.lease_id,
            opens_attempt: self.applicant.opens_attempt,
            score: self.applicant.score,
        }
    }

    pub(super) fn releases(&self) -> impl Iterator<Item = Command> {
        let (slot, why) = (self.slot(), SlotEnd::Unused(self.applicant.lease_id));
        let release = move |quota_policy_id| ReleaseAdmission { quota_policy_id, slot, why }.into();
        self.slots.clone().into_iter().map(release)
    }

    pub(super) fn block(&self, reason: AdmissionReason, by: LimitId, detail: String) -> Command {
        BlockForAdmission {
            execution_id: self.applicant.execution_id,
            reason: reason.blocking_reason(),
            detail,
            by: Some(by),
        }
        .into()
    }

    pub(super) fn take(&self, claim: &Claim, prize: Prize) -> Command {
        match prize {
            Prize::Lease => self.lease(claim).into(),
            Prize::Grant { ttl_ms } => GrantAdmitted {
                execution_id: self.applicant.execution_id,
                lease_epoch: self.applicant.lease_epoch,
                worker_id: claim.worker_id.clone(),
                worker_instance_id: claim.worker_instance_id.clone(),
                grant_ttl_ms: ttl_ms,
                slots: self.slots.clone(),
                places: self.places.clone(),
                claimant: self.applicant.lease_id,
            }
            .into(),
        }
    }

    fn lease(&self, claim: &Claim) -> ClaimAdmitted {
        ClaimAdmitted {
            execution_id: self.applicant.execution_id,
            lease_epoch: self.applicant.lease_epoch,
            lease_id: self.applicant.lease_id,
            worker_id: claim.worker_id.clone(),
            worker_instance_id: claim.worker_instance_id.clone(),
            lease_ttl_ms: claim.lease_ttl_ms,
            slots: self.slots.clone(),
            places: self.places.clone(),
        }
    }
}
