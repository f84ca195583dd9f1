//! `trace` and `verify` on transcripts that the command wrote.

use std::fs;

use serde_json::{Value, json};

use super::{CommandDirs, text};

// REQ: TRN-3
#[test]
fn a_trace_shows_the_nine_steps_in_order() {
    let place = CommandDirs::new();
    place.file("a.txt", "needle\n");
    assert_eq!(place.run(&["-p", "search for needle"]).code, Some(0));
    let ended = place.run(&["trace", text(&place.transcript(".transcripts"))]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let numbers: Vec<&str> = ended
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once(' '))
        .filter(|(number, _)| number.parse::<u32>().is_ok())
        .map(|(number, _)| number)
        .collect();
    let turn = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
    assert_eq!(numbers, [turn, turn].concat(), "{}", ended.stdout);
    assert!(ended.stdout.contains("Grep allowed at RuleEvaluation"), "{}", ended.stdout);
    assert!(ended.stdout.contains("9 stop_check: done, no_pending_tools"), "{}", ended.stdout);
}

// REQ: TRN-3, SES-9
#[test]
fn the_first_line_that_was_altered_is_named() {
    let place = CommandDirs::new();
    assert_eq!(place.run(&["-p", "hello"]).code, Some(0));
    let file = place.transcript(".transcripts");
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for (what, broken, line) in [
        ("removed", [&lines[..2], &lines[3..]].concat().concat(), 3),
        ("altered", whole.replacen("hello", "hollo", 1), 1),
        ("doubled", [&lines[..3], &lines[2..]].concat().concat(), 4),
    ] {
        fs::write(&file, broken).unwrap();
        let ended = place.run(&["verify", text(&file)]);
        assert_eq!(ended.code, Some(4), "{what}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{what}: {}", ended.stderr);
        assert!(ended.stderr.contains(&format!("line {line}: ")), "{what}: {}", ended.stderr);
    }
    fs::write(&file, whole).unwrap();
    assert_eq!(place.run(&["verify", text(&file)]).code, Some(0));
}

// REQ: TRN-3, SES-9
#[test]
fn a_sidechain_that_was_changed_or_removed_is_noticed_from_its_parent() {
    let place = CommandDirs::new();
    place.file("a/x.txt", "x\n");
    assert_eq!(place.run(&["demo"]).code, Some(0));
    let file = place.transcript(".transcripts");
    let sidechains = fs::read_dir(file.with_extension("").join("subagents")).unwrap();
    let mut sidechains = sidechains.map(|it| it.unwrap().path());
    let sidechain = sidechains.find(|it| it.extension().is_some_and(|it| it == "jsonl")).unwrap();
    let check = |what: &str| {
        let ended = place.run(&["verify", text(&file)]);
        assert_eq!(ended.code, Some(4), "{ended:?}");
        assert!(ended.stderr.contains(what), "{}", ended.stderr);
    };
    let whole = fs::read_to_string(&sidechain).unwrap();
    let (first, _) = whole.split_at(whole.rfind("{\"type\"").unwrap());
    fs::write(&sidechain, first).unwrap();
    check("ends with another hash");
    fs::remove_file(&sidechain).unwrap();
    check("is missing");
}

// REQ: TRN-3, SES-9
#[test]
fn a_sidechain_that_belongs_to_no_agent_of_its_name_is_refused() {
    let place = CommandDirs::new();
    place.file("a/x.txt", "x\n");
    assert_eq!(place.run(&["demo"]).code, Some(0));
    let file = place.transcript(".transcripts");
    let beside = file.with_extension("").join("subagents");
    let sidechains = fs::read_dir(&beside).unwrap().map(|it| it.unwrap().path());
    let sidechain =
        sidechains.into_iter().find(|it| it.extension().is_some_and(|it| it == "jsonl")).unwrap();
    let verify = || place.run(&["verify", text(&file)]);
    let check = |what: &str| {
        let ended = verify();
        assert_eq!(ended.code, Some(4), "{ended:?}");
        assert!(ended.stderr.contains(what), "{}", ended.stderr);
    };
    assert_eq!(verify().code, Some(0));
    let (extra, meta) = (beside.join("agent-extra.jsonl"), sidechain.with_extension("meta.json"));
    fs::copy(&sidechain, &extra).unwrap();
    check("[no_meta]");
    fs::copy(&meta, extra.with_extension("meta.json")).unwrap();
    check("another agent than its name says");
    fs::remove_file(&extra).unwrap();
    let known = fs::read(&meta).unwrap();
    for garbage in ["garbage", "{}", "[]"] {
        fs::write(&meta, garbage).unwrap();
        check("[no_meta]");
    }
    fs::write(&meta, known).unwrap();
    // An agent that was killed before its first line was written.
    fs::write(beside.join("agent-0000000000000000.jsonl"), "").unwrap();
    assert_eq!(verify().code, Some(0));
}

