//! Operations as requests, group by group: path and body of each, and what its answer means.

pub(crate) mod execution;
pub(crate) mod flow;
pub(crate) mod grant;
pub(crate) mod limit;
pub(crate) mod manage;
pub(crate) mod output;
pub(crate) mod system;
pub(crate) mod wait;
pub(crate) mod worker;

use ff_core::error::EngineError;

use crate::exchange::Exchange;

/// A request, unless the operation names something that no path can hold.
pub(crate) type Asked<T> = Result<Exchange<T>, EngineError>;
