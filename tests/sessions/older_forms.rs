//! Transcripts as earlier versions wrote them: checked, walked again and gone on with.
//!
//! `tests/golden/version1` is a run of `ennead demo` on two files, with one sub-agent, in which every line
//! has a hash of its own.

use std::{fs, path::Path};

use ennead::{data::TranscriptError, transcript::verify};
use ennead_runtime::transcript::load::{LoadAs, load};

use crate::support::scripted::{TestDirs, model, text};

const ID: &str = "01a20531-f345-7e82-8d2c-a8511843dc65";

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
fn place() -> TestDirs {
    let place = TestDirs::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/version1");
    copy(&golden, &place.path("transcripts"));
    place
}

// REQ: SES-4, SES-9
#[tokio::test]
async fn transcript_of_version_one_is_walked_again_and_a_session_goes_on_with_it() {
    let place = place();
    let file = place.path(&format!("transcripts/{ID}.jsonl"));
    assert_eq!(verify(&file).unwrap().len(), 2);
    let before = fs::read(&file).unwrap();
    assert_eq!(load(&before, LoadAs::Session).report, []);
    let model = model(|_| text("as I said"));
    let mut options = place.session();
    options.id = Some(ID.into());
    place.run(&model, options).await;
    assert!(model.last().body.to_string().contains("Survey"));
    let after = fs::read(&file).unwrap();
    let added = String::from_utf8(after.strip_prefix(&*before).unwrap().to_vec()).unwrap();
    assert!(added.lines().all(|it| it.contains(r#","sum":""#)), "{added}");
    assert!(1 < added.lines().filter(|it| it.contains(r#","v":2,"#)).count());
    assert_eq!(verify(&file).unwrap().len(), 2);
}

// REQ: SES-9
#[test]
fn first_altered_removed_or_moved_line_of_version_one_is_named() {
    let place = place();
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
