//! What a shell command is made of.

use super::word::Word;

/// Commands one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List(pub(crate) Vec<ListItem>);

/// One member of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListItem {
    pub(crate) first: Pipeline,
    /// Pipelines after `&&` and `||`.
    pub(crate) rest: Vec<(Connector, Pipeline)>,
    /// Whether it ends with `&`.
    pub(crate) is_background: bool,
}

/// What is between two pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connector {
    And,
    Or,
}

/// Commands joined by `|`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pipeline {
    /// Whether it begins with `!`.
    pub(crate) is_negated: bool,
    pub(crate) commands: Vec<Command>,
}

/// One command of a pipeline, with the redirections after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) kind: CommandKind,
    /// The redirections of a compound command; those of a simple one lie in [`CommandKind::Simple`].
    pub(crate) redirections: Vec<Redirection>,
}

/// The kinds of commands that a script consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Simple(Simple),
    Group(List),
    Subshell(List),
    /// Conditions with what follows from them, and what follows from none.
    If(Vec<(List, List)>, List),
    /// A loop, `while` or `until`: condition and body.
    While(List, List),
    /// `for` and `select`: the variable, its values (`None`: the arguments), the body.
    For(String, Option<Vec<Word>>, List),
    /// `for ((…))`: the expressions, the body.
    Count(Word, List),
    /// The word, and the bodies with their patterns; true where one goes on with the next.
    Case(Word, Vec<(Vec<Word>, List, bool)>),
    Function(String, Box<Command>),
    Coprocess(Box<Command>),
    /// An arithmetic command, `((…))`.
    Arithmetic(Word),
    /// The words of `[[ … ]]`, the brackets included.
    Test(Vec<Word>),
}

/// A simple command: assignments, words and redirections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirections: Vec<Redirection>,
}

/// A variable that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The name; with a subscript or `+` it is written as it is, and so is harmless nowhere.
    pub(crate) name: String,
    /// The value; the elements of an array one after another.
    pub(crate) value: Word,
}

/// One redirection of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirection {
    pub(crate) kind: Redirect,
    /// The file, the descriptor, or the text of `<<<`.
    pub(crate) target: Word,
}

/// What a redirection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// Reads from a file: `<`.
    Read,
    /// `>`, `>>`, `>|`, `&>`, `&>>`, and `>&` in front of a file.
    Write,
    /// Reads and writes a file: `<>`.
    ReadWrite,
    /// `<&` and `>&` in front of a descriptor.
    Copy,
    /// Reads a text in the script: `<<<`.
    Text,
    /// `<<`, with the number of the here-document.
    Document(usize),
}
