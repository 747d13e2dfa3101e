//! What can be seen of a FlowFabric process: metrics, in the text form that Prometheus reads, traces,
//! sent over OTLP, and reports of errors and panics.
//!
//! Three sources come together in [`Metrics`]: what is measured in passing (requests, calls of the
//! store by [`Metrics::around`]), what steps of this process have done ([`ff_core::tally`]) and what
//! the engine reports. Nothing here is written to a store, and nothing decides by it.

mod collect;
mod labels;
mod metered;
mod metrics;
pub mod reports;
mod traced;
pub mod traces;

pub use metrics::{MEDIA_TYPE, Metrics};
pub use traced::traced;
