//! Background work: what must happen without anybody asking.
//!
//! The engine uses nothing but the backend trait, keeps nothing of its own, and may run in any
//! number of processes: every step is idempotent. [`Engine`] runs the timers, so that leases
//! expire, delays end and deadlines hold when they are due, the trimmer, which removes what is past
//! its retention, and the route check, which tells what no worker can run. [`acts`] are what callers do in several steps.

pub mod acts;
mod brake;
mod engine;
mod errands;
mod options;
mod report;
mod routes;
mod service;
mod timers;
mod trimmer;

pub use engine::Engine;
pub use options::EngineOptions;
pub use report::Report;
pub use routes::{Checked, RouteCheck};
pub use service::Shutdown;
