//! Any JSON value, kept as the exact text that was sent.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType};
use utoipa::{PartialSchema, ToSchema};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(pub Box<RawValue>);

impl Json {
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// JSON that this process made itself.
    pub fn from_value(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Self)
    }
}

impl ToSchema for Json {}

impl PartialSchema for Json {
    fn schema() -> RefOr<Schema> {
        let any = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
        RefOr::T(any.description(Some("Any JSON value")).build().into())
    }
}
