//! API keys: made, listed, taken away.

use std::fmt;

use ff_core::id::{KeyId, LaneId, Namespace};
use ff_core::state::{Access, ApiKey, Scope};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::object::Invalid;
use crate::problem::FieldError;
use crate::time::Time;

/// A new key. What is absent is as with the key that makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<Namespace>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Vec<LaneId>>,
    /// From this instant on it is refused; never when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Key {
    pub key_id: KeyId,
    pub name: String,
    pub scopes: Vec<String>,
    /// Null: all of them.
    pub namespaces: Option<Vec<Namespace>>,
    /// Null: all of them.
    pub lanes: Option<Vec<LaneId>>,
    pub created_at: Time,
    pub expires_at: Option<Time>,
}

/// A key as it is shown once, to whoever made it.
#[derive(Serialize, ToSchema)]
pub struct CreatedKey {
    /// The whole key, `ffk_<key_id>_<secret>`. Nobody can tell it again.
    pub key: String,
    pub key_id: KeyId,
    pub name: String,
    pub scopes: Vec<String>,
    /// Null: all of them.
    pub namespaces: Option<Vec<Namespace>>,
    /// Null: all of them.
    pub lanes: Option<Vec<LaneId>>,
    pub expires_at: Option<Time>,
}

impl fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedKey").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// The names of scopes, in their order.
fn names(scopes: &[Scope]) -> Vec<String> {
    scopes.iter().map(|scope| scope.as_str().to_owned()).collect()
}

impl CreateKey {
    /// What the new key may do, made by one that may do what `creator` says.
    pub fn access(&self, creator: &Access) -> Result<Access, Invalid> {
        let scopes = match &self.scopes {
            Some(names) => scopes(names)?,
            None => creator.scopes.clone(),
        };
        Ok(Access {
            scopes,
            namespaces: self.namespaces.clone().or_else(|| creator.namespaces.clone()),
            lanes: self.lanes.clone().or_else(|| creator.lanes.clone()),
        })
    }
}

fn scopes(names: &[String]) -> Result<Vec<Scope>, Invalid> {
    let unknown = names.iter().position(|name| Scope::parse(name).is_none());
    if let Some(at) = unknown {
        let known: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        let message = format!("{:?} is none of {}", names[at], known.join(", "));
        let code = ff_core::error::Code::InvalidInput;
        return Err(Invalid(vec![FieldError::new(format!("/scopes/{at}"), code, message)]));
    }
    let mut scopes: Vec<Scope> = names.iter().filter_map(|name| Scope::parse(name)).collect();
    scopes.sort_unstable();
    scopes.dedup();
    Ok(scopes)
}

impl CreatedKey {
    /// `key` is its whole text.
    pub fn new(made: &ff_core::operation::CreateKey, key: String) -> Self {
        Self {
            key,
            key_id: made.key_id.clone(),
            name: made.name.clone(),
            scopes: names(&made.access.scopes),
            namespaces: made.access.namespaces.clone(),
            lanes: made.access.lanes.clone(),
            expires_at: made.expires_at.map(Into::into),
        }
    }
}

impl From<ApiKey> for Key {
    fn from(key: ApiKey) -> Self {
        Self {
            key_id: key.key_id,
            name: key.name,
            scopes: names(&key.access.scopes),
            namespaces: key.access.namespaces,
            lanes: key.access.lanes,
            created_at: key.created_at.into(),
            expires_at: key.expires_at.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_sorted_and_unknown_ones_pointed_at() {
        let form = |names: &[&str]| CreateKey {
            name: "k".to_owned(),
            scopes: Some(names.iter().map(|name| (*name).to_owned()).collect()),
            namespaces: None,
            lanes: None,
            expires_at: None,
        };
        let access = form(&["admin", "executions:read", "admin"]).access(&Access::all());
        let expected = vec![Scope::ExecutionsRead, Scope::Admin];
        assert_eq!(access.map(|access| access.scopes), Ok(expected));
        let wrong = form(&["admin", "root"]).access(&Access::all()).unwrap_err();
        assert_eq!(wrong.0[0].pointer, "/scopes/1");
    }

    #[test]
    fn a_new_key_is_not_printed_by_accident() {
        let made = ff_core::operation::CreateKey {
            key_id: KeyId::new("abcdefgh").unwrap(),
            name: "k".to_owned(),
            secret: ff_core::state::SecretHash([0; 32]),
            access: Access::all(),
            expires_at: None,
        };
        let created = CreatedKey::new(&made, "ffk_abcdefgh_0123".to_owned());
        assert!(!format!("{created:?}").contains("0123"));
    }
}
