//! Three kinds of failure, kept apart: a *refusal* is a legal negative answer, a *fault* is store
//! or network, a *bug* is ours. Codes are stable and the same in Rust, HTTP, CLI and metrics.

mod code;
mod engine;
mod refusal;

pub use code::{Class, Code};
pub use engine::EngineError;
pub use refusal::{Current, Refusal};
