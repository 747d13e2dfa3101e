//! Clients: whoever submits work, waits for it, and says what it waits for.
//!
//! A [`Submission`] says what is to be done, [`Client::submit`] makes an execution of it, and the
//! [`Execution`] that comes back is waited for, looked at and cancelled:
//!
//! ```
//! use std::time::Duration;
//! use ff_sdk::{Client, Submission};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("sqlite::memory:").await?;
//! let mail = Submission::new("mail").json("Ada")?.idempotency_key("order-17");
//! let mail = client.submit(mail).await?;
//! println!("{}", mail.explain().await?.summary);
//! mail.cancel("the order was withdrawn").await?;
//! assert!(!mail.wait(Duration::from_secs(10)).await?.is_success());
//! # Ok(())
//! # }
//! ```
//!
//! - Work that hangs together is a [`Flow`]: [`Client::submit_flow`] takes it whole and gives a
//!   [`FlowHandle`]. One that grows while it runs begins with [`Client::create_flow`].
//! - What an execution waits for is said by [`Client::deliver_signal`], or by an operator's
//!   [`Client::approve`] and [`Client::deny`].
//! - Output is followed by [`Client::tail`], events by [`Client::subscribe`]. Both go on over
//!   faults and can be taken up again at their cursor.
//! - Spending is bounded by budgets ([`NewBudget`]), rates and numbers by
//!   [quota policies](Client::create_quota_policy).
//! - Operators have [`Client::search`], [`Client::hold`], [`Client::replay`], lanes, workers and
//!   [bulk operations](NewBulk).
//!
//! A client does the same over a store and over a server; the few methods that no server serves
//! say so, and are refused there with `route_not_found`. A submit whose reply was lost is sent
//! again and counts once, also without an idempotency key. What has no method of its own is an
//! operation for [`Client::call`] or a question for [`Client::ask`].

mod budgets;
mod bulk;
mod config;
mod connect;
mod events;
mod execution;
mod finished;
mod flow;
mod flows;
mod graph;
mod lanes;
mod manage;
mod quotas;
mod reads;
mod signals;
mod streams;
mod submission;
mod submit;
mod wait;
mod workers;

pub use budgets::NewBudget;
pub use bulk::NewBulk;
pub use config::ClientConfig;
pub use connect::Client;
pub use events::{EventSubscription, Happened};
pub use execution::Execution;
pub use finished::{Finished, ResultError};
pub use flow::Flow;
pub use flows::{FinishedFlow, FlowHandle};
pub use streams::OutputTail;
pub use submission::Submission;
