//! Where a run writes.

use std::path::Path;

use anyhow::Context as _;
use ff_backend_sqlite::{Floor, FloorReport, SqliteOptions};
use tempfile::TempDir;

use super::progress;

/// The store that a URL names, or a temporary one that goes with this value.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) options: SqliteOptions,
    _temporary: Option<TempDir>,
}

impl Place {
    pub(crate) fn choose(url: Option<&str>) -> anyhow::Result<Self> {
        if let Some(url) = url {
            return Ok(Self { url: url.to_owned(), options: url.parse()?, _temporary: None });
        }
        let directory = tempfile::tempdir().context("no place for a temporary store")?;
        let path = directory.path().join("bench.db");
        Ok(Self {
            url: format!("sqlite:{}", path.display()),
            options: SqliteOptions::file(path),
            _temporary: Some(directory),
        })
    }

    /// A fresh place in the same folder with the same durability, removed with the value.
    pub(crate) fn beside(&self) -> anyhow::Result<Self> {
        let folder = self.options.path.as_deref().map(folder_beside).transpose()?;
        let path = folder.as_ref().map(|folder| folder.path().join("bench.db"));
        let url = path.as_ref().map(|path| format!("sqlite:{}", path.display()));
        Ok(Self {
            url: url.unwrap_or_else(|| self.url.clone()),
            options: SqliteOptions { path, ..self.options.clone() },
            _temporary: folder,
        })
    }

    /// Runs the floor beside the store, never on it.
    pub(crate) async fn run_floor(&self, floor: Floor) -> anyhow::Result<FloorReport> {
        let beside = self.beside()?;
        let spinner = progress::spinner("floor: the bare database, same row writes");
        let running = tokio::task::spawn_blocking(move || floor.run(&beside.options));
        let report = running.await??;
        spinner.finish_and_clear();
        Ok(report)
    }
}

fn folder_beside(path: &Path) -> anyhow::Result<TempDir> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    TempDir::with_prefix_in("ff-bench-", parent)
        .with_context(|| format!("no place for a second store in {}", parent.display()))
}
