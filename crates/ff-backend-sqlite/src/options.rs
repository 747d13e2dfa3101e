//! Where the store is and what an acknowledgement means.

use std::path::PathBuf;
use std::str::FromStr;

use ff_core::partition::GivenPartitions;
use ff_core::policy::Retention;
use ff_core::token::Secret;

use crate::clock::Clock;
use crate::error::OpenError;

/// How to open a store. From a URL: `sqlite:path`, `sqlite::memory:`, each with
/// `?durability=full|normal|off`.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// None: in memory, gone with the process.
    pub path: Option<PathBuf>,
    pub durability: Durability,
    /// A given count must be equal to the stored one. Others are as stored, or the defaults in a new
    /// store.
    pub partitions: GivenPartitions,
    /// How long terminal executions are kept when their policy does not say.
    pub retention: Retention,
    /// Signs waitpoint tokens of a new store; random when absent. Must be the stored one otherwise.
    pub waitpoint_secret: Option<Secret>,
    pub clock: Clock,
    /// Read connections beside the writer.
    pub readers: usize,
}

/// What survives a loss of power. A killed process loses nothing acknowledged in any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Every acknowledged operation.
    #[default]
    Full,
    /// All but the last moments; never a torn state.
    Normal,
    /// No promise.
    Off,
}

impl Durability {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
            Self::Off => "off",
        }
    }

    pub(crate) const fn synchronous(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
            Self::Off => "OFF",
        }
    }
}

impl SqliteOptions {
    pub fn memory() -> Self {
        Self {
            path: None,
            durability: Durability::default(),
            partitions: GivenPartitions::default(),
            retention: Retention::default(),
            waitpoint_secret: None,
            clock: Clock::default(),
            readers: 4,
        }
    }

    /// What an acknowledgement means: the durability of a file, or `memory`.
    pub fn promise(&self) -> &'static str {
        if self.path.is_some() { self.durability.as_str() } else { "memory" }
    }

    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), ..Self::memory() }
    }
}

impl FromStr for SqliteOptions {
    type Err = OpenError;

    fn from_str(url: &str) -> Result<Self, OpenError> {
        let invalid = |detail: String| OpenError::Url { url: url.to_owned(), detail };
        let rest = url
            .strip_prefix("sqlite:")
            .ok_or_else(|| invalid("it must begin with sqlite:".to_owned()))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut options = match path.strip_prefix("//").unwrap_or(path) {
            "" => {
                return Err(invalid("it names no file; sqlite::memory: keeps nothing".to_owned()));
            }
            ":memory:" => Self::memory(),
            path => Self::file(path),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair {
                "durability=full" => options.durability = Durability::Full,
                "durability=normal" => options.durability = Durability::Normal,
                "durability=off" => options.durability = Durability::Off,
                other => {
                    return Err(invalid(format!(
                        "{other:?} is not known; there is durability=full, normal or off"
                    )));
                }
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let options: SqliteOptions = "sqlite:data/ff.db?durability=normal".parse().unwrap();
        assert_eq!(options.path, Some("data/ff.db".into()));
        assert_eq!(options.durability, Durability::Normal);
        let options: SqliteOptions = "sqlite::memory:".parse().unwrap();
        assert_eq!((options.path, options.durability), (None, Durability::Full));
    }

    #[test]
    fn bad_urls_say_why() {
        for bad in ["postgres://x", "sqlite:", "sqlite:a?durability=maybe", "sqlite:a?x=1"] {
            let error = bad.parse::<SqliteOptions>().unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
        }
    }
}
