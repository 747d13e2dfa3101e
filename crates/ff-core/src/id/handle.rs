//! A handle addresses one lease in one opaque text. It is an address, not a proof: the fence in it
//! decides.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::{AttemptId, ExecutionId, LaneId, LeaseFence, LeaseId, WorkerInstanceId};
use crate::error::{Code, Refusal};

/// How the lease came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandleKind {
    Fresh,
    Resumed,
    Reclaimed,
    /// The lease that a suspend ended.
    Suspended,
}

/// All that a worker needs to name its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handle {
    /// Which kind of store made it: `sqlite`, `valkey`, `postgres`.
    pub store: String,
    pub kind: HandleKind,
    pub execution_id: ExecutionId,
    pub attempt_index: u32,
    pub attempt_id: AttemptId,
    pub lease_id: LeaseId,
    pub lease_epoch: u64,
    pub ttl_ms: u64,
    pub lane: LaneId,
    pub worker_instance_id: WorkerInstanceId,
}

const PREFIX: &str = "ffh1.";
const BYTES_MAX: usize = 1024;

impl Handle {
    pub fn fence(&self) -> LeaseFence {
        LeaseFence {
            lease_id: self.lease_id,
            lease_epoch: self.lease_epoch,
            attempt_id: self.attempt_id,
        }
    }

    /// The opaque text form.
    pub fn encode(&self) -> String {
        let bytes = postcard::to_stdvec(self).unwrap_or_default();
        format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Reads a handle that `store` must have made.
    pub fn decode(text: &str, store: &str) -> Result<Self, Refusal> {
        let malformed = || Refusal::invalid("handle", "handle is malformed");
        let body = text.strip_prefix(PREFIX).ok_or_else(malformed)?;
        if body.len() > BYTES_MAX {
            return Err(malformed());
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(body).map_err(|_| malformed())?;
        let (handle, rest): (Self, _) =
            postcard::take_from_bytes(&bytes).map_err(|_| malformed())?;
        if !rest.is_empty() {
            return Err(malformed());
        }
        if handle.store == store {
            Ok(handle)
        } else {
            Err(Refusal::at(
                Code::HandleFromOtherBackend,
                "handle",
                format!("handle was made by a {} store, this is {store}", handle.store),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> Handle {
        let lease_id = LeaseId::mint();
        Handle {
            store: "sqlite".into(),
            kind: HandleKind::Fresh,
            execution_id: ExecutionId::new(7, uuid::Uuid::now_v7()),
            attempt_index: 2,
            attempt_id: lease_id.into(),
            lease_id,
            lease_epoch: 3,
            ttl_ms: 30_000,
            lane: LaneId::new("mail").unwrap(),
            worker_instance_id: WorkerInstanceId::new("w-1").unwrap(),
        }
    }

    #[test]
    fn round_trips() {
        let handle = handle();
        assert_eq!(Handle::decode(&handle.encode(), "sqlite"), Ok(handle));
    }

    #[test]
    fn other_store_and_garbage_are_refused() {
        let text = handle().encode();
        let code = |text: &str, store| Handle::decode(text, store).unwrap_err().code;
        assert_eq!(code(&text, "valkey"), Code::HandleFromOtherBackend);
        for bad in
            ["", "ffh1.", "ffh1.!!!", "ffh9.AAAA", &text[..text.len() - 4], &format!("{text}AAAA")]
        {
            assert_eq!(code(bad, "sqlite"), Code::InvalidInput, "{bad}");
        }
    }
}
