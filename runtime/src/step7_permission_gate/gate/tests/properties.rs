//! What holds for every command and every set of rules.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;

use super::*;

/// Words that mean nothing to the shell where they are as arguments, and some that would mean much
/// without quotes.
const ARGS: [&str; 14] = [
    "a", "-x", "src/a.rs", "a b", "$x", "`b`", "a'b", "*.rs", "", ";", "--k=v w", "#c", "a\nb",
    "{a,b}",
];

/// Rules that are added.
const RULES: [&str; 14] = [
    "Bash",
    "Bash(*)",
    "Bash(npm *)",
    "Bash(npm test *)",
    "Bash(rm *)",
    "Bash(* a *)",
    "Bash(git push *)",
    "Read(.env)",
    "Read(src/**)",
    "Edit(src/**)",
    "Edit",
    "Bash(ls)",
    "Bash(cd *)",
    "Bash(* *)",
];

/// Commands of all kinds.
const COMMANDS: [&str; 36] = [
    "npm test",
    "npm test && rm x",
    "ls | head -2",
    "cat src/a.rs",
    "cat .env",
    "cd src && cat a.rs",
    "echo $(npm test a)",
    "bash -c 'npm test'",
    "$x a",
    "npm test \"",
    "rm -rf build",
    "rm -rf /",
    "echo x > src/a",
    "echo x > .git/config",
    "git push origin",
    "git -C src log",
    "for i in a; do npm test; done",
    "sudo npm test",
    "find . -delete",
    "x=1 npm test",
    "LC_ALL=C npm test",
    "((x[0]))",
    "cat <<X\n$(rm a)\nX",
    "timeout 5 npm test",
    "xargs npm test",
    "touch a",
    "sed -i s/a/b/ src/a",
    "tee a < b",
    "npm test > out",
    "echo 'rm x' | sh",
    "cat a | bash",
    "python3 -c 1",
    "git lg",
    "ls | xargs cat",
    "gcc -o .git/x a.c",
    "PAGER=x git log",
];

/// Compounds around an allowed command `A` and a denied one `D`.
const COMPOUNDS: [&str; 24] = [
    "A && D",
    "D || A",
    "A; D",
    "A & D",
    "A | D",
    "D |& A",
    "(A; D)",
    "{ A; D; }",
    "if A; then D; fi",
    "if D; then A; else A; fi",
    "while A; do D; break; done",
    "for i in 1; do A; D; done",
    "case a in a) A;; b) D;; esac",
    "f() { D; }; A",
    "! D; A",
    "A $( D )",
    "A `D`",
    "A \"$( D )\"",
    "A <(D)",
    "x=$( D ); A",
    "A\nD",
    "A # c\nD",
    "coproc D; A",
    "A <<X\n$( D )\nX",
];

fn rank(mode: Mode, texts: &[String], command: &str) -> u8 {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let found = outcome(&bash(), &setup(mode, Handler::Approver, &texts), &run(command));
    match found.split(' ').next() {
        Some("allow") => 2,
        Some("ask") => 1,
        _ => 0,
    }
}

/// One word as the shell would have to read it, in one of several ways.
fn written(word: &str, way: u8) -> String {
    let single = format!("'{}'", word.replace('\'', "'\\''"));
    let is_plain = !word.is_empty()
        && word.bytes().all(|it| it.is_ascii_alphanumeric() || b"-/.=_".contains(&it));
    match way {
        0 if is_plain => word.to_owned(),
        1 => {
            let escaped: String = word
                .chars()
                .flat_map(|c| match c {
                    '"' | '$' | '`' | '\\' => vec!['\\', c],
                    c => vec![c],
                })
                .collect();
            format!("\"{escaped}\"")
        }
        2 if !word.is_empty() && !word.contains('\n') => {
            word.chars().flat_map(|c| ['\\', c]).collect()
        }
        3 => {
            let escaped: String = word.bytes().map(|it| format!("\\x{it:02x}")).collect();
            format!("$'{escaped}'")
        }
        4 if is_plain && word.len() > 1 => format!("{}\\\n{}", &word[..1], &word[1..]),
        _ => single,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    // REQ: PRM-2
    #[test]
    fn a_deny_rule_more_never_lets_more_pass(
        command in prop::sample::select(&COMMANDS[..]),
        allowed in prop::sample::subsequence(RULES.to_vec(), 0..4),
        asked in prop::sample::subsequence(RULES.to_vec(), 0..2),
        denied in prop::sample::select(&RULES[..]),
        mode in prop::sample::select(vec![Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::DontAsk, Mode::BypassPermissions]),
    ) {
        let allowed = allowed.iter().map(|it| format!("allow user {it}"));
        let mut texts: Vec<String> = allowed.chain(asked.iter().map(|it| format!("ask user {it}"))).collect();
        let before = rank(mode, &texts, command);
        texts.push(format!("deny user {denied}"));
        prop_assert!(rank(mode, &texts, command) <= before, "{command}");
    }

    // REQ: PRM-8
    #[test]
    fn a_compound_with_a_denied_command_is_denied(
        first in prop::sample::select(&COMPOUNDS[..]),
        second in prop::sample::select(&COMPOUNDS[..]),
        program in prop::sample::select(vec!["rm", "/bin/rm", "r\\m", "'rm'", "sudo rm", "timeout 5 rm", "x=1 rm", "command rm", "bash -c 'rm x'", "sh -s <<<'rm x'", "eval rm", "ssh host rm"]),
    ) {
        let fill = |outer: &str, allowed: &str, denied: &str| {
            outer.replace('A', "\u{1}").replace('D', "\u{2}").replace('\u{1}', allowed).replace('\u{2}', denied)
        };
        let denied = format!("{program} q");
        let inner = fill(second, "npm test", &denied);
        let texts = ["allow user Bash(npm *)".to_owned(), "deny user Bash(rm *)".to_owned()];
        prop_assert_eq!(rank(Mode::BypassPermissions, &texts, &inner), 0, "{}", inner);
        // Here-documents and comments end at a line's end, so they are not put in the middle of one.
        let nests = inner.contains('`') && first.contains('`');
        if !inner.contains('\n') && !nests {
            let both = fill(first, "npm test", &inner);
            prop_assert_eq!(rank(Mode::BypassPermissions, &texts, &both), 0, "{}", both);
        }
    }

    // REQ: PRM-8
    #[test]
    fn quotes_blanks_and_comments_change_no_decision(
        program in prop::sample::select(vec!["npm", "rm", "cat", "echo", "git", "make"]),
        args in prop::collection::vec((prop::sample::select(&ARGS[..]), 0_u8..6, 0_u8..6), 0..5),
        ways in (0_u8..6, 0_u8..6),
        blank in prop::sample::select(vec![" ", "   ", "\t", " \\\n "]),
        end in prop::sample::select(vec!["", "  ", " # c", "\n", ";"]),
        rule in prop::sample::select(&RULES[..]),
    ) {
        let join = |ways: Vec<String>, blank: &str| ways.join(blank);
        let one = join([written(program, ways.0)].into_iter().chain(args.iter().map(|it| written(it.0, it.1))).collect(), " ");
        let other = join([written(program, ways.1)].into_iter().chain(args.iter().map(|it| written(it.0, it.2))).collect(), blank) + end;
        for kind in ["allow", "ask", "deny"] {
            let texts = [format!("{kind} user {rule}")];
            prop_assert_eq!(rank(Mode::Default, &texts, &one), rank(Mode::Default, &texts, &other), "{:?} and {:?} by {}", one, other, rule);
        }
    }
}
