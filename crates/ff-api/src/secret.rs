//! The keys that sign waitpoint tokens.

use ff_core::error::{Code, Refusal};
use ff_core::id::Kid;
use ff_core::limits;
use ff_core::operation::Rotated;
use ff_core::read;
use ff_core::token::KidInfo;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use crate::time::{Time, some};

/// Makes another key the one that signs. Never written out again: it holds a secret.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateSecret {
    #[schema(value_type = Kid)]
    pub new_kid: String,
    /// 32 to 128 bytes, two hex digits each.
    pub new_secret_hex: String,
    /// How long the key before is still accepted; 24 hours when absent.
    #[serde(default)]
    #[schema(value_type = Option<u64>)]
    pub grace_ms: Option<Number>,
}

impl RotateSecret {
    /// The grace that it names.
    pub fn grace_ms(&self) -> Result<Option<u64>, Refusal> {
        let Some(number) = &self.grace_ms else { return Ok(None) };
        number.as_u64().map(Some).ok_or_else(|| {
            let detail = format!("grace_ms is {number}, allowed is 0 to {}", limits::GRACE_MAX_MS);
            Refusal::at(Code::InvalidGraceMs, "grace_ms", detail)
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretRotated {
    pub new_kid: Kid,
    /// False when it was so already.
    pub rotated: bool,
    /// Always empty: the keyring is one record.
    pub failed: Vec<String>,
}

/// The keys, without their secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Kids {
    pub current_kid: Kid,
    pub kids: Vec<AcceptedKid>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceptedKid {
    pub kid: Kid,
    /// Null of the one that signs.
    pub accepted_until: Option<Time>,
}

impl From<read::Kids> for Kids {
    fn from(found: read::Kids) -> Self {
        let kids = found.kids.into_iter();
        let kids = kids
            .map(|info| AcceptedKid { kid: info.kid, accepted_until: some(info.accepted_until) });
        Self { current_kid: found.current_kid, kids: kids.collect() }
    }
}

impl From<Kids> for read::Kids {
    fn from(shown: Kids) -> Self {
        let info = |AcceptedKid { kid, accepted_until }| KidInfo {
            kid,
            accepted_until: accepted_until.map(Into::into),
        };
        Self { current_kid: shown.current_kid, kids: shown.kids.into_iter().map(info).collect() }
    }
}

impl From<SecretRotated> for Rotated {
    fn from(rotated: SecretRotated) -> Self {
        Self { current_kid: rotated.new_kid, rotated: rotated.rotated }
    }
}
