//! All keys of a store as they were found, for whoever looks at every one of them.

use std::collections::BTreeSet;

use ff_core::error::EngineError;
use ff_core::id::Home;

use crate::measure::Pages;
use crate::reply;
use crate::store::Shared;

/// The keys in their order, so that those of a family stand together.
#[derive(Debug)]
pub(crate) struct Keyspace {
    prefix: String,
    keys: BTreeSet<String>,
}

impl Keyspace {
    /// One walk over the keys of every primary. Those that come or go meanwhile may be missing.
    pub(crate) async fn read(shared: &Shared) -> Result<Self, EngineError> {
        let prefix = format!("{}:", shared.keys.prefix);
        let (mut keys, pattern) = (BTreeSet::new(), format!("{prefix}*"));
        let mut pages = Pages::new(shared, &pattern);
        while let Some(page) = pages.next().await? {
            for key in page {
                keys.insert(reply::text(key)?);
            }
        }
        Ok(Self { prefix, keys })
    }

    /// The keys of a family, without the prefix of all.
    pub(crate) fn family<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let start = format!("{}{name}:", self.prefix);
        let from = self.keys.range(start.clone()..);
        from.take_while(move |key| key.starts_with(&start)).map(|key| &key[self.prefix.len()..])
    }

    /// The indexes that there are: home and name.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = (Home, &str)> {
        self.family("idx").filter_map(|key| parse_key(key, "idx:"))
    }
}

/// Home and rest of a key of a family.
pub(crate) fn parse_key<'a>(key: &'a str, family: &str) -> Option<(Home, &'a str)> {
    let key = key.strip_prefix(family)?;
    let (home, rest) = key.split_at_checked(key.find('}')? + 1)?;
    Some((home.parse().ok()?, rest.strip_prefix(':')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_family() {
        let keys =
            ["t1:ev:{fp:1}", "t1:exec:{fp:1}:a:core", "t1:idx:{fp:1}:timers", "t1:idx:{g}:ready"];
        let keys = keys.map(str::to_owned).into();
        let keyspace = Keyspace { prefix: "t1:".to_owned(), keys };
        assert_eq!(keyspace.family("exec").collect::<Vec<_>>(), ["exec:{fp:1}:a:core"]);
        assert_eq!(keyspace.family("ex").count(), 0);
        let indexes: Vec<_> = keyspace.indexes().collect();
        assert_eq!(indexes, [(Home::partition(1), "timers"), (Home::Global, "ready")]);
    }
}
