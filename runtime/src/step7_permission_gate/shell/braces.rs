//! Brace expansion: `{a,b}` and `{1..3}` make several words of one, before anything else.

use super::word::{PieceKind, Word};

/// Words that are made of one.
const MAX_WORDS: usize = 256;

/// A group in a word, in bytes.
struct Group {
    start: usize,
    end: usize,
    commas: Vec<usize>,
}

/// Returns the words that result from one; `None` when there are too many.
pub(crate) fn expanded(word: &Word) -> Option<Vec<Word>> {
    let is_plain = !word.plain_pieces().any(|(_, it)| it.contains('{'));
    if is_plain {
        return Some(vec![word.clone()]);
    }
    let mut budget = MAX_WORDS;
    let mut all = expand(word, &mut budget)?;
    // Their commands run in each; it is enough to see them once.
    let (inner, sets) = (word.inner.clone(), word.sets);
    if let Some(first) = all.first_mut() {
        first.inner = inner;
        first.sets = sets;
    }
    Some(all)
}

fn expand(word: &Word, budget: &mut usize) -> Option<Vec<Word>> {
    *budget = budget.checked_sub(1)?;
    let Some((group, members)) = groups(word).into_iter().find_map(|it| {
        let members = members(word, &it)?;
        Some((it, members))
    }) else {
        return Some(vec![slice(word, 0, word.text.len())]);
    };
    let before = slice(word, 0, group.start);
    let after = expand(&slice(word, group.end + 1, word.text.len()), budget)?;
    let mut all = Vec::new();
    for member in members {
        for middle in expand(&member, budget)? {
            for end in &after {
                *budget = budget.checked_sub(1)?;
                all.push(concat_words(&[&before, &middle, end]));
            }
        }
    }
    Some(all)
}

/// All groups that are closed, by where they begin.
fn groups(word: &Word) -> Vec<Group> {
    let mut open: Vec<Group> = Vec::new();
    let mut found = Vec::new();
    for (start, piece) in word.plain_pieces() {
        for (i, byte) in piece.bytes().enumerate() {
            let at = start + i;
            match byte {
                b'{' => open.push(Group { start: at, end: at, commas: Vec::new() }),
                b',' => {
                    if let Some(last) = open.last_mut() {
                        last.commas.push(at);
                    }
                }
                b'}' => {
                    if let Some(mut last) = open.pop() {
                        last.end = at;
                        found.push(last);
                    }
                }
                _ => {}
            }
        }
    }
    found.sort_by_key(|it| it.start);
    found
}

/// The words that a group expands to; `None` when it is a plain word.
fn members(word: &Word, group: &Group) -> Option<Vec<Word>> {
    if !group.commas.is_empty() {
        let starts = [group.start].into_iter().chain(group.commas.iter().copied());
        let ends = group.commas.iter().copied().chain([group.end]);
        return Some(starts.zip(ends).map(|(start, end)| slice(word, start + 1, end)).collect());
    }
    let inside = slice(word, group.start + 1, group.end);
    if !inside.is_bare() {
        return None;
    }
    let ends: Vec<&str> = inside.text.split("..").collect();
    let (first, last, step) = match ends[..] {
        [first, last] => (first, last, 1),
        [first, last, step] => (first, last, step.parse::<i64>().ok()?.checked_abs()?.max(1)),
        _ => return None,
    };
    let single =
        |text: &str| text.chars().next().filter(|it| text.len() == 1 && it.is_ascii_alphabetic());
    let numbers = first.parse::<i64>().ok().zip(last.parse::<i64>().ok());
    let letters = single(first).zip(single(last));
    let (first, last) = match (numbers, letters) {
        (Some(ends), _) => ends,
        (None, Some((a, b))) => (i64::from(u32::from(a)), i64::from(u32::from(b))),
        (None, None) => return None,
    };
    // One more than is allowed, so that too many are noticed.
    let n_steps = (last.checked_sub(first)?.checked_abs()? / step).min(MAX_WORDS as i64 + 1);
    let sign = if last < first { -step } else { step };
    let at = |i: i64| first + i * sign;
    let show = |value: i64| match numbers {
        Some(_) => value.to_string(),
        None => {
            u32::try_from(value).ok().and_then(char::from_u32).map(String::from).unwrap_or_default()
        }
    };
    Some((0..=n_steps).map(|i| Word::plain(&show(at(i)))).collect())
}

/// A piece of a word, without the commands in it.
fn slice(word: &Word, start: usize, end: usize) -> Word {
    let mut found = Word { text: word.text[start..end].to_owned(), ..Word::default() };
    for span in &word.spans {
        if span.start >= start && span.end <= end {
            let mut span = *span;
            span.start -= start;
            span.end -= start;
            found.spans.push(span);
        }
    }
    found
}

fn concat_words(pieces: &[&Word]) -> Word {
    let mut found = Word::default();
    for piece in pieces {
        let offset = found.text.len();
        found.text.push_str(&piece.text);
        found.spans.extend(piece.spans.iter().map(|it| {
            let mut span = *it;
            span.start += offset;
            span.end += offset;
            span
        }));
    }
    // Nothing that is quoted is still a word.
    if found.text.is_empty() && found.spans.is_empty() {
        found.mark(0, PieceKind::Quoted);
    }
    found
}
