//! Variables through which a repository could make programs run, or send what they say elsewhere.
//!
//! No list of this kind is whole. It joins what these publish: the variables that sudo takes away
//! (`initial_badenv_table`), those that the C library ignores in programs with raised rights, and the
//! manuals of shells, linkers, git, interpreters, build tools and clients of clouds. What is not in it
//! is handed to commands as a setting, and to nothing else.

/// Names that begin with one of these, in capitals.
const PREFIXES: &str = "\
    LD_ _RLD DYLD_ LDR_ GCONV_ GLIBC_ MALLOC_ NIS_ BASH_ ZSH_ GIT_ SSH_ SVN_ HG GCM_ PYTHON NODE_
    DENO_ BUN_ PERL RUBY LUA_ PHP_ JULIA_ R_ TCL GUILE_ ERL_ ELIXIR_ IPYTHON JUPYTER_ VIRTUALENV_
    CONDA_ JAVA_ JDK_ _JAVA_ JVM_ DOTNET_ CORECLR_ COR_ COMPLUS_ MONO_ NUGET_ MSBUILD CARGO_ RUSTC
    RUSTDOC RUSTUP_ RUSTFLAGS CGO_ NPM_ YARN_ PNPM_ COREPACK_ PIP_ PIPX_ POETRY_ UV_ GEM_ BUNDLE_
    BUNDLER_ COMPOSER_ GRADLE_ MAVEN_ MVN_ SBT_ ANT_ CMAKE_ MESON_ PKG_CONFIG CCACHE_ HOMEBREW_
    APT_ DEB_ DOCKER_ BUILDX_ PODMAN_ CONTAINER_ COMPOSE_ KUBE HELM_ ANSIBLE_ TF_ VAULT_ AWS_
    GOOGLE_ GCLOUD_ CLOUDSDK_ AZURE_ ARM_ GH_ GITHUB_ GITLAB_ CI_ ANTHROPIC_ OPENAI_ GEMINI_
    CLAUDE_CODE_OAUTH ENNEAD_ SSL_ OPENSSL_ GNUTLS_ KRB5 GNUPG GPG_ SUDO_ XDG_ SYSTEMD_ DBUS_ QT_
    GTK_ GIO_ GST_ VIM NVIM_ EMACS LESS GREP_ RIPGREP_ WGET MAN TERM";

/// Names that end with one of these, in capitals.
const SUFFIXES: &str = "\
    _PROXY _PRELOAD _OPTIONS _OPTS _WRAPPER _ASKPASS _EDITOR _PAGER _BROWSER _SHELL _COMMAND _CMD
    _RSH _STARTUP _STARTUP_HOOKS _LAUNCHER _RUNNER _INTERPRETER _PLUGINS _PLUGIN_PATH _MODULE_PATH
    _LIBRARY_PATH _CONFIG _CONFIG_FILE _RC _BASE_URL _API_KEY _TOKEN _SECRET _PASSWORD _CA_BUNDLE
    _CA_CERTS _CERT_FILE _CERT_DIR _REGISTRY _INDEX_URL FLAGS";

/// Names as they are, in capitals.
const NAMES: &str = "\
    ALL_PROXY AR AS AUTHSTATE AWKLIBPATH AWKPATH BASHOPTS BROWSER CC CDPATH CLASSPATH
    CLAUDE_CODE_EXTRA_BODY CLAUDE_CODE_SHELL CLAUDE_CODE_SHELL_PREFIX CLAUDE_CODE_TMPDIR
    CLAUDE_CONFIG_DIR CLAUDE_ENV_FILE CLAUDE_PROJECT_DIR COMSPEC CPATH CPP CURL_HOME CVS_RSH CXX
    C_INCLUDE_PATH CPLUS_INCLUDE_PATH EDITOR ENV EXINIT FC FCEDIT FPATH GETCONF_DIR GLOBIGNORE GO
    GOBIN GOCACHE GOENV GOEXPERIMENT GONOSUMDB GOPATH GOPRIVATE GOPROXY GOROOT GOSUMDB GOTOOLCHAIN
    GOTOOLDIR GOVCS GOWORK HISTFILE HOME HOSTALIASES IFS INPUTRC JAVA LC_MESSAGES_PATH LD LIBPATH
    LIBRARY_PATH LOCALDOMAIN LOCPATH MAIL MAILPATH MAILRC MAKE MAKEFILES MFLAGS NETRC NM NLSPATH
    NULLCMD NVIM OBJC OLDPWD PAGER PATH PATH_LOCALE PHPRC PROMPT PROMPT_COMMAND PS0 PS1 PS2 PS3
    PS4 PWD READNULLCMD REQUESTS_CA_BUNDLE RES_OPTIONS RESOLV_HOST_CONF RPROMPT RSYNC_RSH SHELL
    SHELLOPTS SHLIB_PATH STARSHIP_SHELL TAPE TEMP TMP TMPDIR TMPPREFIX TZDIR USERPROFILE VAR_ACE
    USR_ACE DLC_ACE VISUAL WATCHFMT ZDOTDIR";

