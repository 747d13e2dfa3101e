//! Finds the values: in the file, in the environment, in flags.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;

use super::field::{Field, fields};
use super::given::Given;
use super::settings::Settings;
use crate::client::one_line_of;

/// Names of the environment that are not settings.
const OTHERS: [&str; 3] = ["FF_CA", "FF_CONFIG", "FF_URL"];
/// No file of settings is longer.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Flags that give settings.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct Flags {
    /// File with settings, in TOML
    #[arg(long, value_name = "FILE", env = "FF_CONFIG")]
    config: Option<PathBuf>,

    /// Where to listen: address and port; port 0 takes any that is free [default: 127.0.0.1:7171]
    #[arg(long, value_name = "ADDR")]
    listen_addr: Option<String>,

    /// Any setting, as --set server.max_connections=100; may be given several times
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File(PathBuf),
    Environment(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// A setting that stops the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misconfigured(pub(crate) String);

impl fmt::Display for Misconfigured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misconfigured {}

/// The settings, where each comes from, and names of the environment that mean nothing.
pub(crate) struct Loaded {
    pub(crate) settings: Settings,
    pub(crate) origins: BTreeMap<String, Origin>,
    pub(crate) unknown: Vec<String>,
}

/// A value, before it is known whether it fits.
struct Found {
    path: String,
    given: Given,
    origin: Origin,
}

/// Reads all layers. `store` and `engine` are flags that stand elsewhere.
pub(crate) fn load(
    flags: &Flags,
    store: Option<&str>,
    no_engine: bool,
) -> Result<Loaded, Misconfigured> {
    let environment = std::env::vars_os().filter_map(|(name, value)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    });
    from(&environment.collect(), flags, store, no_engine)
}

fn from(
    environment: &BTreeMap<String, String>,
    flags: &Flags,
    store: Option<&str>,
    no_engine: bool,
) -> Result<Loaded, Misconfigured> {
    let fields = fields();
    let mut found = Vec::new();
    if let Some(path) = &flags.config {
        found.extend(in_file(path, &fields)?);
    }
    found.extend(in_environment(environment, &fields)?);
    found.extend(in_flags(flags, store, no_engine)?);
    let mut loaded =
        Loaded { settings: Settings::default(), origins: BTreeMap::new(), unknown: Vec::new() };
    for Found { path, given, origin } in found {
        let Some(field) = fields.iter().find(|field| field.path == path) else {
            return Err(unknown(&path, &origin, &fields));
        };
        field
            .set(&mut loaded.settings, &given)
            .map_err(|unfit| Misconfigured(format!("{path} ({origin}): {unfit}")))?;
        loaded.origins.insert(path, origin);
    }
    loaded.unknown = unknown_names(environment, &fields);
    Ok(loaded)
}

/// No field has this name: says so with one that is close, if there is one.
fn unknown(path: &str, origin: &Origin, fields: &[Field]) -> Misconfigured {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let near = fields.iter().find(|field| last(&field.path) == last(path));
    let near = near.map(|field| format!("; there is {}", field.path)).unwrap_or_default();
    Misconfigured(format!("{path} ({origin}): there is no such field{near}"))
}

/// What a twin names, read from its file.
fn twin(field: &str, file: &str, origin: &Origin) -> Result<Given, Misconfigured> {
    one_line_of(Path::new(file))
        .map(Given::Text)
        .map_err(|error| Misconfigured(format!("{field}_file ({origin}): {error}")))
}

fn both(path: &str, origin: &Origin) -> Misconfigured {
    Misconfigured(format!("{path} ({origin}): it is given and so is a file for it; leave one out"))
}