// REQ: TRN-3, SES-9
#[test]
fn a_sidechain_of_another_session_is_refused() {
    let (place, other) = (CommandDirs::new(), CommandDirs::new());
    place.file("a/x.txt", "x\n");
    other.file("a/x.txt", "x\n");
    assert_eq!(place.run(&["demo"]).code, Some(0));
    assert_eq!(other.run(&["demo"]).code, Some(0));
    let of = |place: &CommandDirs| place.transcript(".transcripts").with_extension("");
    for directory in ["subagents", "stored"] {
        for entry in fs::read_dir(of(&other).join(directory)).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, of(&place).join(directory).join(path.file_name().unwrap())).unwrap();
        }
    }
    let ended = place.run(&["verify", text(&place.transcript(".transcripts"))]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("an agent of another session"), "{}", ended.stderr);
}

// REQ: SES-2, SES-7
#[test]
fn who_goes_on_with_a_damaged_transcript_is_told() {
    let place = CommandDirs::new();
    let id = "5f1c0000-0000-4000-8000-0000000000bb";
    assert_eq!(place.run(&["-p", "hello", "--session-id", id]).code, Some(0));
    let file = place.transcript(".transcripts");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 5]).unwrap();
    let ended = place.run(&["-p", "go on", "--session-id", id]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let expected = "the last line is not whole; it is passed over";
    assert!(ended.stderr.contains("the transcript was repaired: line "), "{}", ended.stderr);
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}

// REQ: SES-2, SES-7, SES-9
#[test]
fn what_an_editor_did_to_line_ends_is_told_with_its_count() {
    let place = CommandDirs::new();
    let id = "5f1c0000-0000-4000-8000-0000000000bb";
    assert_eq!(place.run(&["-p", "hello", "--session-id", id]).code, Some(0));
    let file = place.transcript(".transcripts");
    let whole = fs::read_to_string(&file).unwrap();
    let n_lines = whole.lines().count();
    let marked = format!("\u{feff}{whole}");
    let returns = whole.replace('\n', "\r");
    let counted = format!("read one by one ({n_lines} of them)");
    let ends = format!("line 1: {n_lines} lines end with a carriage return alone");
    let crlf = whole.replace('\n', "\r\n");
    let left_out = format!("carriage return, which is left out ({n_lines} of them)");
    let crlf_ends = format!("line 1: {n_lines} lines end with a carriage return before");
    for (text_of_file, repaired, violation) in [
        (marked, "line 1: a byte order mark before it is left out", "line 1: a byte order mark"),
        (returns, counted.as_str(), ends.as_str()),
        (crlf, left_out.as_str(), crlf_ends.as_str()),
    ] {
        fs::write(&file, text_of_file).unwrap();
        for _ in 0..2 {
            let ended = place.run(&["verify", text(&file)]);
            assert_eq!(ended.code, Some(4), "{ended:?}");
            assert!(ended.stderr.contains(violation), "{}", ended.stderr);
            let ended = place.run(&["-p", "go on", "--session-id", id]);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(ended.stderr.contains(repaired), "{}", ended.stderr);
        }
    }
}

