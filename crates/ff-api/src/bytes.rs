//! Opaque bytes: base64 in JSON, or any JSON value kept as its exact text.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use ff_core::content::Content;
use ff_core::id::ContentType;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

use crate::json::Json;
use crate::object::Invalid;

/// Written with padding; read with or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes as base64.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Base64(pub Bytes);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64
            .decode(text)
            .map_err(|error| D::Error::custom(format_args!("the text is not base64: {error}")))?;
        Ok(Self(bytes.into()))
    }
}

impl ToSchema for Base64 {}

impl PartialSchema for Base64 {
    fn schema() -> RefOr<Schema> {
        let schema = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Byte)))
            .description(Some("Bytes as base64"));
        RefOr::T(schema.build().into())
    }
}

/// Puts a body together from the two forms it may come in; none when it comes in neither.
pub fn content(
    name: &str,
    b64: Option<Base64>,
    json: Option<Json>,
    content_type: Option<ContentType>,
) -> Result<Option<Content>, Invalid> {
    let content = match (b64, json) {
        (Some(_), Some(_)) => {
            let message = format!("give {name}_b64 or {name}_json, not both");
            return Err(Invalid::at(&format!("{name}_json"), message));
        }
        (Some(bytes), None) => Content::new(bytes.0),
        (None, Some(json)) => Content::json(Bytes::from(Box::<str>::from(json.0).into_string())),
        (None, None) => return Ok(None),
    };
    let content_type = content_type.unwrap_or(content.content_type);
    Ok(Some(Content { content_type, ..content }))
}
