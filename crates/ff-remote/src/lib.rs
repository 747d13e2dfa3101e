//! FlowFabric over HTTP: a server, as the backend that programs know.
//!
//! [`Remote`] is a [`ff_core::backend::Backend`] whose store stands behind a server. What works on a
//! store in the process works over it with the same operations, questions, refusals and codes:
//!
//! - [`Remote::connect`] and [`Options`]: where the server is, and the key that is shown to it.
//! - Every operation and question that has a public route is one request; a batch of submits or of
//!   renewals is one as well. Acts of several steps ([`ff_core::act`]) are carried out over there.
//! - What a server does by itself (timers, errands, repairs) is refused with `route_not_found`:
//!   [`no_route`] tells of which operations and questions that holds, and why.
//! - A request that got no answer is `outcome_unknown` if it may have changed something; sending the
//!   same operation again is safe.
//!
//! [`http`] is the client beneath it, shared with the command line.
//!
//! ```no_run
//! use ff_core::backend::BackendExt as _;
//! use ff_core::id::{ExecutionId, Kind, LaneId};
//! use ff_core::operation::Submit;
//! use ff_core::backend::Upkeep as _;
//! use ff_remote::{Options, Remote};
//!
//! # async fn submit() -> Result<(), Box<dyn std::error::Error>> {
//! let remote = Remote::connect("http://127.0.0.1:7171", Options::default()).await?;
//! let id = ExecutionId::mint(&remote.settings().partitions);
//! let submit = Submit::new(id, LaneId::new("emails")?, Kind::new("send")?);
//! let submitted = remote.call(submit).await?;
//! # let _ = submitted;
//! # Ok(())
//! # }
//! ```

mod acts;
mod apply;
mod command;
mod connect;
mod exchange;
mod follow;
pub mod http;
mod known;
mod link;
pub mod no_route;
mod operations;
mod options;
mod query;
mod questions;
mod remote;
mod upkeep;

pub use connect::ConnectError;
pub use options::Options;
pub use remote::Remote;
