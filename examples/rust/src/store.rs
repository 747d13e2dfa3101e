//! Where an example keeps its work: where `--store` says, or in a store of its own.

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;
use flowfabric::{Client, ClientConfig};
use tempfile::TempDir;

/// How long an example waits for work that takes moments.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The arguments of every example.
#[derive(Debug, Parser)]
pub struct StoreArgs {
    /// A store or a server: sqlite:PATH, valkey://HOST:PORT or http://HOST:PORT
    ///
    /// Without it the work is kept in a temporary directory, which is removed at the end.
    #[arg(long = "store", env = "FF_URL", value_name = "URL")]
    url: Option<String>,
}

/// Where to connect to. A temporary store is removed with it.
#[derive(Debug)]
pub struct Store {
    url: String,
    _folder: Option<TempDir>,
}

impl StoreArgs {
    /// The store that was named, or a new one.
    pub fn open(self) -> Result<Store> {
        if let Some(url) = self.url {
            return Ok(Store { url, _folder: None });
        }
        let folder = tempfile::tempdir().context("no temporary directory")?;
        let url = format!("sqlite:{}", folder.path().join("example.db").display());
        Ok(Store { url, _folder: Some(folder) })
    }
}

impl Store {
    /// What `--store` takes to name the same store again.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether only one process at a time may have it open.
    pub fn is_embedded(&self) -> bool {
        self.url.starts_with("sqlite:")
    }

    /// Whether a server stands before it.
    pub fn is_server(&self) -> bool {
        self.url.starts_with("http")
    }

    /// Connects. A server runs the engine itself; beside a store it runs here, so that an example
    /// needs no other process.
    pub async fn connect(&self) -> Result<Client> {
        let mut config = ClientConfig::from(self.url());
        if !self.is_server() {
            config = config.engine(true);
        }
        Ok(Client::connect(config).await?)
    }
}
