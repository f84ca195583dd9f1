//! What the values of a template may take together.
//!
//! Every operator and filter whose result can be larger than what goes in runs in here: what it would
//! make is bounded before it is made, and what it has made is counted.

use std::fmt::{self, Write};

use minijinja::{
    Environment, Error, ErrorKind, State, filters,
    value::{Kwargs, Rest, Value, ValueKind},
};

/// Bytes that the texts and lists of one template or expression may take together.
pub(super) const MAX_MEMORY: usize = 32 << 20;

/// Characters that a filter may fill up to, and parts that it may make.
const MAX_WIDTH: u64 = 100_000;

/// Bytes that an item of a list counts.
const ITEM: usize = 32;

/// Counts the bytes of a value; `None`: more than [`MAX_MEMORY`].
pub(super) fn size(value: &Value) -> Option<usize> {
    size_of(value, MAX_MEMORY)
}

/// The most entries that a list of matches may have.
pub(super) const MAX_ITEMS: usize = MAX_MEMORY / ITEM;

/// What one evaluation has left.
#[derive(Debug)]
struct BytesLeft(usize);

/// Replaces the filters that make values grow, and adds the functions that represent operators.
pub(super) fn install(env: &mut Environment<'_>) {
    // It writes everything out that a template can see.
    env.add_function("debug", || -> Result<Value, Error> {
        Err(Error::new(ErrorKind::UnknownFunction, "`debug` is not supported in playbooks"))
    });
    env.add_function("bounded_cat", cat);
    env.add_function("bounded_add", add);
    env.add_function("bounded_mul", mul);
    let all = [
        ("lower", Value::from_function(filters::lower)),
        ("upper", Value::from_function(filters::upper)),
        ("title", Value::from_function(filters::title)),
        ("capitalize", Value::from_function(filters::capitalize)),
        ("escape", Value::from_function(filters::escape)),
        ("e", Value::from_function(filters::escape)),
        ("safe", Value::from_function(filters::safe)),
        ("replace", Value::from_function(filters::replace)),
        ("trim", Value::from_function(filters::trim)),
        ("join", Value::from_function(filters::join)),
        ("split", Value::from_function(filters::split)),
        ("lines", Value::from_function(filters::lines)),
        ("string", Value::from_function(filters::string)),
        ("int", Value::from_function(filters::int)),
        ("float", Value::from_function(filters::float)),
        ("sum", Value::from_function(filters::sum)),
        ("indent", Value::from_function(filters::indent)),
        ("pprint", Value::from_function(filters::pprint)),
        ("format", Value::from_function(filters::format)),
        ("tojson", Value::from_function(filters::tojson)),
        ("list", Value::from_function(filters::list)),
        ("sort", Value::from_function(filters::sort)),
        ("reverse", Value::from_function(filters::reverse)),
        ("unique", Value::from_function(filters::unique)),
        ("batch", Value::from_function(filters::batch)),
        ("slice", Value::from_function(filters::slice)),
        ("chain", Value::from_function(filters::chain)),
        ("zip", Value::from_function(filters::zip)),
    ];
    for (name, filter) in all {
        let guarded = move |state: &mut State<'_, '_>, args: Rest<Value>, named: Kwargs| {
            let Rest(mut args) = args;
            if named.args().next().is_some() {
                args.push(named.into());
            }
            // Most of these write their arguments out, so what that makes is counted first.
            let size = args.iter().try_fold(0, |all, it| Some(size_of(it, MAX_MEMORY)? + all));
            let size =
                size.and_then(|size| Some(size + extra(name, &args)?)).ok_or_else(too_much)?;
            take(state, size)?;
            let made = filter.call(state, &args)?;
            charge(state, &made)?;
            Ok::<Value, Error>(made)
        };
        env.add_filter(name, guarded);
    }
}

/// Takes a value that was made out of what is left.
pub(super) fn charge(state: &mut State<'_, '_>, made: &Value) -> Result<(), Error> {
    let size = size_of(made, MAX_MEMORY).ok_or_else(too_much)?;
    take(state, size)
}

/// Replaces every match of a pattern in a text. Fails as soon as the text takes more bytes than values may.
pub(super) fn sub(
    state: &mut State<'_, '_>,
    text: &str,
    pattern: &regex::Regex,
    to: &str,
) -> Result<String, Error> {
    let mut out = String::new();
    let mut copied = 0;
    for found in pattern.captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        out.push_str(&text[copied..whole.start()]);
        found.expand(to, &mut out);
        copied = whole.end();
        if MAX_MEMORY < out.len() {
            return Err(too_much());
        }
    }
    out.push_str(&text[copied..]);
    take(state, out.len())?;
    Ok(out)
}

fn take(state: &mut State<'_, '_>, size: usize) -> Result<(), Error> {
    let left = state.get_or_insert_extension(BytesLeft(MAX_MEMORY));
    left.0 = left.0.checked_sub(size).ok_or_else(too_much)?;
    Ok(())
}

fn too_much() -> Error {
    let why = format!("the values of a template take more than {} MiB", MAX_MEMORY >> 20);
    Error::new(ErrorKind::InvalidOperation, why)
}

