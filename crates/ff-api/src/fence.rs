//! What a worker shows with every write: three fields that belong together, or one handle.

use ff_core::error::{Code, Refusal};
use ff_core::id::{AttemptId, Authority, ExecutionId, Handle, LeaseFence, LeaseId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::object::{Invalid, Object};
use crate::problem::Failure;

/// Lease id, epoch and attempt id: all three, or one handle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fence {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<LeaseId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_epoch: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
}

/// A fence that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    pub fence: LeaseFence,
    /// Only a handle tells it.
    pub attempt_index: Option<u32>,
}

impl Fence {
    /// Takes its fields out of a request.
    pub fn take(object: &mut Object) -> Result<Self, Invalid> {
        Ok(Self {
            lease_id: object.take("lease_id")?,
            lease_epoch: object.take("lease_epoch")?,
            attempt_id: object.take("attempt_id")?,
            handle: object.take("handle")?,
        })
    }

    /// Reads what is shown for an execution of a store of this kind; none when nothing is.
    pub fn read(&self, id: ExecutionId, store: &str) -> Result<Option<Shown>, Failure> {
        let parts = LeaseFence::from_parts(self.lease_id, self.lease_epoch, self.attempt_id)?;
        let Some(handle) = &self.handle else {
            return Ok(parts.map(|fence| Shown { fence, attempt_index: None }));
        };
        if parts.is_some() {
            return Err(Invalid::at("handle", "give a handle or the three fields, not both").into());
        }
        let handle = Handle::decode(handle, store)?;
        if handle.execution_id != id {
            return Err(Invalid::at("handle", "the handle is of another execution").into());
        }
        Ok(Some(Shown { fence: handle.fence(), attempt_index: Some(handle.attempt_index) }))
    }

    /// The same for what cannot do without.
    pub fn required(&self, id: ExecutionId, store: &str) -> Result<LeaseFence, Failure> {
        let shown = self.read(id, store)?;
        shown.map(|shown| shown.fence).ok_or_else(|| {
            let detail = "this needs lease_id, lease_epoch and attempt_id, or a handle";
            Refusal::new(Code::FenceRequired, detail).into()
        })
    }

    /// On whose authority a call that ends a lease acts.
    pub fn authority(
        &self,
        id: ExecutionId,
        store: &str,
        source: Option<&str>,
    ) -> Result<Authority, Failure> {
        let by_operator = match source {
            None | Some("lease_holder") => false,
            Some("operator_override") => true,
            Some(_) => {
                let known = "source is operator_override or lease_holder";
                return Err(Invalid::at("source", known).into());
            }
        };
        let shown = self.read(id, store)?;
        Ok(Authority::from_parts(shown.map(|shown| shown.fence), by_operator)?)
    }
}

impl From<LeaseFence> for Fence {
    fn from(fence: LeaseFence) -> Self {
        Self {
            lease_id: Some(fence.lease_id),
            lease_epoch: Some(fence.lease_epoch),
            attempt_id: Some(fence.attempt_id),
            handle: None,
        }
    }
}

impl From<Authority> for Fence {
    fn from(authority: Authority) -> Self {
        match authority {
            Authority::Fence(fence) => fence.into(),
            Authority::Override => Self::default(),
        }
    }
}

/// What `source` says of a call on this authority; the holder of a lease need not say it.
pub fn source(authority: Authority) -> Option<String> {
    match authority {
        Authority::Fence(_) => None,
        Authority::Override => Some("operator_override".to_owned()),
    }
}
