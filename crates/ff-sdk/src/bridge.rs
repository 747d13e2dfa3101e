//! From a webhook to a waitpoint: what came from outside is checked, and delivered.
//!
//! A handler of a webhook gets an execution, a waitpoint and a token from the address that was
//! called, and a body. [`verify_and_deliver`] does the rest. The token decides: the store checks
//! its signature, its time and what it is for before anything is written.
//!
//! The other end is a task that [makes a waitpoint](crate::ClaimedTask::create_pending_waitpoint),
//! puts its token into the address that it gives away, and suspends:
//!
//! ```
//! # use ff_sdk::{Submission, testing::TestEngine};
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let engine = TestEngine::start().await;
//! # let task = engine.claimed(Submission::new("order")).await;
//! use ff_sdk::Suspension;
//!
//! let ticket = task.create_pending_waitpoint("payment", None).await?;
//! let (id, token) = (task.execution_id(), ticket.token.expose());
//! let callback = format!("https://shop.example/paid/{id}?token={token}");
//! # assert!(callback.len() > 40);
//! task.suspend_on(Suspension::signal("payment", "paid")?.using(&ticket)).await?;
//! # Ok(())
//! # }
//! ```

use ff_core::error::Code;
use ff_core::id::ExecutionId;
use ff_core::operation::WaitpointRef;

use crate::client::Client;
use crate::error::SdkError;
use crate::task::{Signal, SignalOutcome};

/// Why nothing was delivered. What a caller from outside should hear is 404, 401, or to come again.
///
/// ```
/// use ff_sdk::bridge::BridgeError;
///
/// fn status(error: &BridgeError) -> u16 {
///     match error {
///         BridgeError::UnknownWaitpoint => 404,
///         BridgeError::TokenMismatch => 401,
///         BridgeError::Backend(_) => 503,
///     }
/// }
/// assert_eq!(status(&BridgeError::TokenMismatch), 401);
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BridgeError {
    /// There is no such execution, or it has no such waitpoint (any more).
    #[error("no such waitpoint")]
    UnknownWaitpoint,
    /// The token is not the one of this waitpoint, or its time is over.
    #[error("the token is not that of the waitpoint")]
    TokenMismatch,
    /// All else: the store did not answer, or refused for another reason.
    #[error(transparent)]
    Backend(SdkError),
}

impl From<SdkError> for BridgeError {
    fn from(error: SdkError) -> Self {
        match error.code() {
            Some(Code::ExecutionNotFound | Code::WaitpointNotFound) => Self::UnknownWaitpoint,
            Some(
                Code::InvalidToken
                | Code::TokenExpired
                | Code::MissingToken
                | Code::WaitpointNotTokenBound,
            ) => Self::TokenMismatch,
            _ => Self::Backend(error),
        }
    }
}

/// Delivers a signal whose token came from outside. With an idempotency key (the id that the
/// sender gives its message) a message that is sent twice counts once.
///
/// ```
/// use ff_core::id::WaitpointKey;
/// use ff_core::token::WaitpointToken;
/// use ff_sdk::bridge::{BridgeError, verify_and_deliver};
/// use ff_sdk::{Client, Signal};
/// # use ff_sdk::testing::TestEngine;
/// # use ff_sdk::{Submission, SuspendOutcome, Suspension, WorkerConfig};
///
/// /// Called by the web server with what the request holds.
/// async fn paid(client: &Client, execution: &str, token: &str, body: Vec<u8>) -> u16 {
///     let Ok(execution) = execution.parse() else { return 404 };
///     let Ok(token) = WaitpointToken::parse(token) else { return 401 };
///     let key: WaitpointKey = "payment".parse().expect("the name of a waitpoint");
///     let signal = Signal::new("paid", token).payload(body);
///     match verify_and_deliver(client, execution, key, signal).await {
///         Ok(_) => 202,
///         Err(BridgeError::UnknownWaitpoint) => 404,
///         Err(BridgeError::TokenMismatch) => 401,
///         Err(BridgeError::Backend(_)) => 503,
///     }
/// }
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let client = engine.client();
/// # let order = client.submit(Submission::new("order")).await?;
/// # let worker = engine.worker(WorkerConfig::new("w")).await;
/// # let task = worker.claim_next().await?.expect("a task");
/// # let SuspendOutcome::Suspended(at) =
/// #     task.suspend_on(Suspension::signal("payment", "paid")?).await? else { panic!() };
/// # let token = at.waitpoint().expect("a waitpoint").token.expose().to_owned();
/// # let id = order.id().to_string();
/// # let other = if token.ends_with('0') { "1" } else { "0" };
/// # let forged = format!("{}{other}", &token[..token.len() - 1]);
/// assert_eq!(paid(&client, &id, &forged, vec![]).await, 401);
/// assert_eq!(paid(&client, &id, &token, b"42 EUR".to_vec()).await, 202);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// See [`BridgeError`].
pub async fn verify_and_deliver(
    client: &Client,
    execution_id: ExecutionId,
    waitpoint: impl Into<WaitpointRef>,
    signal: Signal,
) -> Result<SignalOutcome, BridgeError> {
    Ok(client.deliver_signal(execution_id, waitpoint, signal).await?)
}
