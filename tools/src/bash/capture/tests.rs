//! What of an output is kept, and where.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use crate::test_support::{World, block_on};

#[test]
fn output_is_kept_whole_up_to_the_limit_and_in_a_file_beyond() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/out.txt");
    for (n, whole) in [(10, true), (11, false), (100, false)] {
        block_on(async {
            let mut capture = Capture::new(10, path.clone());
            for _ in 0..n {
                capture.push("ä".as_bytes()).await;
            }
            assert_eq!((capture.n_chars(), capture.n_bytes()), (n, 2 * n));
            assert_eq!(capture.whole(10).is_some(), whole);
            assert!(capture.tail().ends_with("ää"));
            assert_eq!(capture.keep().await, Ok((path.clone(), 2 * n)));
            let kept = std::fs::read_to_string(&path).unwrap();
            assert_eq!(kept, "ä".repeat(usize::try_from(n).unwrap()));
            capture.forget().await;
            assert!(!path.exists());
        });
    }
}

// REQ: SES-8
#[test]
fn secret_that_is_split_over_pieces_is_in_no_file_whoever_sees_it() {
    const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    for redacts_results in [true, false] {
        let mut world = World::new();
        world.context.redacts_results = redacts_results;
        let path = world.root.join("out.txt");
        block_on(async {
            let mut capture = Capture::new(20, path.clone()).without_secrets(&world.context);
            let text = format!("a {TOKEN} b\n{}\n{TOKEN}", "x".repeat(50));
            for byte in text.bytes() {
                capture.push(&[byte]).await;
            }
            capture.end().await;
            let (_, n_bytes) = capture.keep().await.unwrap();
            let kept = std::fs::read_to_string(&path).unwrap();
            let placeholder = "[secret:github-token:1]";
            assert_eq!(kept, text.replace(TOKEN, placeholder), "{redacts_results}");
            assert_eq!(n_bytes, kept.len() as u64);
            assert_eq!((capture.n_bytes(), capture.n_chars()), (n_bytes, n_bytes));
            assert!(capture.tail().ends_with(placeholder));
        });
        // What fits is shown as the setting says.
        block_on(async {
            let mut capture = Capture::new(99, path.clone()).without_secrets(&world.context);
            capture.push(TOKEN.as_bytes()).await;
            capture.end().await;
            let shown = capture.whole(99).unwrap();
            assert_eq!(shown.contains(TOKEN), !redacts_results, "{shown}");
        });
    }
}

#[test]
fn output_that_cannot_be_kept_is_told() {
    block_on(async {
        let mut capture = Capture::new(1, "/proc/ennead/out.txt".into());
        capture.push(b"12345678").await;
        capture.push(b"9").await;
        assert_eq!(capture.head(), "1234");
        assert!(capture.keep().await.is_err());
        assert_eq!(capture.tail(), "123456789");
    });
}