/// Names that are as harmless as they are usual, whatever they begin with.
const HARMLESS: &str = "\
    BASH_DEFAULT_TIMEOUT_MS BASH_MAX_OUTPUT_LENGTH BASH_MAX_TIMEOUT_MS CARGO_TERM_COLOR NODE_ENV
    PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUNBUFFERED PYTHONUTF8";

/// Whether a variable of this name may make programs run, or point them elsewhere. Upper and lower
/// case count as one: `http_proxy` is read as `HTTP_PROXY` is. What is no name of a shell counts as
/// risky: `A=B` would set another variable, and exported functions hold signs that no name has.
pub fn is_risky(name: &str) -> bool {
    let mut bytes = name.bytes();
    let is_name = bytes.next().is_some_and(|it| it.is_ascii_alphabetic() || it == b'_')
        && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_');
    let name = name.to_ascii_uppercase();
    if is_name && words(HARMLESS).any(|it| it == name) {
        return false;
    }
    !is_name
        || words(NAMES).any(|it| it == name)
        || words(PREFIXES).any(|it| name.starts_with(it))
        || words(SUFFIXES).any(|it| name.ends_with(it))
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_make_programs_run_are_risky() {
        for name in words(
            "\
            BASH_ENV ENV LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES PATH
            GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_CONFIG_COUNT GIT_PAGER PYTHONSTARTUP PYTHONPATH
            PYTHONINSPECT NODE_OPTIONS NODE_PATH PERL5OPT PERL5LIB PERLLIB RUBYOPT RUBYLIB
            JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS SHELLOPTS BASHOPTS PS4 IFS CDPATH
            PROMPT_COMMAND HTTP_PROXY https_proxy all_proxy ANTHROPIC_BASE_URL ANTHROPIC_API_KEY
            OPENAI_BASE_URL BASH_FUNC_ls%% ZDOTDIR EDITOR VISUAL PAGER MANPAGER LESSOPEN
            SSH_ASKPASS SUDO_ASKPASS RSYNC_RSH TAR_OPTIONS MAKEFLAGS CARGO_BUILD_RUSTC_WRAPPER
            RUSTC_WRAPPER CC CFLAGS LDFLAGS GOFLAGS GOPROXY CGO_CFLAGS npm_config_script_shell
            PIP_INDEX_URL GRADLE_OPTS MAVEN_OPTS DOTNET_STARTUP_HOOKS CORECLR_PROFILER_PATH PHPRC
            LUA_INIT R_PROFILE_USER HOME XDG_CONFIG_HOME TMPDIR SSL_CERT_FILE NODE_EXTRA_CA_CERTS
            DOCKER_HOST KUBECONFIG AWS_ENDPOINT_URL CLAUDE_ENV_FILE CLAUDE_CODE_SHELL_PREFIX
            GCONV_PATH GLIBC_TUNABLES HOSTALIASES OPENSSL_CONF VIMINIT TERMINFO AWKLIBPATH
            ENNEAD_PROVIDER",
        ) {
            assert!(is_risky(name), "{name}");
        }
    }

    #[test]
    fn name_that_would_set_another_variable_is_risky() {
        for name in ["", "A=B", "X=;LD_PRELOAD", "A B", "1A", "A-B", "A\0B", "Ä", "A\n", "=A"] {
            assert!(is_risky(name), "{name:?}");
        }
    }

    #[test]
    fn settings_of_programs_are_not_risky() {
        for name in words(
            "\
            A GREETING RUST_LOG RUST_BACKTRACE DEBUG CI NO_COLOR FORCE_COLOR TZ LANG LC_ALL
            DATABASE_URL PORT BASH_DEFAULT_TIMEOUT_MS BASH_MAX_TIMEOUT_MS BASH_MAX_OUTPUT_LENGTH
            CLAUDE_CODE_MAX_RETRIES DISABLE_PROMPT_CACHING ENABLE_PROMPT_CACHING_1H
            CLAUDE_CODE_GLOB_HIDDEN MCP_TIMEOUT NODE_ENV CARGO_TERM_COLOR PYTHONUNBUFFERED",
        ) {
            assert!(!is_risky(name), "{name}");
        }
    }
}
