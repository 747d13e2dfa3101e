//! Who calls, and what of the store is there for them.

use std::sync::{Arc, LazyLock};

use ff_core::error::{Code, Refusal};
use ff_core::id::{KeyId, LaneId, Namespace};
use ff_core::state::{Access, Scope};

static EVERYTHING: LazyLock<Arc<Access>> = LazyLock::new(|| Arc::new(Access::all()));

/// Somebody who may be served. Guards take it, so that no look at the store goes past it.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) who: Who,
    access: Arc<Access>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// There is no key at all: whoever is on this machine.
    Everybody,
    /// Shows the token of a waitpoint in place of a key.
    TokenBearer,
    /// Shows the token of the configuration.
    ApiToken,
    Key {
        id: KeyId,
        name: Arc<str>,
    },
}

fn forbidden(detail: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
    Refusal::new(Code::Forbidden, detail)
}

impl Caller {
    pub(crate) fn everybody() -> Self {
        Self { who: Who::Everybody, access: Arc::clone(&EVERYTHING) }
    }

    pub(crate) fn api_token() -> Self {
        Self { who: Who::ApiToken, access: Arc::clone(&EVERYTHING) }
    }

    pub(crate) fn token_bearer() -> Self {
        let scopes = vec![Scope::SignalsSend];
        let access = Access { scopes, namespaces: None, lanes: None };
        Self { who: Who::TokenBearer, access: Arc::new(access) }
    }

    pub(crate) fn key(id: KeyId, name: &str, access: Arc<Access>) -> Self {
        Self { who: Who::Key { id, name: name.into() }, access }
    }

    /// What it may do.
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// How entries of the audit log call it.
    pub(crate) fn label(&self) -> &str {
        match &self.who {
            Who::Everybody => "nobody",
            Who::TokenBearer => "token",
            Who::ApiToken => "api_token",
            Who::Key { id, .. } => id.as_str(),
        }
    }

    /// The name of its key; empty without one.
    pub(crate) fn name(&self) -> &str {
        match &self.who {
            Who::Everybody | Who::TokenBearer => "",
            Who::ApiToken => "api_token",
            Who::Key { name, .. } => name,
        }
    }

    /// Refuses what its key has no scope for.
    pub(crate) fn need(&self, scope: Scope) -> Result<(), Refusal> {
        if self.access.allows(scope) {
            return Ok(());
        }
        Err(forbidden(format!("this needs the scope {}", scope.as_str())))
    }

    /// The namespace that it names, or else its own.
    pub(crate) fn enter(&self, named: Option<Namespace>) -> Result<Namespace, Refusal> {
        if let Some(named) = named {
            return match self.access.enters(&named) {
                true => Ok(named),
                false => Err(forbidden(format!("the key is not for the namespace {named}"))),
            };
        }
        match self.access.namespaces.as_deref() {
            Some([only]) => Ok(only.clone()),
            _ if self.access.enters(&Namespace::default()) => Ok(Namespace::default()),
            _ => Err(forbidden("the key is for several namespaces; name one")),
        }
    }

    /// The lanes that it is restricted to.
    pub(crate) fn lanes(&self) -> Option<&[LaneId]> {
        self.access.lanes.as_deref()
    }

    pub(crate) fn serves(&self, lane: &LaneId) -> bool {
        self.access.serves(lane)
    }

    /// Refuses a lane that somebody names.
    pub(crate) fn check_lane(&self, lane: &LaneId) -> Result<(), Refusal> {
        if self.serves(lane) {
            return Ok(());
        }
        Err(forbidden(format!("the key is not for the lane {lane}")))
    }

    /// The lanes to look at, an empty list being all: those that are asked for, or else its own.
    pub(crate) fn lanes_among(&self, asked: Vec<LaneId>) -> Result<Vec<LaneId>, Refusal> {
        asked.iter().try_for_each(|lane| self.check_lane(lane))?;
        match self.lanes() {
            Some(own) if asked.is_empty() => Ok(own.to_vec()),
            _ => Ok(asked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(namespaces: Option<&[&str]>, lanes: Option<&[&str]>) -> Caller {
        let named = |all: &[&str]| all.iter().map(|name| Namespace::new(name).unwrap()).collect();
        let on = |all: &[&str]| all.iter().map(|name| LaneId::new(name).unwrap()).collect();
        let (namespaces, lanes) = (namespaces.map(named), lanes.map(on));
        let access = Access { scopes: vec![Scope::ExecutionsRead], namespaces, lanes };
        Caller { who: Who::ApiToken, access: Arc::new(access) }
    }

    #[test]
    fn the_namespace_is_the_named_one_or_the_keys() {
        let entered = |namespaces: Option<&[&str]>, named: Option<&str>| {
            let named = named.map(|name| Namespace::new(name).unwrap());
            caller(namespaces, None).enter(named).map(|found| found.to_string()).ok()
        };
        for (namespaces, named, expected) in [
            (None, None, Some("default")),
            (None, Some("a"), Some("a")),
            (Some(&["a"][..]), None, Some("a")),
            (Some(&["a"]), Some("a"), Some("a")),
            (Some(&["a"]), Some("default"), None),
            (Some(&["a", "b"]), None, None),
            (Some(&["a", "b"]), Some("b"), Some("b")),
            (Some(&["a", "default"]), None, Some("default")),
        ] {
            assert_eq!(entered(namespaces, named).as_deref(), expected, "{namespaces:?} {named:?}");
        }
    }

    #[test]
    fn lists_stay_within_the_keys_lanes() {
        let lanes = |all: &[&str]| all.iter().map(|name| LaneId::new(name).unwrap()).collect();
        let limited = caller(None, Some(&["x", "y"]));
        assert_eq!(limited.lanes_among(Vec::new()).unwrap(), lanes(&["x", "y"]) as Vec<LaneId>);
        assert_eq!(limited.lanes_among(lanes(&["y"])).unwrap(), lanes(&["y"]) as Vec<LaneId>);
        let refused = limited.lanes_among(lanes(&["y", "z"])).unwrap_err();
        assert_eq!(refused.code, Code::Forbidden);
        assert_eq!(caller(None, None).lanes_among(Vec::new()).unwrap(), []);
        assert_eq!(limited.need(Scope::Admin).unwrap_err().code, Code::Forbidden);
    }
}
