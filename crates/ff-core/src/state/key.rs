//! API keys: who may do what, where.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::listing::digest_name;
use super::{List, Listing};
use crate::id::{KeyId, LaneId, Namespace};
use crate::time::TimestampMs;

/// The record of a key. Its secret is known to its owner alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub key_id: KeyId,
    /// Keys stand beside namespaces, not in one: the default one, for the list of all.
    pub namespace: Namespace,
    pub name: String,
    pub secret: SecretHash,
    pub access: Access,
    pub created_at: TimestampMs,
    /// From this instant on it is refused.
    pub expires_at: Option<TimestampMs>,
}

/// SHA-256 of a secret.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Whether it is of this secret, told in a time that says nothing about either.
    pub fn is_of(&self, secret: &[u8]) -> bool {
        self.0.ct_eq(&Self::of(secret).0).into()
    }
}

/// What a key may do, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Access {
    /// In the order of [`Scope::ALL`], each once.
    pub scopes: Vec<Scope>,
    /// None: in all of them, also those that are made later.
    pub namespaces: Option<Vec<Namespace>>,
    /// None: on all of them.
    pub lanes: Option<Vec<LaneId>>,
}

macro_rules! scopes {
    ($($scope:ident $text:literal)+) => {
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum Scope { $(#[serde(rename = $text)] $scope,)+ }

        impl Scope {
            pub const ALL: &[Self] = &[$(Self::$scope,)+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$scope => $text,)+ }
            }
        }
    };
}

scopes! {
    ExecutionsRead "executions:read"
    ExecutionsWrite "executions:write"
    PayloadsRead "payloads:read"
    SignalsSend "signals:send"
    SignalsApprove "signals:approve"
    WorkersClaim "workers:claim"
    FlowsWrite "flows:write"
    BudgetsWrite "budgets:write"
    LanesWrite "lanes:write"
    EventsRead "events:read"
    MetricsRead "metrics:read"
    Admin "admin"
}

impl Scope {
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|scope| scope.as_str() == text)
    }
}

impl Access {
    /// Everything, everywhere.
    pub fn all() -> Self {
        Self { scopes: Scope::ALL.to_vec(), namespaces: None, lanes: None }
    }

    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    pub fn enters(&self, namespace: &Namespace) -> bool {
        self.namespaces.as_ref().is_none_or(|all| all.contains(namespace))
    }

    pub fn serves(&self, lane: &LaneId) -> bool {
        self.lanes.as_ref().is_none_or(|all| all.contains(lane))
    }

    /// Whether it is no more than another.
    pub fn is_within(&self, other: &Self) -> bool {
        let scopes = self.scopes.iter().all(|scope| other.allows(*scope));
        let namespaces = match &self.namespaces {
            None => other.namespaces.is_none(),
            Some(mine) => mine.iter().all(|namespace| other.enters(namespace)),
        };
        let lanes = match &self.lanes {
            None => other.lanes.is_none(),
            Some(mine) => mine.iter().all(|lane| other.serves(lane)),
        };
        scopes && namespaces && lanes
    }
}

impl ApiKey {
    pub fn is_over(&self, now: TimestampMs) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Newest first: the order of the list is that of negated time.
    pub(super) fn listing(&self) -> Listing<'_> {
        Listing {
            namespace: &self.namespace,
            list: List::Key,
            at: TimestampMs(-self.created_at.0),
            name: digest_name(&self.key_id),
        }
    }
}

/// Not worth guessing at, and still none of a log's business.
impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(scopes: &[Scope], namespaces: Option<&[&str]>, lanes: Option<&[&str]>) -> Access {
        let namespaces =
            namespaces.map(|all| all.iter().map(|name| Namespace::new(name).unwrap()).collect());
        let lanes = lanes.map(|all| all.iter().map(|name| LaneId::new(name).unwrap()).collect());
        Access { scopes: scopes.to_vec(), namespaces, lanes }
    }

    #[test]
    fn nobody_gives_more_than_they_have() {
        let read = [Scope::ExecutionsRead];
        let all = Access::all();
        let some = access(&read, Some(&["a", "b"]), Some(&["x"]));
        assert!(some.is_within(&all) && all.is_within(&all));
        assert!(!all.is_within(&some));
        assert!(access(&read, Some(&["a"]), Some(&["x"])).is_within(&some));
        assert!(access(&[], Some(&[]), Some(&[])).is_within(&some));
        for more in [
            access(&[Scope::Admin], Some(&["a"]), Some(&["x"])),
            access(&read, None, Some(&["x"])),
            access(&read, Some(&["c"]), Some(&["x"])),
            access(&read, Some(&["a"]), None),
            access(&read, Some(&["a"]), Some(&["y"])),
        ] {
            assert!(!more.is_within(&some), "{more:?}");
        }
    }

    #[test]
    fn a_secret_is_told_by_its_hash() {
        let hash = SecretHash::of(b"secret");
        assert!(hash.is_of(b"secret"));
        for other in [&b""[..], b"secre", b"secret ", b"Secret"] {
            assert!(!hash.is_of(other));
        }
        assert_eq!(format!("{hash:?}"), "SecretHash(..)");
    }

    #[test]
    fn scopes_have_one_name_each() {
        for scope in Scope::ALL {
            assert_eq!(Scope::parse(scope.as_str()), Some(*scope));
        }
        assert_eq!(Scope::parse("admin "), None);
    }
}
