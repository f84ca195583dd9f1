//! The survey, played against tools that count in a made-up tree. They word their results as ours
//! do, and match globs with the library that ours use.
//!
//! Built under `#[cfg(test)]` only.

use std::{collections::BTreeMap, fmt::Write as _};

use ignore::overrides::OverrideBuilder;

use super::*;

const ROOT: &str = "/w/my repo";

/// Lines of every file, by its path below the root.
type LinesByPath = BTreeMap<String, Vec<&'static str>>;

fn is_mark(line: &str) -> bool {
    line.contains("TODO") || line.contains("FIXME")
}

fn grep(tree: &LinesByPath, input: &Value) -> String {
    let below = input["path"].as_str().unwrap().strip_prefix(ROOT).expect("a path below the root");
    let below = below.trim_start_matches('/');
    let overrides = input["glob"].as_str().map(|glob| {
        let mut builder = OverrideBuilder::new(ROOT);
        builder.add(glob).unwrap().build().unwrap()
    });
    let marks = match input["pattern"].as_str().unwrap() {
        "^" => false,
        "TODO|FIXME" => true,
        other => panic!("pattern {other}"),
    };
    let list = input["output_mode"] == "files_with_matches";
    let (mut found, mut n_lines, mut n_searched) = (Vec::new(), 0, 0);
    for (path, lines) in tree {
        let inside =
            below.is_empty() || path.strip_prefix(below).is_some_and(|p| p.starts_with('/'));
        let out = overrides.as_ref().is_some_and(|overrides| {
            let dirs = path.match_indices('/').map(|(at, _)| (&path[..at], true));
            dirs.chain([(path.as_str(), false)]).any(|(part, is_dir)| {
                overrides.matched(format!("{ROOT}/{part}"), is_dir).is_ignore()
            })
        });
        if !inside || out {
            continue;
        }
        n_searched += 1;
        let n = lines.iter().filter(|line| !marks || is_mark(line)).count();
        n_lines += n;
        if n > 0 {
            let count = if list { String::new() } else { format!(":{n}") };
            found.push(format!("{ROOT}/{path}{count}"));
        }
    }
    let limit = input["head_limit"].as_u64().unwrap() as usize;
    let offset = input["offset"].as_u64().unwrap_or(0) as usize;
    let n_files = found.len();
    let page: Vec<_> = found.into_iter().skip(offset).take(limit).collect();
    let mut text = if n_files == 0 { "No matches found".to_owned() } else { page.join("\n") };
    let (start, end) = (offset + 1, offset + page.len());
    if end < n_files {
        let _ = write!(
            text,
            "\n\n(showing entries {start} to {end} of {n_files}; continue with offset={end})"
        );
    }
    let _ = write!(
        text,
        "\n\nFound {n_lines} matching lines in {n_files} files ({n_searched} files searched)."
    );
    text
}

/// What a call gives, and whether it is an agent.
fn run(
    simulator: &Simulator,
    tree: &LinesByPath,
    call: &Value,
    lost: &str,
) -> Result<String, String> {
    let input = &call["input"];
    match call["name"].as_str().unwrap() {
        "Grep" => Ok(grep(tree, input)),
        "Glob" => Ok("No files found".to_owned()),
        "Read" => {
            let path = input["file_path"].as_str().unwrap().strip_prefix(ROOT).unwrap();
            Ok(tree[path.trim_start_matches('/')].join("\n"))
        }
        "Agent" => {
            let prompt = input["prompt"].as_str().unwrap();
            assert!(input["description"].as_str().is_some_and(|text| !text.is_empty()));
            if !lost.is_empty() && prompt.contains(lost) {
                return Err("it crashed".to_owned());
            }
            Ok(format!("{}\n\nagentId: a1", play(simulator, tree, prompt, lost).0))
        }
        other => panic!("tool {other}"),
    }
}

/// Plays one role to its end: its last text, and how many agents it sent.
fn play(simulator: &Simulator, tree: &LinesByPath, prompt: &str, lost: &str) -> (String, usize) {
    let mut messages = vec![json!({"role": "user", "content": [
        {"type": "text", "text": "<system-reminder>\nThe date.\n</system-reminder>"},
        {"type": "text", "text": prompt},
    ]})];
    let mut n_agents = 0;
    for _ in 0..60 {
        let answer = ask(simulator, &messages, &["Glob", "Grep", "Read", "Agent"]);
        let blocks = answer["content"].as_array().unwrap().iter();
        let calls: Vec<_> = blocks.filter(|block| block["type"] == "tool_use").collect();
        if calls.is_empty() {
            return (text_of(&answer), n_agents);
        }
        assert!(calls.len() <= 25, "{} calls in one answer", calls.len());
        n_agents += calls.iter().filter(|call| call["name"] == "Agent").count();
        let results: Vec<_> = calls
            .iter()
            .map(|call| {
                let text = run(simulator, tree, call, lost);
                let is_error = text.is_err();
                json!({"type": "tool_result", "tool_use_id": call["id"],
                    "content": text.unwrap_or_else(|why| why), "is_error": is_error})
            })
            .collect();
        messages.push(json!({"role": "assistant", "content": answer["content"]}));
        messages.push(json!({"role": "user", "content": results}));
    }
    panic!("the survey does not end: {messages:?}");
}

