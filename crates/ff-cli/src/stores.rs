//! The stores that a URL can name.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_backend_valkey::{ValkeyOptions, ValkeyStore};
use ff_core::backend::Backend;
use ff_core::error::EngineError;

use crate::config::Settings;

/// A person who waits at a terminal for a server that is not there should soon be told.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
const SERVER_PATIENCE: Duration = Duration::from_secs(60);

/// How to open a store.
#[derive(Clone)]
pub(crate) enum Options {
    Sqlite(SqliteOptions),
    Valkey(ValkeyOptions),
}

/// An open store, by its kind.
#[derive(Clone)]
pub(crate) enum Store {
    Sqlite(Arc<SqliteStore>),
    Valkey(Arc<ValkeyStore>),
}

/// The URL of a store names none that there is. What follows the scheme is not repeated: it may
/// hold a password.
#[derive(Debug)]
pub(crate) struct UnknownStore {
    scheme: Option<String>,
}

impl Options {
    pub(crate) fn parse(url: &str) -> anyhow::Result<Self> {
        match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => Ok(Self::Sqlite(url.parse()?)),
            Some("valkey" | "valkeys" | "redis" | "rediss") => {
                let options: ValkeyOptions = url.parse()?;
                Ok(Self::Valkey(ValkeyOptions { connect_patience: CONNECT_PATIENCE, ..options }))
            }
            scheme => Err(UnknownStore { scheme: scheme.map(str::to_owned) }.into()),
        }
    }
}

impl Options {
    /// Where it is, for a person: without passwords.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Valkey(options) => options.to_string(),
            Self::Sqlite(SqliteOptions { path: None, .. }) => {
                "in memory, gone with this process".to_owned()
            }
            Self::Sqlite(SqliteOptions { path: Some(path), .. }) => {
                let whole = std::path::absolute(path);
                whole.unwrap_or_else(|_| path.clone()).display().to_string()
            }
        }
    }

    /// Refuses a store that is not there, for who would only read it: opening it would make one.
    pub(crate) async fn check_there(&self) -> anyhow::Result<()> {
        let is_there = match self {
            Self::Sqlite(SqliteOptions { path: None, .. }) => true,
            Self::Sqlite(options) => SqliteStore::schema(options)?.found > 0,
            // Functions go with the data of a server; `ff migrate` brings them where they were lost.
            Self::Valkey(options) => ValkeyStore::exists(options).await?,
        };
        if is_there {
            return Ok(());
        }
        let under = match self {
            Self::Valkey(options) => format!(" under the prefix {:?}", options.prefix),
            Self::Sqlite(_) => String::new(),
        };
        let detail = format!(
            "there is no FlowFabric store at {}{under}; `ff migrate` makes one, and so does `ff server`",
            self.place()
        );
        Err(EngineError::unavailable(detail).into())
    }

    /// With what the settings say of a store. A server is patient: its store may start after it.
    pub(crate) fn of(settings: &Settings) -> anyhow::Result<Self> {
        let Settings { partitions, retention, .. } = *settings;
        let waitpoint_secret = settings.waitpoint_secret.clone();
        Ok(match Self::parse(&settings.store)? {
            Self::Sqlite(options) => {
                Self::Sqlite(SqliteOptions { partitions, retention, waitpoint_secret, ..options })
            }
            Self::Valkey(options) => Self::Valkey(ValkeyOptions {
                partitions,
                retention,
                waitpoint_secret,
                connect_patience: SERVER_PATIENCE,
                ..options
            }),
        })
    }
}

impl Store {
    pub(crate) async fn open(options: &Options) -> anyhow::Result<Self> {
        Ok(match options {
            Options::Sqlite(options) => Self::Sqlite(Arc::new(SqliteStore::open(options.clone())?)),
            Options::Valkey(options) => {
                Self::Valkey(Arc::new(ValkeyStore::open(options.clone()).await?))
            }
        })
    }

    pub(crate) fn backend(&self) -> Arc<dyn Backend> {
        match self {
            Self::Sqlite(store) => Arc::clone(store) as Arc<dyn Backend>,
            Self::Valkey(store) => Arc::clone(store) as Arc<dyn Backend>,
        }
    }
}

impl fmt::Display for UnknownStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scheme {
            Some(scheme) => write!(out, "no store is known by {scheme}: in its URL")?,
            None => write!(out, "the URL of the store has no scheme")?,
        }
        write!(
            out,
            "; there are sqlite:PATH, sqlite::memory:, valkey://HOST:PORT and valkeys:// with TLS, \
             also written redis:// and rediss://"
        )
    }
}

impl std::error::Error for UnknownStore {}
