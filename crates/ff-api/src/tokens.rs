//! Capabilities as they are sent.

use ff_core::capability::Capabilities;
use ff_core::error::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

/// A list of tokens, or whatever stands in its place: that is refused in the words of capabilities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(Value);

impl Tokens {
    pub fn read(&self) -> Result<Capabilities, Refusal> {
        Capabilities::from_json(&self.0)
    }
}

impl Default for Tokens {
    fn default() -> Self {
        Self(Value::Array(Vec::new()))
    }
}

impl From<&Capabilities> for Tokens {
    fn from(capabilities: &Capabilities) -> Self {
        Self(capabilities.tokens().map(Value::from).collect())
    }
}

impl ToSchema for Tokens {}

impl PartialSchema for Tokens {
    fn schema() -> RefOr<Schema> {
        Vec::<String>::schema()
    }
}