/// The table that the survey should end with.
fn truth(tree: &LinesByPath, lost: &str) -> String {
    let mut rows = BTreeMap::from([(".".to_owned(), [0; 3])]);
    for (path, lines) in tree {
        let folder = path.split_once('/').map_or(".", |(folder, _)| folder);
        let row = rows.entry(folder.to_owned()).or_default();
        let marks = lines.iter().filter(|line| is_mark(line)).count();
        *row = [row[0] + 1, row[1] + lines.len(), row[2] + marks];
    }
    let top = rows.remove(".").unwrap_or_default();
    let mut table = String::new();
    let mut sum = [0; 3];
    for (folder, row) in [(".".to_owned(), top)].into_iter().chain(rows) {
        if !lost.is_empty() && folder == lost {
            let _ = writeln!(table, "| {folder} | failed | - | - |");
            continue;
        }
        let _ = writeln!(table, "| {folder} | {} | {} | {} |", row[0], row[1], row[2]);
        sum = [sum[0] + row[0], sum[1] + row[1], sum[2] + row[2]];
    }
    let _ = write!(table, "| **total** | {} | {} | {} |", sum[0], sum[1], sum[2]);
    table
}

fn survey(tree: &LinesByPath, lost: &str) -> (String, usize) {
    let simulator = Simulator::new(embedded("survey").unwrap().unwrap());
    play(&simulator, tree, &format!("Survey the directory {ROOT}\nReport a table."), lost)
}

#[track_caller]
fn check(tree: &LinesByPath, n_agents: usize) {
    let (text, sent) = survey(tree, "");
    let table = truth(tree, "");
    assert!(text.contains(&table), "{text}\n  should be\n{table}");
    assert!(text.contains("One search over the whole tree counts the same."), "{text}");
    assert_eq!(sent, n_agents);
}

/// A tree with these files, of 1, 2, 3, 4, 5, 0, 1, … lines.
fn tree(paths: impl IntoIterator<Item = String>) -> LinesByPath {
    const LINES: [&str; 5] = ["a", "// TODO b", "", "FIXME TODO", "c"];
    let paths = paths.into_iter().enumerate();
    paths.map(|(i, path)| (path, LINES[..(i + 1) % 6].to_vec())).collect()
}

fn of(list: &[&str]) -> LinesByPath {
    tree(list.iter().map(|path| (*path).to_owned()))
}

// REQ: MDL-11
#[test]
fn a_survey_counts_what_is_there() {
    check(&of(&["a", "src/a.rs", "src/deep/er/b.rs", "docs/c.md", "z.md", "empty", "x/y"]), 3);
    check(&of(&["0", "top"]), 0);
    check(&LinesByPath::new(), 0);
}

// REQ: MDL-11
#[test]
fn folders_may_have_any_name() {
    let names =
        ["ö ä", "a,b", "{c}", "[d]", "!e", "f\"g", "h\\i", "*", ".github", "it's", "a|b", "x"];
    let files = |name: &&str| [format!("{name}/0"), format!("{name}/1"), format!("{name}/2/3")];
    check(&tree(names.iter().flat_map(files)), names.len());
}

// REQ: MDL-11
#[test]
fn large_folders_and_many_files_at_the_top_are_paged_through() {
    let many =
        (0..300).flat_map(|i| [format!("big/{i:03}"), format!("m{i:03}"), format!("zoo/{i}")]);
    let few = ["b/1", "c/2", "m100x/3"].map(str::to_owned);
    check(&tree(many.chain(few)), 5);
}

// REQ: MDL-11
#[test]
fn more_than_45_folders_share_45_agents() {
    for (n_folders, n_agents) in [(25, 25), (26, 26), (45, 45), (46, 43), (120, 45)] {
        check(
            &tree((0..n_folders).flat_map(|i| [format!("f{i}/1"), format!("f{i}/2/3")])),
            n_agents,
        );
    }
}

// REQ: MDL-11
#[test]
fn a_lost_agent_and_a_folder_nobody_went_to_are_said() {
    let mut files = of(&["a/1", "b/2"]);
    let expected = truth(&files, "b");
    files.insert("only empty/file".to_owned(), Vec::new());
    let (text, _) = survey(&files, "\"b\"");
    let expected = expected.replace("\"b\"", "b");
    assert!(text.contains(&expected), "{text}\n  should be\n{expected}");
    assert!(text.contains("counts 3 files, 3 lines and 1 marks; 1 folders are missing"), "{text}");
}
