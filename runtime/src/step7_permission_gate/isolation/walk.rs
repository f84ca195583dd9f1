//! Where a command may work: from `cd` to `cd`, in every order that the shell may take.
//!
//! Alone because it is all that is known of how the shell goes on. Whether a `cd` succeeds is
//! known behind `&&` only, so there are several directories that it may be in; what is refused in
//! one of them is refused.

use std::collections::BTreeSet;

use super::{
    Isolation, THERE, UNTRACED, git,
    shell_text::{Joint, MAX_DEPTH, Token, Word, tokens},
    written::written,
};
use crate::step7_permission_gate::{
    path_resolution::by_text,
    setup::Places,
    shell_command::{MAX_STARTS, starts},
    shell_words::{INTERPRETERS, KEYWORDS, WRAPPERS},
};

/// Directories that the shell may be in; more are as good as unknown.
const MAX_DIRECTORIES: usize = 32;

/// Bytes of paths and inner texts that are looked at for one command. It keeps the work in proportion.
const MAX_WORK: usize = 1_000_000;

/// Changes of the directory, for the same reason.
const MAX_CHANGES: usize = 100;

pub(super) type Refused = Result<(), &'static str>;
pub(super) type Directories = BTreeSet<String>;

/// Refuses a command that may reach the checkout.
pub(super) fn walk(raw: &str, isolation: &Isolation, places: &Places) -> Refused {
    let tokens = tokens(raw, 0).map_err(|_| UNTRACED)?;
    let mut walk = Walk {
        isolation,
        home: Some(&places.home),
        runs_texts: false,
        repeats: false,
        depth: 0,
        n_changes: 0,
        work: 0,
    };
    walk.look_ahead(&tokens);
    walk.commands(&tokens, &Directories::from([places.workspace.to_string()]))
}

pub(super) struct Walk<'a> {
    isolation: &'a Isolation,
    /// Where `cd` goes; `None` if the command changes that.
    home: Option<&'a str>,
    /// Whether something in it may run a quoted text or here-document.
    runs_texts: bool,
    /// Whether a part may run more often than it is written.
    repeats: bool,
    depth: usize,
    n_changes: usize,
    work: usize,
}

/// Where the shell may be at one point.
struct State {
    /// If all since the last joint but `&&` went well.
    now: Directories,
    /// If not. Holds `now`.
    seen: Directories,
}

