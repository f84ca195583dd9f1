//! How long runs took, and what became of those that have no time.

use std::time::Duration;

use serde::Serialize;

use super::hall::Asked;
use crate::bench::samples::as_us;
use ennead_runtime::saturating::Saturating as _;

/// How long runs took. Durations are microseconds in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunTimes {
    /// Runs that ended with an answer; only they have a time.
    pub n_runs: usize,
    /// Runs that the server refused.
    pub n_refused: usize,
    /// Runs that ended otherwise, or not within a minute.
    pub n_failed: usize,
    /// The time that half of them did not exceed.
    #[serde(rename = "median_us", serialize_with = "as_us")]
    pub median: Duration,
    /// The time that 99 of 100 did not exceed.
    #[serde(rename = "p99_us", serialize_with = "as_us")]
    pub p99: Duration,
    /// The time of the slowest run.
    #[serde(rename = "max_us", serialize_with = "as_us")]
    pub max: Duration,
    /// Processor time of the process in thousandths of the time that passed: 1000 is one core in full use.
    pub cpu_per_mille: u64,
}

/// Runs as they end.
#[derive(Debug, Default)]
pub(super) struct RunSamples {
    took: Vec<Duration>,
    n_refused: usize,
    n_failed: usize,
    cpu: Duration,
    elapsed: Duration,
}

impl RunSamples {
    /// Adds a run, by how it ended.
    pub(super) fn push(&mut self, asked: Asked, took: Duration) {
        match asked {
            Asked::Answered => self.took.push(took),
            Asked::Refused => self.n_refused += 1,
            Asked::Failed => self.n_failed += 1,
        }
    }

    /// Adds the processor time that was used, and the time that passed meanwhile.
    pub(super) fn spent(&mut self, cpu: Duration, elapsed: Duration) {
        self.cpu += cpu;
        self.elapsed += elapsed;
    }

    /// Adds all of `more`.
    pub(super) fn add(&mut self, mut more: Self) {
        self.took.append(&mut more.took);
        self.n_refused += more.n_refused;
        self.n_failed += more.n_failed;
        self.spent(more.cpu, more.elapsed);
    }

    /// Summarises the samples that were added.
    pub(super) fn times(mut self) -> RunTimes {
        self.took.sort_unstable();
        let n = self.took.len();
        // The smallest that enough of them do not exceed.
        let at = |percent: usize| {
            let rank = (n * percent).div_ceil(100).max(1);
            self.took.get(rank - 1).copied().unwrap_or_default()
        };
        let cpu = self.cpu.as_micros() * 1000 / self.elapsed.as_micros().max(1);
        RunTimes {
            n_runs: n,
            n_refused: self.n_refused,
            n_failed: self.n_failed,
            median: at(50),
            p99: at(99),
            max: at(100),
            cpu_per_mille: u64::saturating(cpu),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured_and_failures_have_none() {
        let mut samples = RunSamples::default();
        for ms in (1..=200).rev() {
            samples.push(Asked::Answered, Duration::from_millis(ms));
        }
        let mut more = RunSamples::default();
        more.push(Asked::Refused, Duration::from_secs(9));
        more.push(Asked::Failed, Duration::from_secs(9));
        more.spent(Duration::from_secs(3), Duration::from_secs(2));
        samples.add(more);
        let times = samples.times();
        assert_eq!((times.n_runs, times.n_refused, times.n_failed), (200, 1, 1));
        let ms = |it: Duration| it.as_millis();
        assert_eq!([times.median, times.p99, times.max].map(ms), [100, 198, 200]);
        assert_eq!(times.cpu_per_mille, 1500);
        assert_eq!(RunSamples::default().times().p99, Duration::ZERO);
    }
}
