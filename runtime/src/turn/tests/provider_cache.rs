//! The cache of a provider: what a request has in common with the one before it, for each model.

use std::collections::BTreeMap;

use crate::{
    tokens::Usage,
    turn::effect::{ModelCallOrder, Purpose},
};

/// What the provider holds of each model's last request, without marks.
#[derive(Default)]
pub(crate) struct ProviderCache {
    held: BTreeMap<String, String>,
}

impl ProviderCache {
    /// Reports what was read from the cache and what was written to it; a token has four bytes.
    pub(super) fn serve(&mut self, order: &ModelCallOrder, usage: &mut Usage) {
        let body = order.request.body.to_bytes();
        let body = String::from_utf8_lossy(&body);
        let sent = body.replace(super::caching::MARK, "");
        let held = self.held.entry(order.model.to_string()).or_default();
        let same = held.bytes().zip(sent.bytes()).take_while(|(held, sent)| held == sent).count();
        usage.input_tokens = 0;
        usage.cache_read_input_tokens = same as u64 / 4;
        usage.cache_creation_input_tokens = (sent.len() - same) as u64 / 4;
        if order.purpose == Purpose::Turn {
            *held = sent;
        }
    }
}
