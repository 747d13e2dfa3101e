//! Acts: what takes several steps, each of them safe alone. Whoever stops in between leaves the rest
//! to others, and doing it twice does it once.

mod audit;
mod budget;
mod bulk;
mod errand;
mod heartbeat;
mod leave;
mod ledgers;
mod namespaces;
mod settle;
mod slots;

pub use audit::audit;
pub use budget::{admit, enforce};
pub use bulk::{carry_on, create as create_bulk, preview};
pub use errand::carry_out;
pub use ff_core::act::{Beat, Cancellation, Heartbeat, News, Preview, Stopped, StoppedBy};
pub use heartbeat::heartbeat;
pub use leave::{deregister, mark_dead, take_leases};
pub use ledgers::LedgerCheck;
pub use settle::settle;
pub use slots::SlotCheck;
