//! Transcripts as earlier versions wrote them: checked, walked again and gone on with.
//!
//! `tests/golden/version1` is a run of `ennead demo` on two files, with one sub-agent, in which every line
//! has a hash of its own. `tests/golden/version2` is one in which lines have it before each call of a model or of a tool with
//! side effects, as those had that were written before 8 KiB were hashed at once.

use std::{fs, path::Path};

use ennead::{data::TranscriptError, transcript::verify};
use ennead_runtime::transcript::load::{LoadAs, load};

use crate::support::scripted::{TestDirs, model, text};

const ID: &str = "01a20531-f345-7e82-8d2c-a8511843dc65";
const VERSION_2: &str = "01a21cf0-33de-77c3-a8be-cb668c0e351c";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A place with a copy of the transcripts.
fn place(version: &str) -> TestDirs {
    let place = TestDirs::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(version);
    copy(&golden, &place.path("transcripts"));
    place
}

/// Checks a session, goes on with it and checks it again. Returns what was added.
async fn goes_on(version: &str, id: &str) -> String {
    let place = place(version);
    let file = place.path(&format!("transcripts/{id}.jsonl"));
    assert_eq!(verify(&file).unwrap().len(), 2);
    let before = fs::read(&file).unwrap();
    assert_eq!(load(&before, LoadAs::Session).report, []);
    let model = model(|_| text("as I said"));
    let mut options = place.session();
    options.id = Some(id.into());
    place.run(&model, options).await;
    assert!(model.last().body.to_string().contains("Survey"));
    let after = fs::read(&file).unwrap();
    assert_eq!(verify(&file).unwrap().len(), 2);
    String::from_utf8(after.strip_prefix(&*before).unwrap().to_vec()).unwrap()
}

// REQ: SES-4, SES-9
#[tokio::test]
async fn transcript_of_version_one_is_walked_again_and_a_session_goes_on_with_it() {
    let added = goes_on("version1", ID).await;
    assert!(added.lines().all(|it| it.contains(r#","sum":""#)), "{added}");
    assert!(1 < added.lines().filter(|it| it.contains(r#","v":3,"#)).count());
}

// REQ: SES-4, SES-9
#[tokio::test]
async fn transcript_with_a_hash_at_each_wait_is_walked_again_and_a_session_goes_on_with_it() {
    let added = goes_on("version2", VERSION_2).await;
    // The prompt, the beginning and the end of the run.
    assert_eq!(added.lines().filter(|it| it.contains(r#","hash":""#)).count(), 3, "{added}");
}

// REQ: SES-9
#[test]
fn first_altered_removed_or_moved_line_of_version_one_is_named() {
    let place = place("version1");
    let file = place.path(&format!("transcripts/{ID}.jsonl"));
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for at in (1..lines.len() - 1).step_by(5) {
        let mut altered: Vec<String> = lines.iter().map(|it| (*it).to_owned()).collect();
        altered[at] = altered[at].replacen("\":", "\" :", 1);
        let mut removed = lines.clone();
        removed.remove(at);
        let mut moved = lines.clone();
        moved.swap(at, at + 1);
        let damaged = [("altered", altered.concat()), ("out_of_sequence", removed.concat())];
        for (code, text) in damaged.into_iter().chain([("out_of_sequence", moved.concat())]) {
            fs::write(&file, text).unwrap();
            let Err(TranscriptError::Violated { violation, .. }) = verify(&file) else {
                panic!("line {at}: {code}")
            };
            assert_eq!((violation.line, violation.what.code()), (at as u64 + 1, code));
        }
    }
}
