//! What a scheduler or an operator does that is neither a worker nor a submitter.

mod client;
mod over_http;

pub use client::FlowFabricAdminClient;
