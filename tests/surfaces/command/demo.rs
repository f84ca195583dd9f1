//! `demo`: its figures against a count of our own.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{CommandDirs, Ended, text};

/// Files, lines, marks.
type Figures = [u64; 3];

/// A tree of more folders than sub-agents run at once, one of them full, and what is left out.
fn plant(place: &CommandDirs) {
    for folder in 0..28 {
        for file in 0..=folder % 4 {
            let marks = "// TODO: more\n".repeat(folder % 3);
            place.file(&format!("f{folder:02}/deep/{file}.rs"), &format!("fn a() {{}}\n{marks}"));
        }
    }
    for file in 0..130 {
        place.file(&format!("full/{file:03}.txt"), "one\nFIXME and TODO\nno newline at the end");
    }
    place.file("a folder with blanks/a.md", "# a\n");
    place.file("empty.txt", "");
    place.file("top.md", "TODO\nx\n");
    for hidden in [".git", "target", "node_modules", ".transcripts", "f01/target"] {
        place.file(&format!("{hidden}/hidden.rs"), "// TODO: not ours\n");
    }
}

/// Counts by itself what a survey must find, by folder of the top level.
fn counted(root: &Path) -> BTreeMap<String, Figures> {
    let mut found = BTreeMap::new();
    for path in files_below(root) {
        let inside = path.strip_prefix(root).unwrap();
        let folder = match inside.components().count() {
            1 => ".".to_owned(),
            _ => inside.iter().next().unwrap().to_str().unwrap().to_owned(),
        };
        let text = fs::read_to_string(&path).unwrap();
        let marked = |line: &&str| line.contains("TODO") || line.contains("FIXME");
        let entry: &mut Figures = found.entry(folder).or_default();
        entry[0] += 1;
        entry[1] += text.lines().count() as u64;
        entry[2] += text.lines().filter(marked).count() as u64;
    }
    found
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if [".git", "target", "node_modules", ".transcripts"].contains(&name) {
            continue;
        }
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files
}

/// The rows of the summary, the total under `**total**`.
fn figures_of(summary: &str) -> BTreeMap<String, Figures> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.split(" | ").collect();
        let [folder, files, lines, marks] = cells[..] else { return None };
        let number = |text: &str| text.trim_end_matches(" |").parse().ok();
        Some((folder.to_owned(), [number(files)?, number(lines)?, number(marks)?]))
    };
    summary.lines().filter_map(row).collect()
}

fn survey(place: &CommandDirs, args: &[&str]) -> Ended {
    let ended = place.run(&[&["demo"], args].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

// REQ: AGT-2, MDL-11, TRN-3
#[test]
fn the_summary_counts_what_is_there_and_every_transcript_is_in_order() {
    let place = CommandDirs::new();
    plant(&place);
    fs::remove_dir_all(place.work().join(".transcripts")).unwrap();
    let ended = survey(&place, &[]);
    let mut expected = counted(&place.work());
    let total = expected
        .values()
        .fold([0; 3], |sum: Figures, it| [sum[0] + it[0], sum[1] + it[1], sum[2] + it[2]]);
    expected.insert("**total**".into(), total);
    assert_eq!(figures_of(&ended.stdout), expected, "{}", ended.stdout);
    assert!(ended.stdout.contains("One search over the whole tree counts the same."));
    let file = place.transcript(".transcripts");
    assert!(ended.stderr.contains(&format!("ennead verify {}", text(&file))), "{}", ended.stderr);
    let verified = place.run(&["verify", text(&file)]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    // The coordinator and one sub-agent for each folder.
    assert_eq!(verified.stdout.lines().count(), expected.len() - 1, "{}", verified.stdout);
    for step in ["step 5 model_call", "step 8 tool_execution: G", "ended: no_pending_tools"] {
        assert!(ended.stderr.contains(step), "no `{step}` in {}", ended.stderr);
    }
}

#[test]
fn readme_shows_what_the_demo_prints() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let place = CommandDirs::new();
    let transcripts = place.work().join("mine");
    let mut command = place.command(&["demo", "tests/cases", "--transcripts", text(&transcripts)]);
    let ended: Ended = command.current_dir(root).output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let shown = readme.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(ended.stdout, shown);
}

// REQ: AGT-2
#[test]
fn another_run_counts_the_same_although_transcripts_are_there_now() {
    let place = CommandDirs::new();
    place.file("a/x.txt", "TODO\n");
    place.file("b/x.txt", "x\n");
    let first = survey(&place, &["--transcripts", "mine"]);
    let second = survey(&place, &["--transcripts", "mine", "--view", "none"]);
    assert_eq!(figures_of(&first.stdout), figures_of(&second.stdout));
    assert_eq!(figures_of(&second.stdout)["**total**"], [2, 2, 1]);
}

// REQ: SUR-7
#[test]
fn transcripts_go_elsewhere_where_they_cannot_be_written() {
    let place = CommandDirs::new();
    place.file("a/x.txt", "x\n");
    // A file of that name leaves no place for the directory.
    place.file(".transcripts", "");
    let elsewhere = place.work().join("../elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let ended: Ended = place.command(&["demo"]).env("TMPDIR", &elsewhere).output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let directory = fs::read_dir(&elsewhere).unwrap().map(|it| it.unwrap().file_name()).next();
    let directory = directory.unwrap().into_string().unwrap();
    assert!(directory.starts_with("ennead-demo-"), "{directory}");
    assert!(ended.stderr.contains(&directory), "{}", ended.stderr);
    let file = place.transcript(&format!("../elsewhere/{directory}"));
    assert_eq!(place.run(&["verify", text(&file)]).code, Some(0));
}

// REQ: RUN-3
#[test]
fn many_surveys_at_once_are_measured() {
    let place = CommandDirs::new();
    for folder in ["a", "b", "c"] {
        place.file(&format!("{folder}/x.txt"), "TODO\n");
    }
    let ended = survey(&place, &["--agents", "6"]);
    let figure = |name: &str| -> u64 {
        let line = ended.stdout.lines().find(|it| it.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().next().unwrap().parse().unwrap()
    };
    assert_eq!(figure("conversations"), 6);
    assert_eq!(figure("sub-agents"), 18);
    assert_eq!(figure("turns  "), 6 * 3 + 18 * 3);
    assert!(0 < figure("turns per second"));
    assert!(0 < figure("time of all agents"));
    assert!(0 < figure("time of hosting them"));
    assert!(0 < figure("added latency per turn"));
    assert!(0 < figure("the same, all at once"));
    assert!(ended.stdout.contains("memory per conversation"), "{}", ended.stdout);
}
