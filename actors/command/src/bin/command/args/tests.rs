//! Holds docs/cli.md to the definition of the command line.

use clap::{Arg, Command, CommandFactory};

use super::Args;

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md"));

#[test]
fn the_command_line_is_well_formed() {
    Args::command().debug_assert();
}

/// The command and those below it, each with its whole name.
fn commands() -> Vec<(String, Command)> {
    let mut root = Args::command();
    root.build();
    let mut found = Vec::new();
    let mut open = vec![("ennead".to_owned(), root)];
    while let Some((name, command)) = open.pop() {
        let below = command.get_subcommands().filter(|it| it.get_name() != "help");
        open.extend(below.map(|it| (format!("{name} {}", it.get_name()), it.clone())));
        found.push((name, command));
    }
    assert!(found.iter().any(|(name, _)| name == "ennead serve token add"), "{found:?}");
    found
}

/// `-p, --print [PROMPT]`: the names of a flag, and what follows it.
fn usage(arg: &Arg) -> String {
    let short = arg.get_short_and_visible_aliases().unwrap_or_default();
    let long = arg.get_long_and_visible_aliases().unwrap_or_default();
    let names = short.iter().map(|it| format!("-{it}"));
    let names: Vec<String> = names.chain(long.iter().map(|it| format!("--{it}"))).collect();
    let takes_values = arg.get_num_args().is_some_and(|it| 0 < it.max_values());
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<&str> = values.iter().map(|it| it.as_str()).filter(|_| takes_values).collect();
    let more = if arg.get_num_args().is_some_and(|it| 1 < it.max_values()) { "…" } else { "" };
    format!("{} {}{more}", names.join(", "), values.join(" ")).trim().to_owned()
}

/// What a flag does, with its values and its default.
fn effect(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> =
        arg.get_possible_values().iter().map(|it| format!("`{}`", it.get_name())).collect();
    let is_switch = arg.get_num_args().is_some_and(|it| it.max_values() == 0);
    let values = if values.is_empty() || is_switch || help.contains(&values[0]) {
        String::new()
    } else {
        format!(" One of {}.", values.join(", "))
    };
    let default: Vec<String> =
        arg.get_default_values().iter().map(|it| format!("`{}`", it.to_string_lossy())).collect();
    let default = if default.is_empty() || is_switch {
        String::new()
    } else {
        format!(" Default: {}.", default.join(" "))
    };
    let stop = if help.ends_with('.') { "" } else { "." };
    format!("{help}{stop}{values}{default}").replace('|', "\\|")
}

/// The table of one command, as the page holds it.
fn table(name: &str, command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut out = format!("### `{name}`\n\n{about}.\n");
    let mut arguments = command.get_arguments().filter(|it| it.get_id() != "help").peekable();
    if arguments.peek().is_some() {
        out.push_str("\n| Flag | Effect |\n|---|---|\n");
    }
    for arg in arguments {
        let (usage, effect) = (usage(arg).replace('|', "\\|"), effect(arg));
        out.push_str(&format!("| `{usage}` | {effect} |\n"));
    }
    out
}

#[test]
fn the_page_on_the_command_line_names_each_flag_of_each_command_with_its_effect() {
    let tables = commands().into_iter().map(|(name, command)| table(&name, &command));
    let missing: Vec<String> = tables.filter(|it| !PAGE.contains(it)).collect();
    assert!(
        missing.is_empty(),
        "docs/cli.md does not hold:
{}",
        missing.join(
            "
"
        )
    );
}

#[test]
fn the_page_on_the_command_line_names_no_flag_that_does_not_exist() {
    let known: Vec<String> = commands()
        .iter()
        .flat_map(|(_, command)| {
            command
                .get_arguments()
                .flat_map(|it| it.get_long_and_visible_aliases().unwrap_or_default())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .chain(["release".to_owned()])
        .collect();
    let words = PAGE.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let flags: Vec<&str> = words.filter_map(|it| it.strip_prefix("--")).collect();
    let unknown: Vec<&&str> = flags
        .iter()
        .filter(|it| !it.chars().all(|c| c == '-') && !known.iter().any(|flag| flag == *it))
        .collect();
    assert!(20 < flags.len() && unknown.is_empty(), "{unknown:?}");
}

#[test]
fn the_page_on_the_command_line_names_the_exit_codes_that_help_names() {
    for line in ennead_command::exit::HELP.lines().skip(1) {
        let (code, meaning) = line.trim().split_once("  ").unwrap();
        let row = format!("| {code} | {} |", meaning.trim());
        assert!(PAGE.contains(&row), "docs/cli.md does not hold:\n{row}");
    }
}