// REQ: TRN-3
#[test]
fn every_file_is_checked_and_one_without_lines_is_no_transcript() {
    let place = CommandDirs::new();
    assert_eq!(place.run(&["-p", "hello"]).code, Some(0));
    let good = place.transcript(".transcripts");
    place.file("empty", "");
    place.file("blank", "\n \n");
    place.file("notes", "no transcript\n");
    for name in ["empty", "blank"] {
        for command in ["verify", "trace"] {
            let ended = place.run(&[command, name]);
            assert_eq!(ended.code, Some(4), "{command} {name}: {ended:?}");
            assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
            assert!(ended.stderr.contains("it is not a transcript"), "{}", ended.stderr);
        }
    }
    let ended = place.run(&["verify", "notes", "nowhere", "empty", text(&good)]);
    assert_eq!(ended.code, Some(4), "the worst of 4, 2, 4 and 0: {ended:?}");
    let expected: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(expected.len(), 3, "{}", ended.stderr);
    for (line, name) in expected.iter().zip(["notes", "nowhere", "empty"]) {
        assert!(line.contains(name), "{line}");
    }
    assert!(ended.stdout.contains("in order"), "{}", ended.stdout);
    assert_eq!(place.run(&["verify", "nowhere", text(&good)]).code, Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let place = CommandDirs::new();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let ended = place.command(&["-p", "hello"]).stdout(full).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let expected = String::from_utf8(ended.stderr).unwrap();
    assert!(expected.contains("cannot write to standard output"), "{expected}");
}

#[test]
fn a_file_whose_name_has_no_ending_is_judged_by_what_is_in_it() {
    let place = CommandDirs::new();
    place.file("notes", "no transcript\n");
    let ended = place.run(&["verify", "notes"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("line 1: "), "{}", ended.stderr);
}

// REQ: TRN-3
#[test]
fn a_text_beside_the_transcript_is_checked_too() {
    let place = CommandDirs::new();
    assert_eq!(place.run(&["-p", "hello"]).code, Some(0));
    let file = place.transcript(".transcripts");
    let stored = fs::read_dir(file.with_extension("").join("stored")).unwrap();
    let stored = stored.map(|it| it.unwrap().path()).next().unwrap();
    fs::write(&stored, "something else").unwrap();
    let ended = place.run(&["verify", text(&file)]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("was altered"), "{}", ended.stderr);
}

// REQ: TRN-3
#[test]
fn an_emptied_transcript_with_sidechains_is_refused() {
    let place = CommandDirs::new();
    assert_eq!(place.run(&["-p", "hello"]).code, Some(0));
    let file = place.transcript(".transcripts");
    let beside = file.with_extension("").join("subagents");
    fs::create_dir_all(&beside).unwrap();
    fs::copy(&file, beside.join("agent-0000000000000000.jsonl")).unwrap();
    fs::write(&file, "").unwrap();
    let ended = place.run(&["verify", text(&file)]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("emptied"), "{}", ended.stderr);
}

// REQ: TRN-3
#[test]
fn trace_of_a_file_that_is_no_transcript_is_one_line_and_code_4() {
    let place = CommandDirs::new();
    place.file("notes", "no transcript\n{}\n{\"type\":\"log\"}\n");
    place.file("empty.jsonl", "");
    for name in ["notes", "empty.jsonl"] {
        let ended = place.run(&["trace", name]);
        assert_eq!((ended.code, &*ended.stdout), (Some(4), ""), "{name}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains("it is not a transcript"), "{}", ended.stderr);
    }
}

/// Another session made of the conversation lines of this one, as the Agent SDK for Python writes
/// it: new names, and at the end of each line where it came from. Only the first `n_lines`.
fn forked(text: &str, fork: &str, n_lines: usize) -> String {
    let mut parent = Value::Null;
    let mut out = String::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let keys = ["uuid", "sessionId"].map(|it| line[it].clone());
        let [Value::String(id), of] = keys else { continue };
        if line["type"] == "ennead" || n_lines <= out.lines().count() {
            continue;
        }
        let name = format!("f{}", &id[1..]);
        line["parentUuid"] = std::mem::replace(&mut parent, name.as_str().into());
        line["uuid"] = name.into();
        line["sessionId"] = fork.into();
        line.as_object_mut().unwrap().remove("sourceToolAssistantUUID");
        let from = json!({"sessionId": of, "messageUuid": id});
        let body = line.to_string();
        let body = body.strip_suffix('}').unwrap();
        out.push_str(&format!("{body},\"forkedFrom\":{from}}}\n"));
    }
    let title = json!({"type": "custom-title", "customTitle": "a (fork)", "sessionId": fork});
    format!("{out}{title}\n")
}

// REQ: SES-1, SES-9
#[test]
fn session_goes_on_from_a_fork_of_another_program_and_is_in_order() {
    let place = CommandDirs::new();
    place.file("a.txt", "needle\n");
    let [id, fork] = ["1", "2"].map(|it| format!("5f1c0000-0000-4000-8000-00000000000{it}"));
    assert_eq!(place.run(&["-p", "search for needle", "--session-id", &id]).code, Some(0));
    let source = place.transcript(".transcripts");
    let whole = fs::read_to_string(&source).unwrap();
    let file = source.with_file_name(format!("{fork}.jsonl"));
    // The prompt, the call, its result, the answer; and cut between the call and its result.
    for (n_lines, n_copied) in [(9, 4), (2, 2)] {
        fs::write(&file, forked(&whole, &fork, n_lines)).unwrap();
        let verify = || place.run(&["verify", text(&file)]);
        let says =
            format!("{n_copied} lines at its beginning are copies that another program made");
        let ended = verify();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains(&says) && ended.stderr.contains(&id), "{}", ended.stderr);
        let ended = place.run(&["-p", "17 + 4", "--session-id", &fork]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let ended = verify();
        assert_eq!(ended.code, Some(0), "{n_lines}: {ended:?}");
        assert!(ended.stdout.contains("1 runs, 1 turns"), "{}", ended.stdout);
        assert!(ended.stderr.contains(&says), "{}", ended.stderr);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replacen("17 + 4", "17 + 5", 1)).unwrap();
        assert_eq!(verify().code, Some(4));
        for name in ["lock", "checkpoint"] {
            let _absent = fs::remove_file(file.with_extension(name));
        }
    }
}

// REQ: SES-8
#[test]
fn keys_of_a_vault_are_made_once_and_open_what_a_model_was_shown() {
    use std::os::unix::fs::PermissionsExt;

    let place = CommandDirs::new();
    let token = format!("ghp_{}", "abcdefghijklmnopqrstuvwxyz0123456789");
    place.file("a.txt", &format!("needle {token}\n"));
    let made = place.run(&["vault", "keygen", "../key"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let key = place.work().join("../key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let secret = fs::read_to_string(&key).unwrap();
    let public = made.stdout.trim();
    assert!(
        public.starts_with("ennead-vault-public-") && secret.contains("\nennead-vault-secret-")
    );
    assert_eq!(place.run(&["vault", "public", "../key"]).stdout.trim(), public);
    // One that is there is kept.
    assert_eq!(place.run(&["vault", "keygen", "../key"]).code, Some(2));
    assert_eq!(fs::read_to_string(&key).unwrap(), secret);

    let settings = json!({"ennead": {"redact": {"model": false, "vault": public}}}).to_string();
    let prompt = format!("search for needle, not for {token}");
    let run = place.run(&["-p", &prompt, "--settings", &settings]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let file = place.transcript(".transcripts");
    let verify = |more: &[&str]| place.run(&[&["verify", text(&file)], more].concat());
    let plain = verify(&[]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    assert!(plain.stderr.contains("are equal up to redaction"), "{plain:?}");
    let exact = verify(&["--vault-key", "../key"]);
    assert_eq!((exact.code, &*exact.stderr), (Some(0), ""), "{exact:?}");
    assert!(exact.stdout.contains("replayed byte for byte with"), "{exact:?}");
    assert!(!exact.stdout.contains(&token), "{exact:?}");
    // Another key, and what is none.
    place.run(&["vault", "keygen", "../other"]);
    let wrong = verify(&["--vault-key", "../other"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("it is sealed to another key"), "{wrong:?}");
    let none = verify(&["--vault-key", "a.txt"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(
        none.stderr.contains("a key of a vault is") && !none.stderr.contains(&token),
        "{none:?}"
    );
    // Both at once; then the vault is gone.
    let both = verify(&["--vault-key", "../other", "--vault-key", "../key"]);
    assert!(both.stdout.contains("replayed byte for byte"), "{both:?}");
    fs::remove_file(file.with_extension("").join("vault")).unwrap();
    let gone = verify(&["--vault-key", "../key"]);
    assert_eq!(gone.code, Some(0), "{gone:?}");
    assert!(gone.stderr.contains("of no full use: it is missing"), "{gone:?}");
}
