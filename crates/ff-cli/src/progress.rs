//! Progress on stderr, shown only where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar for a phase with a known number of steps.
pub(crate) fn bar(what: &'static str, steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}");
    let bar = ProgressBar::new(steps).with_message(what);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// A sign of life for a phase that has no steps.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(what);
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}
