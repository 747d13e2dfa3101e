//! The object that a run prints, and the table behind it.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use super::Place;
use super::command::Named;
use super::host::Host;
use super::latency::Percentiles;

/// What a scenario found. Absent is null in the report.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) duration: Duration,
    pub(crate) throughput_per_s: Option<f64>,
    pub(crate) latency: Percentiles,
    pub(crate) commands_per_execution: Option<f64>,
    pub(crate) floor_per_s: Option<f64>,
    pub(crate) floor_ratio: Option<f64>,
    pub(crate) errors: u64,
    /// Fields of this scenario alone.
    pub(crate) own: Vec<(&'static str, Option<f64>)>,
}

/// Fields in the order in which they are printed.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    scenario: &'static str,
    store: String,
    version: &'static str,
    host: Host,
    durability: &'static str,
    parameters: Value,
    duration_s: Option<f64>,
    throughput_per_s: Option<f64>,
    #[serde(flatten)]
    latency: Percentiles,
    commands_per_execution: Option<f64>,
    floor_per_s: Option<f64>,
    floor_ratio: Option<f64>,
    errors: u64,
    /// None: there was nothing that has invariants.
    invariants_ok: Option<bool>,
    #[serde(flatten)]
    own: Map<String, Value>,
}

impl Report {
    pub(crate) fn new<S: Named>(
        scenario: &S,
        place: &Place,
        measured: Measured,
        invariants_ok: Option<bool>,
    ) -> anyhow::Result<Self> {
        let own = measured.own.into_iter();
        Ok(Self {
            scenario: S::NAME,
            store: place.url.clone(),
            version: env!("CARGO_PKG_VERSION"),
            host: Host::here(),
            durability: place.durability(),
            parameters: serde_json::to_value(scenario)?,
            duration_s: rounded(Some(measured.duration.as_secs_f64())),
            throughput_per_s: rounded(measured.throughput_per_s),
            latency: measured.latency,
            commands_per_execution: rounded(measured.commands_per_execution),
            floor_per_s: rounded(measured.floor_per_s),
            floor_ratio: rounded(measured.floor_ratio),
            errors: measured.errors,
            invariants_ok,
            own: own.map(|(name, value)| (name.to_owned(), rounded(value).into())).collect(),
        })
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.errors == 0 && self.invariants_ok != Some(false)
    }

    /// The object, and for a person a table behind it.
    pub(crate) fn print(&self, json_only: bool) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if json_only {
            writeln!(out, "{}", serde_json::to_string(self)?)?;
        } else {
            writeln!(out, "{}\n\n{}", serde_json::to_string_pretty(self)?, self.table()?)?;
        }
        Ok(())
    }

    /// The numbers that there are, one a line.
    fn table(&self) -> anyhow::Result<String> {
        let Value::Object(fields) = serde_json::to_value(self)? else { return Ok(String::new()) };
        let own = self.own.keys().map(String::as_str);
        let shown = FIGURES.iter().copied().chain(own);
        let lines = shown.filter_map(|name| match fields.get(name) {
            None | Some(Value::Null) => None,
            Some(value) => Some(format!("  {name:<24}{:>16}", value.to_string())),
        });
        let title = format!("{} on {} ({})", self.scenario, self.store, self.durability);
        Ok(std::iter::once(title).chain(lines).collect::<Vec<_>>().join("\n"))
    }
}

/// The common fields of the table.
const FIGURES: &[&str] = &[
    "duration_s",
    "throughput_per_s",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "commands_per_execution",
    "floor_per_s",
    "floor_ratio",
    "errors",
    "invariants_ok",
];

/// Three decimals: more would be noise.
fn rounded(value: Option<f64>) -> Option<f64> {
    value.map(|value| (value * 1e3).round() / 1e3)
}
