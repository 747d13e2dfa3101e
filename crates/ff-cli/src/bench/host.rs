//! The machine under the measurement, and what this process takes of it.

use std::time::Duration;

use serde::Serialize;

/// Ticks of `/proc/self/stat` in a second; Linux shows the same to every program.
const TICKS_PER_S: u64 = 100;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Host {
    cpus: usize,
    kernel: Option<String>,
}

impl Host {
    pub(crate) fn here() -> Self {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Self {
            cpus: std::thread::available_parallelism().map_or(1, Into::into),
            kernel: kernel.map(|text| text.trim().to_owned()),
        }
    }
}

/// Processor time of this process so far, in user and kernel; none where there is no `/proc`.
pub(crate) fn cpu_time() -> Option<Duration> {
    parse_stat(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

fn parse_stat(stat: &str) -> Option<Duration> {
    // The name of the program stands in brackets and may itself hold brackets and blanks; utime
    // and stime are the 12th and 13th field behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + kernel) * 1000 / TICKS_PER_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_any_program_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 4 0 1 2 3";
        assert_eq!(parse_stat(stat), Some(Duration::from_secs(2)));
        assert_eq!(parse_stat("nothing"), None);
    }
}
