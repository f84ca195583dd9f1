//! The limits that a provider reports, together: a call passes when all of them let it.

use super::{
    bucket::{Bucket, Level},
    headers::RateLimitReport,
    shares::RESERVE_DIVISOR,
};

/// What is left of each limit; `None` as long as the provider has reported nothing of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Buckets {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    input: Option<Bucket>,
    output: Option<Bucket>,
}

impl Buckets {
    /// Replaces what was computed by what a provider reports.
    pub(super) fn take_report(&mut self, now: u64, report: &RateLimitReport) {
        let fill = |bucket: &mut Option<Bucket>, level: Option<Level>| {
            if let Some(level) = level {
                *bucket = Some(Bucket::reported(now, level, *bucket));
            }
        };
        fill(&mut self.requests, report.requests);
        fill(&mut self.tokens, report.tokens);
        fill(&mut self.input, report.input_tokens);
        fill(&mut self.output, report.output_tokens);
    }

    /// Returns the milliseconds until a call of this many input tokens can be made. How long the answer will be is not
    /// known, so of the output there must only be something left.
    pub(super) fn wait_ms(&self, now: u64, tokens: u64, keeps_reserve: bool) -> u64 {
        let reserve = keeps_reserve.then_some(RESERVE_DIVISOR);
        let costs =
            [(self.requests, 1), (self.tokens, tokens), (self.input, tokens), (self.output, 1)];
        let waits = costs
            .iter()
            .filter_map(|(bucket, cost)| Some(bucket.as_ref()?.wait_ms(now, *cost, reserve)));
        waits.max().unwrap_or(0)
    }

    /// Takes a call of this many input tokens, which is sent.
    pub(super) fn take(&mut self, now: u64, tokens: u64) {
        let costs =
            [(&mut self.requests, 1), (&mut self.tokens, tokens), (&mut self.input, tokens)];
        for (bucket, cost) in costs {
            if let Some(bucket) = bucket {
                bucket.take(now, cost);
            }
        }
    }

    /// Corrects a call that was estimated at this many tokens and has really cost this.
    pub(super) fn correct(&mut self, now: u64, estimated: u64, input: u64, output: u64) {
        let settle = |bucket: &mut Option<Bucket>, estimated: u64, real: u64| {
            if let Some(bucket) = bucket {
                bucket.take(now, real.saturating_sub(estimated));
                bucket.put_back(now, estimated.saturating_sub(real));
            }
        };
        settle(&mut self.input, estimated, input);
        settle(&mut self.output, 0, output);
        settle(&mut self.tokens, estimated, input.saturating_add(output));
    }
}