/// Bytes of a value written out, a list with what its items take; `None`: more than the limit. Stops
/// there, however large the value would be.
fn size_of(value: &Value, limit: usize) -> Option<usize> {
    if let Some(text) = value.as_str() {
        return Some(text.len()).filter(|it| *it <= limit);
    }
    let n_items = match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.len().unwrap_or(0),
        _ => 0,
    };
    let mut written = Written { n: n_items.checked_mul(ITEM)?, limit };
    if limit < written.n {
        return None;
    }
    write!(written, "{value}").ok()?;
    Some(written.n)
}

/// Counts what is written, up to a limit.
struct Written {
    n: usize,
    limit: usize,
}

impl Write for Written {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.n += text.len();
        if self.limit < self.n { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Bytes that a filter makes in addition to those of its arguments, at most; `None`: too many.
fn extra(name: &str, args: &[Value]) -> Option<usize> {
    let text = |at: usize| args.get(at).map(ToString::to_string).unwrap_or_default();
    let number = |at: usize, key: &str| {
        let by_name = args.last().and_then(|it| Kwargs::try_from(it.clone()).ok());
        let by_name = by_name.and_then(|it| it.peek::<u64>(key).ok());
        args.get(at).and_then(Value::as_usize).map(|it| it as u64).or(by_name).unwrap_or(0)
    };
    let width = |it: u64| usize::try_from(it).ok().filter(|_| it <= MAX_WIDTH);
    match name {
        "replace" => {
            let (text, from, to) = (text(0), text(1), text(2));
            text.matches(&*from).count().checked_mul(to.len())
        }
        "join" => args.first()?.len().unwrap_or(0).checked_mul(text(1).len()),
        "indent" => text(0).lines().count().checked_mul(width(number(1, "width"))? + 4),
        "lines" => text(0).lines().count().checked_mul(ITEM),
        "list" | "sort" | "unique" if args.first()?.as_str().is_some() => {
            text(0).chars().count().checked_mul(ITEM)
        }
        "split" => {
            let n_parts = match args.get(1).and_then(Value::as_str) {
                Some(with) if !with.is_empty() => text(0).matches(with).count(),
                _ => text(0).split_whitespace().count(),
            };
            n_parts.checked_mul(ITEM)
        }
        "batch" | "slice" => Some(width(number(1, "count"))? * ITEM),
        "format" => widths(&text(0)),
        "tojson" | "pprint" => {
            let width = width(number(1, "indent"))?;
            // An item has a line of its own, and is as deep as its brackets are.
            args.first()?.to_string().len().checked_mul(2 + width.min(64))
        }
        _ => Some(0),
    }
}

/// What the widths and precisions of a format add up to; `None`: too much, or one that is an argument.
fn widths(format: &str) -> Option<usize> {
    let mut all = 0_usize;
    let mut digits = format.split(|c: char| !c.is_ascii_digit()).filter(|it| !it.is_empty());
    let has_stars = format.split('%').skip(1).any(|it| {
        it.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #0.()".contains(c))
            .starts_with('*')
    });
    if has_stars {
        return None;
    }
    digits.try_for_each(|it| {
        let width = it.parse::<u64>().ok().filter(|it| *it <= MAX_WIDTH)?;
        all = all.checked_add(usize::try_from(width).ok()?)?;
        Some(())
    })?;
    Some(all)
}

fn cat(state: &mut State<'_, '_>, args: Rest<Value>) -> Result<Value, Error> {
    let sizes = args.iter().try_fold(0, |all, it| Some(size_of(it, MAX_MEMORY)? + all));
    take(state, sizes.ok_or_else(too_much)?)?;
    let mut made = String::new();
    for it in &*args {
        // Writing to a string cannot fail; what a value says of itself may.
        write!(made, "{it}").map_err(|_| too_much())?;
    }
    Ok(Value::from(made))
}

fn add(state: &mut State<'_, '_>, args: Rest<Value>) -> Result<Value, Error> {
    fold(state, &args, "a + b")
}

fn mul(state: &mut State<'_, '_>, args: Rest<Value>) -> Result<Value, Error> {
    // A text or list as often as a number says.
    let times = args.iter().filter_map(Value::as_usize).fold(1_usize, usize::saturating_mul);
    let grown = args.iter().find(|it| it.as_usize().is_none() && it.kind() != ValueKind::Number);
    if let Some(grown) = grown {
        let size = size_of(grown, MAX_MEMORY).ok_or_else(too_much)?;
        let size = if grown.as_str().is_some() { size } else { size.max(ITEM) };
        take(state, size.checked_mul(times).ok_or_else(too_much)?)?;
    }
    fold(state, &args, "a * b")
}

/// Joins the arguments, two at a time, with an operator of the engine.
fn fold(state: &mut State<'_, '_>, args: &[Value], expression: &str) -> Result<Value, Error> {
    let Some((first, rest)) = args.split_first() else { return Ok(Value::UNDEFINED) };
    let is_number = |it: &&Value| it.kind() == ValueKind::Number;
    if !args.iter().all(|it| is_number(&it)) {
        let sizes = args.iter().try_fold(0, |all, it| Some(size_of(it, MAX_MEMORY)? + all));
        take(state, sizes.ok_or_else(too_much)?)?;
    }
    let env = Environment::empty();
    let operator = env.compile_expression(expression)?;
    rest.iter().try_fold(first.clone(), |a, b| {
        operator.eval(Value::from_pairs([("a", a), ("b", b.clone())]))
    })
}
