//! What a model sees of an outcome.

use super::*;

fn image(n: usize) -> PromptBlock {
    PromptBlock::image_at(&format!("https://images.test/{n}.png")).unwrap()
}

/// Returns the numbers of the images that a model is shown of an outcome with `n_images` of them.
fn shown(n_images: usize) -> Vec<usize> {
    let outcome = ToolOutcome::ok("done").with_media((0..n_images).map(image));
    let block = outcome.to_block(&"toolu_1".into());
    let wire: serde_json::Value =
        serde_json::from_str(&format!("{}}}", block.wire_open())).unwrap();
    let content = wire["content"].as_array().cloned().unwrap_or_default();
    let urls = content.iter().filter_map(|it| it["source"]["url"].as_str());
    let number =
        |it: &str| it.strip_prefix("https://images.test/")?.strip_suffix(".png")?.parse().ok();
    urls.filter_map(number).collect()
}

// REQ: TOL-5
#[test]
fn first_images_of_an_outcome_follow_its_text_and_those_past_the_limit_are_left_out() {
    assert!(shown(0).is_empty());
    assert_eq!(shown(2), [0, 1]);
    let all: Vec<usize> = (0..MAX_MEDIA).collect();
    assert_eq!((shown(MAX_MEDIA), shown(MAX_MEDIA + 1)), (all.clone(), all));
}
