//! Until something has ended.

use std::time::{Duration, Instant};

use ff_core::error::Code;
use ff_core::limits;
use serde_json::Value;

use crate::client::{Answer, Client, REST, Refused, Request, TRIES};

/// States in which an execution or a flow has ended.
const ENDED: [&str; 5] = ["completed", "failed", "cancelled", "expired", "skipped"];

pub(crate) fn has_ended(state: &Value) -> bool {
    state.as_str().is_some_and(|state| ENDED.contains(&state))
}

/// How long somebody is willing to wait, and for what.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    until: Option<Instant>,
    /// The field that names what is waited for, and its id.
    what: (&'static str, String),
}

impl Patience {
    pub(crate) fn new(timeout_ms: Option<u64>, field: &'static str, id: &str) -> Self {
        let until = timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        Self { until, what: (field, id.to_owned()) }
    }

    /// How long the next request may wait, or that the time is over.
    fn next_ms(&self) -> Result<u64, Refused> {
        let Some(until) = self.until else { return Ok(limits::CLAIM_WAIT_MS) };
        match u64::try_from(until.saturating_duration_since(Instant::now()).as_millis()) {
            Ok(0) => {
                Err(self.named(Refused::new(Code::Timeout, "it has not ended in time; it goes on")))
            }
            left => Ok(left.unwrap_or(u64::MAX).min(limits::CLAIM_WAIT_MS)),
        }
    }

    /// A failure, with what was waited for: it goes on, and somebody may want to come back to it.
    fn named(&self, refused: Refused) -> Refused {
        refused.with(self.what.0, &self.what.1)
    }

    /// Asks until there is an answer: a server that is away may come back, before the time is over or, without
    /// one, before as many tries as who follows a stream makes.
    pub(crate) async fn send(&self, client: &Client, request: &Request) -> anyhow::Result<Answer> {
        let mut left = TRIES;
        loop {
            let refused = match client.send(request.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error.downcast::<Refused>()?,
            };
            let is_over = self.until.map_or(left == 0, |until| Instant::now() >= until);
            if client.is_here() || !refused.may_pass() || is_over {
                return Err(self.named(refused).into());
            }
            left = left.saturating_sub(1);
            let rest = self.until.map(|until| until.saturating_duration_since(Instant::now()));
            tokio::time::sleep(rest.unwrap_or(REST).min(REST)).await;
        }
    }

    /// Asks until the field `state` of the reply is that of an end: the last reply.
    pub(crate) async fn until_ended(
        &self,
        client: &Client,
        request: &Request,
        state: &str,
    ) -> anyhow::Result<Value> {
        loop {
            let asked = request.clone().wait_ms(self.next_ms()?);
            let reply = self.send(client, &asked).await?.json()?;
            if has_ended(&reply[state]) {
                return Ok(reply);
            }
        }
    }
}
