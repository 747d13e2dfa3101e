//! Until something has ended.

use std::time::{Duration, Instant};

use ff_core::error::Code;
use ff_core::limits;
use serde_json::Value;

use crate::client::{Client, Refused, Request};

/// States in which an execution or a flow has ended.
const ENDED: [&str; 5] = ["completed", "failed", "cancelled", "expired", "skipped"];

pub(crate) fn has_ended(state: &Value) -> bool {
    state.as_str().is_some_and(|state| ENDED.contains(&state))
}

/// How long somebody is willing to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience(Option<Instant>);

impl Patience {
    pub(crate) fn new(timeout_ms: Option<u64>) -> Self {
        Self(timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms)))
    }

    /// How long the next request may wait, or that the time is over.
    pub(crate) fn next_ms(self) -> Result<u64, Refused> {
        let Some(until) = self.0 else { return Ok(limits::CLAIM_WAIT_MS) };
        match u64::try_from(until.saturating_duration_since(Instant::now()).as_millis()) {
            Ok(0) => Err(Refused::new(Code::Timeout, "it has not ended in time; it goes on")),
            left => Ok(left.unwrap_or(u64::MAX).min(limits::CLAIM_WAIT_MS)),
        }
    }
}

/// Asks until the field `state` of the reply is that of an end: the last reply.
pub(crate) async fn until_ended(
    client: &Client,
    request: &Request,
    state: &str,
    patience: Patience,
) -> anyhow::Result<Value> {
    loop {
        let asked = request.clone().wait_ms(patience.next_ms()?);
        let reply = client.ask(asked).await?;
        if has_ended(&reply[state]) {
            return Ok(reply);
        }
    }
}
