//! What a shell command is made of.

use super::word::Word;

/// Commands one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List(pub(crate) Vec<Item>);

/// One member of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The first pipeline.
    pub(crate) first: Pipeline,
    /// Those after `&&` and `||`.
    pub(crate) rest: Vec<(Connector, Pipeline)>,
    /// It ends with `&`.
    pub(crate) is_background: bool,
}

/// What stands between two pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connector {
    And,
    Or,
}

/// Commands joined by `|`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pipeline {
    /// It begins with `!`.
    pub(crate) is_negated: bool,
    /// The commands.
    pub(crate) commands: Vec<Command>,
}

/// One command of a pipeline, with the redirections after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) kind: Kind,
    /// Those of a compound; a simple command has its own.
    pub(crate) redirections: Vec<Redirection>,
}

/// Kinds of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Simple(Simple),
    Group(List),
    Subshell(List),
    /// Conditions with what follows from them, and what follows from none.
    If(Vec<(List, List)>, List),
    /// `while` and `until`.
    While(List, List),
    /// `for` and `select`: the variable, its values (`None`: the arguments), the body.
    For(String, Option<Vec<Word>>, List),
    /// `for ((…))`: the expressions, the body.
    Count(Word, List),
    /// The word, and the bodies with their patterns; true where one goes on with the next.
    Case(Word, Vec<(Vec<Word>, List, bool)>),
    Function(String, Box<Command>),
    Coprocess(Box<Command>),
    /// `((…))`.
    Arithmetic(Word),
    /// The words of `[[ … ]]`, the brackets included.
    Test(Vec<Word>),
}

/// A simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirections: Vec<Redirection>,
}

/// A variable that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The name; with a subscript or `+` it is written as it stands, and so is harmless nowhere.
    pub(crate) name: String,
    /// The value; the elements of an array one after another.
    pub(crate) value: Word,
}

/// A redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirection {
    pub(crate) kind: Redirect,
    /// The file, the descriptor, or the text of `<<<`.
    pub(crate) target: Word,
}

/// What a redirection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// `<`
    Read,
    /// `>`, `>>`, `>|`, `&>`, `&>>`, and `>&` in front of a file.
    Write,
    /// `<>`
    ReadWrite,
    /// `<&` and `>&` in front of a descriptor.
    Copy,
    /// `<<<`
    Text,
    /// `<<`, with the number of the here-document.
    Document(usize),
}