fn in_file(path: &Path, fields: &[Field]) -> Result<Vec<Found>, Misconfigured> {
    let shown = path.display();
    let wrong = |detail: &dyn fmt::Display| Misconfigured(format!("{shown}: {detail}"));
    let size = std::fs::metadata(path).map_err(|error| wrong(&error))?.len();
    if size > FILE_BYTES_MAX {
        return Err(wrong(&"the file is too large to be one with settings"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| wrong(&error.message()))?;
    let mut leaves = Vec::new();
    flatten("", table, &mut leaves);
    let origin = Origin::File(path.to_owned());
    let mut found: Vec<Found> = Vec::new();
    for (path, value) in leaves {
        let table = format!("{path}.");
        if value.is_table() && fields.iter().any(|field| field.path.starts_with(&table)) {
            continue;
        }
        let secret = fields.iter().find(|field| {
            field.is_secret && path.strip_suffix("_file") == Some(field.path.as_str())
        });
        let (path, given) = match secret {
            Some(field) => {
                let file = Given::File(value);
                let file = file.text().map_err(|unfit| wrong(&format!("{path}: {unfit}")))?;
                (field.path.clone(), twin(&field.path, file, &origin)?)
            }
            None => (path, Given::File(value)),
        };
        if found.iter().any(|other| other.path == path) {
            return Err(both(&path, &origin));
        }
        found.push(Found { path, given, origin: origin.clone() });
    }
    Ok(found)
}

/// The values of a table, by their whole paths; a table with nothing in it is one too, so that its
/// name is looked at. Nesting is bounded by the parser.
fn flatten(prefix: &str, table: toml::Table, leaves: &mut Vec<(String, toml::Value)>) {
    for (name, value) in table {
        let path = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(table) if !table.is_empty() => flatten(&path, table, leaves),
            value => leaves.push((path, value)),
        }
    }
}

fn in_environment(
    environment: &BTreeMap<String, String>,
    fields: &[Field],
) -> Result<Vec<Found>, Misconfigured> {
    let mut found = Vec::new();
    for field in fields {
        let mut here: Option<(Given, Origin)> = None;
        for name in field.names() {
            let origin = Origin::Environment(name.clone());
            let file_name = format!("{name}_FILE");
            let file = environment.get(&file_name).filter(|_| field.is_secret);
            let values = [
                environment.get(&name).map(|text| Ok(Given::Text(text.clone()))),
                file.map(|file| twin(&field.path, file, &Origin::Environment(file_name.clone()))),
            ];
            for value in values.into_iter().flatten() {
                if here.is_some() {
                    let path = &field.path;
                    let detail = format!("{path} ({origin}): the environment gives it twice");
                    return Err(Misconfigured(detail));
                }
                here = Some((value?, origin.clone()));
            }
        }
        found.extend(here.map(|(given, origin)| Found { path: field.path.clone(), given, origin }));
    }
    Ok(found)
}

fn in_flags(
    flags: &Flags,
    store: Option<&str>,
    no_engine: bool,
) -> Result<Vec<Found>, Misconfigured> {
    let mut found = Vec::new();
    let mut add = |path: &str, text: &str, flag: &str| {
        let (given, origin) = (Given::Text(text.to_owned()), Origin::Flag(flag.to_owned()));
        found.push(Found { path: path.to_owned(), given, origin });
    };
    for pair in &flags.set {
        let Some((path, text)) = pair.split_once('=') else {
            return Err(Misconfigured("--set is written FIELD=VALUE".to_owned()));
        };
        add(path, text, "--set");
    }
    if let Some(store) = store {
        add("store", store, "--store");
    }
    if let Some(addr) = &flags.listen_addr {
        add("server.listen_addr", addr, "--listen-addr");
    }
    if no_engine {
        add("engine.enabled", "false", "--no-engine");
    }
    Ok(found)
}

/// Names that look like settings and are none.
fn unknown_names(environment: &BTreeMap<String, String>, fields: &[Field]) -> Vec<String> {
    let mut known: Vec<String> = OTHERS.map(str::to_owned).to_vec();
    for field in fields {
        let names = field.names();
        if field.is_secret {
            known.extend(names.iter().map(|name| format!("{name}_FILE")));
        }
        known.extend(names);
    }
    let ours = environment.keys().filter(|name| name.starts_with("FF_"));
    ours.filter(|name| !known.contains(name)).cloned().collect()
}
