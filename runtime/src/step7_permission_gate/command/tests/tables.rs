//! Every row of the tables.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use crate::step7_permission_gate::command::{
    CommandClass,
    escapes::{SPECIAL, TABLES},
    places::{OptionEffect, ROWS},
    programs::{HARMLESS, PRINTERS, READERS, RUNS_TEXT, SHELLS, WRITERS},
    runners::{LOOKED_THROUGH, OPAQUE},
    suspects::WRITING_WRAPPERS,
    wrappers::WRAPPERS,
};

// REQ: PRM-8
#[test]
fn every_option_that_escapes_is_known_in_every_form() {
    for table in TABLES {
        let covered =
            |arg: &str| is_allowed(&format!("{} *", table.name), &format!("{} {arg}", table.name));
        for letter in table.short.chars() {
            assert!(!covered(&format!("-{letter}")), "{} -{letter}", table.name);
            assert!(!covered(&format!("-9{letter}x y")), "{} -9{letter}", table.name);
        }
        for long in table.long {
            assert!(!covered(long) && !covered(&format!("{long}=x")), "{} {long}", table.name);
            let short = &long[..long.len() - 1];
            assert!(
                !long.starts_with("--") || !covered(&format!("{short}=x")),
                "{} {short}",
                table.name
            );
        }
        let name = table.name;
        // Those of these read, and nothing else.
        let expected = matches!(name, "wc" | "du");
        let found = is_allowed(&format!("{name} *"), &format!("xargs {name}"));
        assert_eq!(found, expected, "xargs {name}");
    }
    for name in SPECIAL.iter() {
        assert!(!is_allowed(&format!("{name} *"), &format!("xargs {name}")), "xargs {name}");
    }
}

// REQ: PRM-8
#[test]
fn every_wrapper_is_stepped_over_with_its_options_and_no_others() {
    for wrapper in WRAPPERS.iter().filter(|it| it.name != "xargs") {
        let operands = "5 ".repeat(wrapper.n_operands);
        let name = wrapper.name;
        check_allowed("make *", &format!("{name} {operands}make a"), true);
        check_allowed("make *", &format!("{name} -- {operands}make a"), true);
        check_allowed("make *", &format!("{name} --odd {operands}make a"), false);
        check_named("make *", &format!("{name} --odd {operands}make a"), true);
        for flag in wrapper.flags {
            check_allowed("make *", &format!("{name} {flag} {operands}make a"), true);
        }
        for option in wrapper.valued {
            let joint = if option.starts_with("--") { "=" } else { "" };
            check_allowed("make *", &format!("{name} {option}{joint}3 {operands}make a"), true);
            check_allowed("make *", &format!("{name} {option} 3 {operands}make a"), true);
        }
    }
}

// REQ: PRM-8
#[test]
fn every_option_that_changes_the_directory_is_followed_in_every_form() {
    let of = |raw: String| command(&raw).parts()[0].clone();
    for row in ROWS {
        for name in row.names {
            let short = row.short.chars().map(|it| (format!("-{it}"), String::new()));
            let long = row.long.iter().map(|it| ((*it).to_owned(), "=".to_owned()));
            for (option, joint) in short.chain(long) {
                let forms = [format!("{option}{joint}dir"), format!("{option} dir")];
                for part in forms.map(|it| of(format!("{name} {it} x"))) {
                    let dirs: Vec<&str> = part.dirs.all().into_iter().flatten().collect();
                    let holds = match row.effect {
                        OptionEffect::Enters => dirs == ["/w", "/w/dir"] || part.dirs.is_unknown(),
                        OptionEffect::Strays => part.dirs.is_unknown(),
                        OptionEffect::Displaces => part.is_displaced,
                    };
                    assert!(holds, "{name} {option}: {dirs:?}");
                }
                let open = of(format!("{name} {option}{joint}\"$x\" y"));
                assert!(open.dirs.is_unknown() || open.is_displaced, "{name} {option}");
            }
        }
    }
}

// REQ: PRM-4
#[test]
fn every_wrapper_that_writes_files_is_seen_to_write_a_protected_one() {
    for name in WRITING_WRAPPERS.iter() {
        for raw in [format!("{name} -x .git/a ls"), format!("{name} ls .git/a")] {
            let found = command(&raw);
            assert!(found.changes().any(|it| !it.1.suspected.is_empty()), "{raw}");
        }
    }
}

