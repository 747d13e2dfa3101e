//! Where a run writes.

use std::path::Path;

use anyhow::Context as _;
use ff_backend_sqlite::SqliteOptions;
use ff_backend_valkey::ValkeyOptions;
use tempfile::TempDir;

use super::Scratch;
use crate::stores::Options;

/// The store that a URL names, or a temporary one that goes with this value.
pub(crate) struct Place {
    /// For the report: without passwords.
    pub(crate) url: String,
    pub(crate) options: Options,
    /// What this run adds to a server.
    pub(crate) scratch: Scratch,
    _temporary: Option<TempDir>,
}

impl Place {
    pub(crate) fn choose(url: Option<&str>) -> anyhow::Result<Self> {
        let Some(url) = url else { return Self::temporary() };
        match Options::parse(url)? {
            Options::Valkey(options) => Ok(Self::on_server(url, options)),
            options => Ok(Self::new(url.to_owned(), options, None)),
        }
    }

    fn new(url: String, options: Options, temporary: Option<TempDir>) -> Self {
        Self { url, options, scratch: Scratch::default(), _temporary: temporary }
    }

    fn temporary() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("no place for a temporary store")?;
        let path = directory.path().join("bench.db");
        let url = format!("sqlite:{}", path.display());
        Ok(Self::new(url, Options::Sqlite(SqliteOptions::file(path)), Some(directory)))
    }

    /// Without a prefix in the URL the run takes one of its own: the default is that of a real
    /// deployment.
    fn on_server(url: &str, mut options: ValkeyOptions) -> Self {
        let scratch = Scratch::default();
        if !names_prefix(url) {
            options = scratch.store("", &options);
        }
        let (url, options) = (options.to_string(), Options::Valkey(options));
        Self { url, options, scratch, _temporary: None }
    }

    /// A fresh place in the same folder or on the same server with the same durability. Files are
    /// removed with the value, keys with the run.
    pub(crate) fn beside(&self, name: &str) -> anyhow::Result<Self> {
        match &self.options {
            Options::Sqlite(options) => {
                let folder = options.path.as_deref().map(folder_beside).transpose()?;
                let path = folder.as_ref().map(|folder| folder.path().join(format!("{name}.db")));
                let url = path.as_ref().map(|path| format!("sqlite:{}", path.display()));
                let url = url.unwrap_or_else(|| self.url.clone());
                let options = Options::Sqlite(SqliteOptions { path, ..options.clone() });
                Ok(Self::new(url, options, folder))
            }
            Options::Valkey(options) => {
                let scratch = self.scratch.clone();
                let options = scratch.store(name, options);
                let (url, options) = (options.to_string(), Options::Valkey(options));
                Ok(Self { url, options, scratch, _temporary: None })
            }
        }
    }

    /// What an acknowledgement means.
    pub(crate) fn durability(&self) -> &'static str {
        match &self.options {
            Options::Sqlite(options) => options.promise(),
            Options::Valkey(options) => options.durability.as_str(),
        }
    }
}

fn names_prefix(url: &str) -> bool {
    let (_, query) = url.split_once('?').unwrap_or((url, ""));
    query.split('&').any(|pair| pair.starts_with("prefix="))
}

fn folder_beside(path: &Path) -> anyhow::Result<TempDir> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    TempDir::with_prefix_in("ff-bench-", parent)
        .with_context(|| format!("no place for a second store in {}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valkey(place: &Place) -> &ValkeyOptions {
        match &place.options {
            Options::Valkey(options) => options,
            Options::Sqlite(_) => panic!("{} is not on a server", place.url),
        }
    }

    #[test]
    fn a_run_keeps_to_prefixes_of_its_own() {
        let place = Place::choose(Some("redis://h:7000")).unwrap();
        let prefix = &valkey(&place).prefix;
        assert!(prefix.starts_with("ff-bench-"), "{prefix}");
        let beside = place.beside("floor").unwrap();
        assert_eq!(valkey(&beside).prefix, format!("{prefix}-floor"));
        let other = Place::choose(Some("redis://h:7000")).unwrap();
        assert_ne!(valkey(&other).prefix, *prefix);
    }

    #[test]
    fn a_prefix_that_the_url_names_is_used() {
        let place = Place::choose(Some("valkey://h?durability=memory&prefix=ff")).unwrap();
        assert_eq!(valkey(&place).prefix, "ff");
        let beside = place.beside("short").unwrap();
        assert!(valkey(&beside).prefix.starts_with("ff-bench-"), "{}", beside.url);
    }

    #[test]
    fn unknown_stores_are_named_without_their_passwords() {
        for (url, told) in [("postgres://me:hunter2@h", "postgres:"), ("hunter2", "no scheme")] {
            let Err(error) = Place::choose(Some(url)) else { panic!("{url} is known") };
            let error = error.to_string();
            assert!(error.contains(told) && error.contains("valkey://"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn reports_show_no_password() {
        let place = Place::choose(Some("valkey://:hunter2@h")).unwrap();
        assert!(!place.url.contains("hunter2"), "{}", place.url);
    }
}
