//! Variables that a repository may set before the user trusts it.
//!
//! Hundreds of programs load files or run commands that a variable names, and each month brings
//! another one: no list of those is whole. So this is the list of the others: names that say how
//! things look and how much is printed, and limits of ennead itself. What is not in it waits for trust.

/// The names. They are the harmless variables of the permission rules, and usual ones of tests and logs.
const HARMLESS: &str = "\
    CI CLICOLOR CLICOLOR_FORCE COLORTERM COLUMNS DEBUG FORCE_COLOR LANG LANGUAGE LC_ALL LC_COLLATE
    LC_CTYPE LC_MESSAGES LC_NUMERIC LC_TIME LINES LOGLEVEL LOG_LEVEL MIX_ENV NODE_ENV NO_COLOR PORT
    RACK_ENV RAILS_ENV RUST_BACKTRACE RUST_LIB_BACKTRACE RUST_LOG RUST_LOG_STYLE TERM TZ
    CARGO_TERM_COLOR PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUNBUFFERED PYTHONUTF8
    BASH_DEFAULT_TIMEOUT_MS BASH_MAX_OUTPUT_LENGTH BASH_MAX_TIMEOUT_MS CLAUDE_CODE_MAX_RETRIES
    CLAUDE_CODE_MAX_OUTPUT_TOKENS CLAUDE_CODE_DISABLE_BACKGROUND_TASKS CLAUDE_CODE_GLOB_HIDDEN
    CLAUDE_CODE_GLOB_NO_IGNORE DISABLE_PROMPT_CACHING ENABLE_PROMPT_CACHING_1H TASK_MAX_OUTPUT_LENGTH";

/// Bytes of a value; longer ones do not name a colour, a level or a language.
const MAX_VALUE: usize = 128;

/// Returns whether a repository may set a variable to this value without being trusted. Names are compared as they are.
/// A value is of letters, digits and a few signs, at most 128 of them, so that it is not a path: the slash of a time
/// zone such as `Europe/Berlin` alone is allowed.
pub fn is_harmless(name: &str, value: &str) -> bool {
    let is_zone = name == "TZ" && !value.starts_with('/') && !value.contains("..");
    let is_plain =
        |it: u8| it.is_ascii_alphanumeric() || b"_.,:=*@+- ".contains(&it) || is_zone && it == b'/';
    // `TZ=:file` names a file.
    let is_file = name == "TZ" && value.starts_with(':');
    HARMLESS.split_ascii_whitespace().any(|it| it == name)
        && value.len() <= MAX_VALUE
        && value.bytes().all(is_plain)
        && !value.starts_with(['-', '.'])
        && !is_file
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: PRM-2
    #[test]
    fn variable_that_may_make_programs_run_or_load_something_is_not_harmless() {
        let names = "\
            BASH_ENV ENV LD_PRELOAD DYLD_INSERT_LIBRARIES PATH GIT_SSH_COMMAND PYTHONSTARTUP
            PYTHONPATH NODE_OPTIONS PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS IFS PROMPT_COMMAND HTTP_PROXY
            https_proxy ANTHROPIC_BASE_URL OPENAI_API_KEY HOME XDG_CONFIG_HOME TMPDIR SSL_CERT_FILE
            PYTEST_ADDOPTS PYTEST_PLUGINS PSQLRC PGSERVICEFILE GHCRTS TS_NODE_PROJECT TS_NODE_REQUIRE
            NIX_PATH NIX_CONFIG DJANGO_SETTINGS_MODULE FLASK_APP FLASK_DEBUG MYSQL_HOME OCAMLPATH
            CAML_LD_LIBRARY_PATH OCAMLRUNPARAM MIX_EXS MIX_HOME TEXINPUTS TEXMFHOME DEBUGINFOD_URLS
            BABEL_ENV ESLINT_USE_FLAT_CONFIG PRETTIERD_LOCAL_PRETTIER_ONLY JEST_CONFIG WEBPACK_OPTS
            COVERAGE_PROCESS_START TOX_ENV NOX_DEFAULT_VENV_BACKEND SETUPTOOLS_USE_DISTUTILS MYPYPATH
            ASAN_OPTIONS GTEST_OUTPUT BAZELISK_BASE_URL BUNDLER_VERSION SPRING_CONFIG_LOCATION
            LOCPATH TERMINFO NLSPATH LANGUAGES LC_PAPER lang Path";
        for name in names.split_ascii_whitespace() {
            assert!(!is_harmless(name, "1"), "{name}");
        }
        for name in ["", "A=B", "LANG=;LD_PRELOAD", "LANG ", "LANG\0", "TZ\n", "=TZ"] {
            assert!(!is_harmless(name, "1"), "{name:?}");
        }
    }

    #[test]
    fn colours_levels_languages_and_limits_are_harmless() {
        for (name, value) in [
            ("LANG", "de_DE.UTF-8"),
            ("LC_ALL", "sr_RS@latin"),
            ("TZ", "America/Argentina/Buenos_Aires"),
            ("TZ", "CET-1CEST"),
            ("NO_COLOR", ""),
            ("RUST_LOG", "info,my_crate::net=debug"),
            ("DEBUG", "express:*,-send"),
            ("NODE_ENV", "test"),
            ("PORT", "8080"),
            ("BASH_MAX_TIMEOUT_MS", "60000"),
        ] {
            assert!(is_harmless(name, value), "{name}={value}");
        }
    }

    // REQ: PRM-2
    #[test]
    fn value_that_may_be_a_path_or_a_command_waits_for_trust() {
        for (name, value) in [
            ("LANG", "/w/locale"),
            ("TERM", "../x"),
            ("TZ", "/w/zone"),
            ("TZ", ":zone"),
            ("TZ", "a/../../x"),
            ("NODE_ENV", "../../x"),
            ("NODE_ENV", "..\\x"),
            ("DEBUG", "$(id)"),
            ("CI", "-x"),
            ("CI", "a\nb"),
            ("LANG", "ä"),
        ] {
            assert!(!is_harmless(name, value), "{name}={value}");
        }
        assert!(!is_harmless("CI", &"x".repeat(MAX_VALUE + 1)));
        assert!(is_harmless("CI", &"x".repeat(MAX_VALUE)));
    }
}