// REQ: PRM-8
#[test]
fn no_rule_with_a_star_covers_what_runs_others() {
    for name in OPAQUE.iter().chain(RUNS_TEXT.iter()).filter(|it| **it != "xargs") {
        check_allowed(&format!("{name} *"), &format!("{name} make a"), false);
        check_allowed(&format!("{name} make a"), &format!("{name} make a"), true);
    }
    for name in OPAQUE.iter().chain(LOOKED_THROUGH.iter()) {
        check_named("make *", &format!("{name} -x make a"), true);
    }
    for name in SHELLS.iter() {
        check_allowed(&format!("{name} *"), &format!("{name} -c 'make a'"), false);
        check_allowed(&format!("{name} *"), &format!("{name} -x -ec 'make a'"), false);
        check_allowed(&format!("{name} *"), name, false);
        check_allowed(&format!("{name} *"), &format!("{name} build.sh"), true);
        check_named("make *", &format!("{name} -x -ec 'make a'"), true);
    }
}

// REQ: PRM-8
#[test]
fn every_program_of_the_read_only_set_reads_and_stays_inside() {
    let reads = |raw: &str| {
        let command = command(raw);
        command.fault().is_none() && visible(&command).all(|it| reads_only(it, command.around()))
    };
    for name in READERS.iter() {
        assert!(reads(&format!("{name} a")) && reads(&format!("{name} src/a.rs")), "{name}");
        for operand in
            ["/etc/a", "~/a", "../a", "a/../../b", "$x", "$(pwd)/../x", "'/etc/a'", "--x=/etc/a"]
        {
            assert!(!reads(&format!("{name} {operand}")), "{name} {operand}");
        }
        assert!(!reads(&format!("./{name} a")) && !reads(&format!("A=1 {name} a")), "{name}");
    }
    for name in PRINTERS.iter().filter(|it| **it != "[[") {
        assert!(reads(name), "{name}");
        assert!(!reads(&format!("{name} /etc/a")), "{name}");
    }
    for name in HARMLESS.iter() {
        assert!(
            reads(&format!("{name}=1 ls")) && !reads(&format!("{name}=$(pwd)x ls $y")),
            "{name}"
        );
        assert!(!reads(&format!("{name}=$x ls")), "{name}");
    }
}

// REQ: PRM-8
#[test]
fn every_program_that_writes_is_seen_to_write_a_protected_file() {
    for name in WRITERS.iter() {
        let raw = match *name {
            "dd" => "dd of=.git/a".to_owned(),
            "sed" => "sed -i s/a/b/ .git/a".to_owned(),
            "chmod" | "chown" | "chgrp" => format!("{name} x .git/a"),
            name => format!("{name} a .git/a"),
        };
        let found = command(&raw);
        let mut paths = found.altered().chain(found.removed());
        assert!(paths.any(|it| it == "/w/.git/a"), "{raw}");
    }
}

// REQ: TOL-9
#[test]
fn classes_rise_with_what_a_command_can_do() {
    use CommandClass::{Dangerous, ReadOnly, WorkspaceWrite};
    for (raw, class) in [
        ("ls; cargo test; rm a", WorkspaceWrite),
        ("env A=1 cargo test", WorkspaceWrite),
        ("PATH=. ls", Dangerous),
        ("env PATH=. ls", Dangerous),
        ("env -S 'ls' x", Dangerous),
        ("x=1; ls", ReadOnly),
        ("find . -exec grep a {} +", ReadOnly),
        ("find . -exec rm {} +", Dangerous),
        ("xargs -n1 grep a", ReadOnly),
        ("bash -c 'ls'", ReadOnly),
        ("bash -c \"$x\"", Dangerous),
        ("bash <<X\ncargo test\nX", WorkspaceWrite),
        ("tar cf a.tar src", WorkspaceWrite),
        ("tar xf a.tar -C /", Dangerous),
        ("git checkout main", WorkspaceWrite),
        ("git checkout -- a", Dangerous),
        ("git restore a", Dangerous),
        ("git branch -D a", Dangerous),
        ("git clean -n", ReadOnly),
        ("make deploy", Dangerous),
        ("make -C ../x", Dangerous),
        ("echo x > .git/config", Dangerous),
        ("echo x > $f", Dangerous),
        ("cp a ../b", Dangerous),
        ("cd .. && touch a", Dangerous),
        ("rm $x", Dangerous),
        ("rm -f a b", WorkspaceWrite),
        ("cargo +nightly build", WorkspaceWrite),
        ("python3 -m pytest", WorkspaceWrite),
        ("python3 x.py", Dangerous),
        ("ls \"", Dangerous),
        ("f() { f; }; f", Dangerous),
    ] {
        assert_eq!(command(raw).class(), class, "{raw}");
    }
}