impl Walk<'_> {
    /// Finds what matters wherever it stands.
    fn look_ahead(&mut self, tokens: &[Token]) {
        let mut last: Option<&Token> = None;
        for token in tokens {
            if let Token::Word(word) | Token::File { word, .. } = token {
                word.inner.iter().for_each(|it| self.look_ahead(it));
            }
            let begins = !matches!(last, Some(Token::Word(_)));
            match token {
                Token::Word(word) => {
                    let name = base(&word.text);
                    let runs = INTERPRETERS.contains(&name) && (begins || name != ".");
                    self.runs_texts |= runs || WRAPPERS.contains(&name) || name == "alias";
                    self.runs_texts |= begins && word.text.starts_with('$');
                    self.repeats |= begins && matches!(name, "do" | "function");
                }
                Token::Leave => self.repeats |= matches!(last, Some(Token::Enter)),
                _ => {}
            }
            last = Some(token);
        }
    }

    fn commands(&mut self, tokens: &[Token], from: &Directories) -> Refused {
        let mut state = State { now: from.clone(), seen: from.clone() };
        let mut around = Vec::new();
        let (mut words, mut is_piped) = (Vec::new(), false);
        for token in tokens.iter().chain([&Token::Joint(Joint::Other)]) {
            let joint = match token {
                Token::Word(word) => {
                    self.inside(word, &state.now)?;
                    words.push(word);
                    continue;
                }
                Token::File { word, is_written } => {
                    self.inside(word, &state.now)?;
                    if *is_written {
                        self.writes(&word.text, word.open, &state.now)?;
                    }
                    continue;
                }
                Token::Joint(joint) => *joint,
                Token::Enter | Token::Leave => Joint::Other,
            };
            is_piped |= joint == Joint::Pipe;
            self.simple(&words, is_piped, &mut state)?;
            words.clear();
            is_piped = joint == Joint::Pipe;
            match token {
                Token::Enter => {
                    if around.len() > MAX_DEPTH {
                        return Err(UNTRACED);
                    }
                    around.push((state.now.clone(), state.seen.clone()));
                }
                Token::Leave => {
                    if let Some((now, seen)) = around.pop() {
                        state = State { now, seen };
                    }
                }
                _ if joint == Joint::Other && state.now.len() != state.seen.len() => {
                    state.now = state.seen.clone();
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What a word holds that is run by itself, and moves nobody else.
    fn inside(&mut self, word: &Word, now: &Directories) -> Refused {
        for inner in &word.inner {
            self.commands(inner, now)?;
        }
        let is_text = word.text.contains([' ', '\t', '\n', ';', '&', '|', '<', '>', '(']);
        if self.runs_texts && is_text { self.text(&word.text, now) } else { Ok(()) }
    }

    /// A text that may be run.
    fn text(&mut self, text: &str, now: &Directories) -> Refused {
        self.depth += 1;
        // So that texts in texts end, too.
        self.work += text.len() + 100;
        if self.work > MAX_WORK {
            return Err(UNTRACED);
        }
        // What is no command, as `don't`, may have quotes that do not end.
        let read = tokens(text, self.depth)
            .or_else(|_| tokens(&text.replace(['\'', '"', '`'], ""), self.depth))
            .map_err(|_| UNTRACED)?;
        self.look_ahead(&read);
        self.commands(&read, now)?;
        self.depth -= 1;
        Ok(())
    }

    fn simple(&mut self, words: &[&Word], is_piped: bool, state: &mut State) -> Refused {
        if words.is_empty() {
            return Ok(());
        }
        for word in words {
            self.assigned(&word.text, word.open, &state.now)?;
        }
        let texts: Vec<String> = words.iter().map(|it| it.text.clone()).collect();
        let starts = starts(&texts);
        if starts.len() > MAX_STARTS {
            return Err(UNTRACED);
        }
        // Where `env` runs what follows, too.
        let mut here = state.now.clone();
        for start in starts {
            let (name, operands) = (base(&texts[start]), &words[start + 1..]);
            match name {
                "cd" | "pushd" => {
                    let moved = self.moved(name, operands, &here)?;
                    let sure = |it: &String| KEYWORDS.contains(&it.as_str()) && it != "!";
                    if is_piped || !texts[..start].iter().all(sure) {
                        state.now.extend(moved.iter().cloned());
                    } else {
                        state.now.clone_from(&moved);
                    }
                    state.seen.extend(moved);
                    if state.seen.len() > MAX_DIRECTORIES {
                        return Err(UNTRACED);
                    }
                }
                "popd" => return Err(UNTRACED),
                "env" => {
                    for (to, is_open) in git::directories_of_env(operands) {
                        here.extend(self.entered(to, is_open, &state.now)?);
                    }
                }
                "eval" => self.text(&texts[start + 1..].join(" "), &here)?,
                _ if name == "git" || texts[start].starts_with('$') => {
                    self.points_git(operands, &here)?;
                }
                _ => {
                    for (text, is_open) in written(name, operands) {
                        self.writes(text, is_open, &here)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Where `cd` leads.
    fn moved(
        &mut self,
        name: &str,
        operands: &[&Word],
        now: &Directories,
    ) -> Result<Directories, &'static str> {
        self.n_changes += 1;
        if self.n_changes > MAX_CHANGES {
            return Err(UNTRACED);
        }
        let to = operands.iter().find(|it| it.text == "-" || !it.text.starts_with('-'));
        match to {
            None if name == "cd" => self.entered(self.home.ok_or(UNTRACED)?, false, now),
            None => Err(UNTRACED),
            Some(to) if name == "pushd" && to.text.starts_with('+') => Err(UNTRACED),
            Some(to) => {
                let climbs = !to.text.starts_with('/') && to.text.split('/').any(|it| it == "..");
                self.entered(&to.text, to.open || climbs && self.repeats, now)
            }
        }
    }

    /// The directories that something enters which is not to enter the checkout.
    pub(super) fn entered(
        &mut self,
        to: &str,
        is_open: bool,
        now: &Directories,
    ) -> Result<Directories, &'static str> {
        if is_open || to.is_empty() || to == "-" {
            return Err(UNTRACED);
        }
        let all = self.joined(to, now)?;
        match all.iter().any(|it| self.isolation.is_in_checkout(it)) {
            true => Err(THERE),
            false => Ok(all),
        }
    }

    /// A path from every directory.
    pub(super) fn joined(
        &mut self,
        path: &str,
        now: &Directories,
    ) -> Result<Directories, &'static str> {
        let mut all = Directories::new();
        for directory in now {
            self.work += path.len() + directory.len();
            if self.work > MAX_WORK {
                return Err(UNTRACED);
            }
            all.insert(match path.starts_with('/') {
                true => by_text(path),
                false => by_text(&format!("{directory}/{path}")),
            });
        }
        Ok(all)
    }

    /// Refuses a written file of the checkout. One whose name is open is let pass, unless what it
    /// says already leads there or climbs from what it does not say.
    fn writes(&mut self, path: &str, is_open: bool, now: &Directories) -> Refused {
        for file in self.joined(path, now)? {
            if self.isolation.is_in_checkout(&file) {
                return Err(THERE);
            }
            let sure = file.find(['$', '*', '?', '[', '{']).filter(|_| is_open);
            let may_lead = |it: &String| sure.is_some_and(|end| it.starts_with(&file[..end]));
            if self.isolation.checkout.iter().any(may_lead) {
                return Err(UNTRACED);
            }
        }
        let climbs = is_open && path.contains('$') && path.split('/').any(|it| it == "..");
        if climbs { Err(UNTRACED) } else { Ok(()) }
    }

    /// Refuses variables that lead elsewhere.
    fn assigned(&mut self, word: &str, is_open: bool, now: &Directories) -> Refused {
        let Some((name, value)) = word.split_once('=').filter(|it| !it.1.is_empty()) else {
            return Ok(());
        };
        match name {
            "CDPATH" | "PWD" | "OLDPWD" => return Err(UNTRACED),
            "HOME" => self.home = None,
            _ if git::VARIABLES.contains(&name) => {
                self.entered(value, is_open, now)?;
            }
            _ if git::configures(name, value, is_open) => return Err(UNTRACED),
            _ => {}
        }
        Ok(())
    }

    /// Refuses options that point git elsewhere.
    fn points_git(&mut self, operands: &[&Word], now: &Directories) -> Refused {
        let pointed = git::pointed(operands).ok_or(UNTRACED)?;
        let mut here = now.clone();
        for to in pointed.directories {
            if to.open || to.text.is_empty() {
                return Err(UNTRACED);
            }
            here = self.joined(&to.text, &here)?;
        }
        // With the last one only: it may pass through the checkout.
        self.entered(".", false, &here)?;
        for (to, is_open) in pointed.others {
            self.entered(to, is_open, &here)?;
        }
        Ok(())
    }
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
