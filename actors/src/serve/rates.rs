//! How fast the bearer of a token may ask: a bucket for each token.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use tokio::time::Instant;

use super::problem::{Code, Problem};
use ennead_tools::locked::Locked as _;

/// Requests that may come at once.
const BURST: f64 = 400.0;

/// Requests per second that may come for long.
const PER_SECOND: f64 = 200.0;

/// The buckets. Their number is bounded by that of the tokens.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<BTreeMap<String, Bucket>>);

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rates {
    /// Takes a request from the bucket of this token.
    ///
    /// # Errors
    ///
    /// When the bucket is empty; with the time until it is not.
    pub(crate) fn take(&self, token: &str) -> Result<(), Problem> {
        let now = Instant::now();
        // Every change is whole before the lock goes, so a panic elsewhere spoils nothing.
        let mut buckets = self.0.locked();
        if !buckets.contains_key(token) {
            buckets.insert(token.to_owned(), Bucket { left: BURST, at: now });
        }
        let Some(bucket) = buckets.get_mut(token) else { return Ok(()) };
        let gained = now.duration_since(bucket.at).as_secs_f64() * PER_SECOND;
        bucket.left = (bucket.left + gained).min(BURST);
        bucket.at = now;
        if bucket.left < 1.0 {
            let wait = Duration::from_secs_f64((1.0 - bucket.left) / PER_SECOND);
            let detail = "the token has used the requests that it may send at once";
            return Err(Problem::new(Code::RateLimited, detail).after(wait));
        }
        bucket.left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: RUN-8
    #[tokio::test(start_paused = true)]
    async fn token_that_asks_too_fast_is_refused_until_its_bucket_fills_and_no_other_is() {
        let rates = Rates::default();
        let n = (1..=500).filter(|_| rates.take("a").is_ok()).count();
        assert_eq!(n, 400);
        assert!(rates.take("b").is_ok());
        tokio::time::advance(Duration::from_millis(50)).await;
        assert_eq!((1..=20).filter(|_| rates.take("a").is_ok()).count(), 10);
    }
}
