//! How long a model server is waited for, whatever carries the exchange.

use std::{num::NonZeroU64, time::Duration};

use ennead_runtime::step1_settings_resolution::HttpSettings;

/// Until a connection is open by default.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);

/// How long a model server is waited for (MDL-12). All on by default; a session's settings may say
/// otherwise under `ennead.http`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpLimits {
    /// Until the connection is open; 10 s.
    pub connect: Duration,
    /// Until a streamed answer begins, connecting included; 300 s. An answer in one piece, of which
    /// nothing comes before it is whole, may take 600 s to begin whatever this field holds.
    pub first_byte: Duration,
    /// Between two pieces of an answer; 300 s.
    pub idle: Duration,
    /// Between two pieces of a stream that say something, pings and comments not counted; 600 s, as
    /// models may think for minutes while they send pings.
    pub event_idle: Duration,
    /// Until the answer is whole; an hour, the time that 128,000 tokens of output take at the rate
    /// which providers' SDKs reckon with.
    pub total: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connect: CONNECT,
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(300),
            event_idle: Duration::from_secs(600),
            total: Duration::from_secs(3_600),
        }
    }
}

impl HttpLimits {
    /// Returns these limits, with the three that bound silence cut to `patience`.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        Self {
            first_byte: self.first_byte.min(patience),
            idle: self.idle.min(patience),
            event_idle: self.event_idle.min(patience),
            ..self
        }
    }

    /// Returns these limits, with those that the settings of a session hold in their place.
    #[must_use]
    #[doc(hidden)]
    pub fn with(self, settings: &HttpSettings) -> Self {
        let or = |settings: Option<NonZeroU64>, limit| {
            settings.map_or(limit, |it| Duration::from_millis(it.get()).min(LONGEST))
        };
        Self {
            connect: or(settings.connect_ms, self.connect),
            first_byte: or(settings.first_byte_ms, self.first_byte),
            idle: or(settings.idle_ms, self.idle),
            event_idle: or(settings.event_idle_ms, self.event_idle),
            total: or(settings.total_ms, self.total),
        }
    }
}

/// The longest wait that can be set: a day.
const LONGEST: Duration = Duration::from_secs(86_400);
