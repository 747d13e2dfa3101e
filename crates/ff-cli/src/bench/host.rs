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

/// Bytes of memory that this process has at the moment; none where there is no `/proc`.
pub(crate) fn resident_bytes() -> Option<u64> {
    parse_resident(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

/// Files and sockets that this process may have open; none: it is not told, or there is no limit.
pub(crate) fn open_files_max() -> Option<u64> {
    parse_open_files(&std::fs::read_to_string("/proc/self/limits").ok()?)
}

fn parse_open_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
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

    #[test]
    fn memory_and_open_files_are_found_among_others() {
        let status = "Name:\tff\nVmHWM:\t  9999 kB\nVmRSS:\t    2048 kB\nThreads:\t4\n";
        assert_eq!(parse_resident(status), Some(2 << 20));
        assert_eq!(parse_resident("Name:\tff\n"), None);
        let limits = "Limit  Soft Limit  Hard Limit  Units\n\
            Max processes  7  7  processes\nMax open files  1024  4096  files\n";
        assert_eq!(parse_open_files(limits), Some(1024));
        assert_eq!(parse_open_files("Max open files  unlimited  unlimited  files\n"), None);
    }
}
