//! What a server says of itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether the server can serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok` or `unavailable`.
    pub status: String,
    /// Why it cannot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    pub version: String,
    pub api: String,
}

/// Which store stands behind the server, and what it can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Capabilities {
    pub backend: String,
    pub version: String,
    /// What an acknowledgement means.
    pub durability: String,
    pub partitions: Partitions,
    pub supports: Supports,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Partitions {
    pub flow: u16,
    pub budget: u16,
    pub quota: u16,
}

/// What the store keeps of the promises that stores differ in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Supports {
    pub executions: bool,
    pub flows: bool,
    pub suspension: bool,
    pub streams: bool,
    pub events: bool,
    pub budgets: bool,
    pub quotas: bool,
    /// Several processes on one store.
    pub many_processes: bool,
    /// Priority over all partitions of a lane, to the last execution.
    pub exact_priority: bool,
}
