//! Merges settings where no session waits for it.

use std::sync::Arc;

use ennead_runtime::step1_settings_resolution::{MergeOrder, Merged};

/// Merges layers; long ones on the blocking pool, where no session waits. `None` where that broke off.
pub(crate) async fn merged(order: MergeOrder) -> Option<Arc<Merged>> {
    if order.is_short() {
        return Some(Arc::new(order.merge()));
    }
    tokio::task::spawn_blocking(move || Arc::new(order.merge())).await.ok()
}

#[cfg(test)]
mod tests {
    use ennead_runtime::{
        catalogue::Catalogue,
        permission::Scope,
        step1_settings_resolution::{LayerText, merge_with},
    };
    use futures::FutureExt;

    use super::*;

    // REQ: SHP-4
    #[tokio::test]
    async fn long_settings_are_merged_where_no_session_waits() {
        let catalogue = Arc::new(Catalogue::built_in());
        let layer = |n: usize| {
            let text =
                format!(r#"{{"permissions":{{"deny":["x"{}]}}}}"#, r#","Read(a/*/b)""#.repeat(n));
            vec![LayerText::new(Scope::User, "user.json", text)]
        };
        let order = |layers| MergeOrder::new(&catalogue).with(layers);
        assert!(merged(order(layer(1))).now_or_never().is_some());
        let long = layer((2 << 20) / 14);
        let mut merging = Box::pin(merged(order(long.clone())));
        assert!((&mut merging).now_or_never().is_none(), "this thread does not merge it");
        assert_eq!(*merging.await.unwrap().resolved, merge_with(&long, &catalogue));
    }
}
