//! What takes up log lines.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::event::Report;
use super::sender::Queue;

/// Reports every line that is logged as an error, whatever else the log shows.
pub(super) struct Errors(pub(super) Queue);

impl<S: Subscriber> Layer<S> for Errors {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let about = event.metadata();
        if *about.level() != Level::ERROR {
            return;
        }
        let mut report = Report { place: about.target().to_owned(), ..Report::default() };
        event.record(&mut report);
        self.0.put(&report);
    }
}

impl Visit for Report {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.note(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.note(field.name(), value.to_owned());
    }
}

impl Report {
    fn note(&mut self, name: &str, value: String) {
        match name {
            "message" => self.message = value,
            name => self.fields.push((name.to_owned(), value)),
        }
    }
}
