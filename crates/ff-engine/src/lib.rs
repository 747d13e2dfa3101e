//! Background work: what must happen without anybody asking.
//!
//! The engine uses nothing but the backend trait, keeps nothing of its own, and may run in any
//! number of processes: every step is idempotent. [`Engine`] runs scanners: the timers, so that
//! leases expire, delays end and deadlines hold when they are due, what ticks tell of, the route
//! check, which tells what no worker can run, the trimmer, which removes what is past its retention,
//! and reconcilers, which compare records with what lists them.
//! [`SCANNERS`] names them all, [`Report`] tells how they fare. [`acts`] are what callers do in
//! several steps, [`Ends`] is how to wait for an execution or a flow to end.

pub mod acts;
mod brake;
mod ends;
mod engine;
mod errands;
mod options;
mod reconcile;
mod report;
mod routes;
mod scanner;
mod service;
mod spread;
mod strikes;
mod table;
mod timers;
mod trimmer;
mod unblock;

pub use ends::{Awaited, Ends};
pub use engine::Engine;
pub use options::EngineOptions;
pub use report::{DURATION_BOUNDS, EdgeCancel, Report, ScannerStatus};
pub use routes::{Checked, RouteCheck};
pub use scanner::{ScanResult, Scanner};
pub use service::Shutdown;
pub use spread::scan_cursor_seed;
pub use table::{Intervals, Known, SCANNERS, UnknownScanner};
pub use unblock::{LimitCheck, UnblockScanner};
