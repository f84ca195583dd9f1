//! The size of a text in tokens, estimated by the kinds of its characters.
//!
//! Tokenizers cut a text into pieces first, and most pieces of common text become one token: a word
//! with the space before it, up to three digits, a few marks in a row, an indentation. The pass counts
//! those pieces, as the published pattern of `o200k_base` cuts them. What has no such pieces counts by
//! the character. The weights are the one token of a piece and the means that are left for the rest on
//! the texts of `tokens/corpus`, rounded; `docs/context.md` has the errors, which a test holds.

use crate::saturating::Saturating as _;

/// Hundredths of a token for a piece: a word, three digits, four marks, an indentation, a symbol.
const PIECE: u64 = 100;

/// For each letter of a word after the sixth, and in addition for each letter with an accent: four for
/// a token, which is also what a text of no known words takes.
const LETTER: u64 = 25;

/// For each letter of another alphabet. Russian takes 27; Greek, Arabic and Hindi take more.
const OTHER_LETTER: u64 = 30;

/// For each character of Chinese, Japanese and Korean.
const IDEOGRAPH: u64 = 71;

/// For each character of a run that is no words: base64, digests.
const UNBROKEN: u64 = 66;

/// Off the first letters of a word right after a single mark, which many tokens hold with it.
const JOINED: u64 = 50;

/// Characters from which on a run is looked at for words.
const SHORTEST_UNBROKEN: u64 = 24;

/// How many hundredths make a token.
const TOKEN: u64 = 100;

/// How large a text is, in characters and by their kinds. Sizes add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Unicode scalar values.
    pub(crate) chars: u64,
    /// Hundredths of a token.
    weight: u64,
}

impl Size {
    /// Of a text. Cost: one pass over it.
    pub(crate) fn of(text: &str) -> Self {
        Self { chars: text.chars().count() as u64, weight: weight(text) }
    }

    /// Of what counts for this many characters of no known kind, as pictures do.
    pub(crate) fn of_chars(chars: u64) -> Self {
        Self { chars, weight: chars.saturating_mul(LETTER) }
    }

    /// Tokens, rounded up.
    pub(super) fn by_class(self) -> u64 {
        self.weight.div_ceil(TOKEN)
    }

    /// The part of the weight that `part` tokens of it are, as characters, rounded up.
    pub(crate) fn chars_of(self, part: u64) -> u64 {
        let chars = u128::from(part) * u128::from(TOKEN) * u128::from(self.chars);
        u64::saturating(chars.div_ceil(u128::from(self.weight.max(1))))
    }
}

impl std::ops::Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            chars: self.chars.saturating_add(other.chars),
            weight: self.weight.saturating_add(other.weight),
        }
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), std::ops::Add::add)
    }
}

/// What a character is to the pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Lower,
    Upper,
    Accented,
    Digit,
    Mark,
    Line,
    Space,
    Ideograph,
    OtherLetter,
    Symbol,
}

impl CharClass {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Digit,
            '\n' | '\r' => Self::Line,
            ' ' | '\t' => Self::Space,
            '\0'..='\x7f' => Self::Mark,
            '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Self::Accented,
            '\u{1100}'..='\u{11ff}'
            | '\u{2e80}'..='\u{a4cf}'
            | '\u{ac00}'..='\u{d7af}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff00}'..='\u{ffef}'
            | '\u{20000}'..='\u{3ffff}' => Self::Ideograph,
            _ if c.is_alphanumeric() || is_combining(c) => Self::OtherLetter,
            _ => Self::Symbol,
        }
    }

    fn is_of_word(self) -> bool {
        matches!(self, Self::Lower | Self::Upper | Self::Accented)
    }
}

/// Signs that stand on letters in the alphabets of Europe, of the Near East and of South Asia.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{6ed}' | '\u{900}'..='\u{e4e}')
}

/// A run of letters, digits and the marks of base64.
#[derive(Default)]
struct LetterRun {
    n: u64,
    /// How often a letter came after a digit, a digit after a letter, or a capital after a small letter.
    n_changes: u64,
    last: Option<CharClass>,
    /// The weight of the text before it.
    before: u64,
}

impl LetterRun {
    fn take(&mut self, class: CharClass, weight: u64) {
        if self.n == 0 {
            self.before = weight;
        }
        self.n += 1;
        if class != CharClass::Mark {
            let is_change = |it| it != class && (it, class) != (CharClass::Upper, CharClass::Lower);
            self.n_changes += u64::from(self.last.is_some_and(is_change));
            self.last = Some(class);
        }
    }

    /// The weight with the run, which has ended, given the weight that its pieces led to.
    fn end(&mut self, weight: u64) -> u64 {
        let Self { n, n_changes, before, .. } = std::mem::take(self);
        // Names and paths change at every fifth character at most, and digests at every second.
        let is_unbroken = SHORTEST_UNBROKEN <= n && n * 3 <= n_changes * 10;
        if is_unbroken { before + n * UNBROKEN } else { weight }
    }
}

/// Hundredths of a token that a text takes.
fn weight(text: &str) -> u64 {
    let (mut weight, mut run) = (0_u64, LetterRun::default());
    // The class before, how many of it came in a row, and the letters of the word so far.
    let (mut last, mut n, mut n_letters) = (None, 0_u64, 0_u64);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let class = CharClass::of(c);
        match class {
            CharClass::Lower | CharClass::Upper | CharClass::Digit => run.take(class, weight),
            CharClass::Mark if matches!(c, '+' | '/' | '=') => run.take(class, weight),
            _ => weight = run.end(weight),
        }
        let is_single = |it| last == Some(it) && n == 1;
        let n_before = if last == Some(class) { n } else { 0 };
        let piece = |begins: bool| if begins { PIECE } else { 0 };
        weight += match class {
            CharClass::Lower | CharClass::Upper | CharClass::Accented => {
                let goes_on = last.is_some_and(CharClass::is_of_word)
                    && (class != CharClass::Upper || last != Some(CharClass::Lower));
                n_letters = if goes_on { n_letters + 1 } else { 1 };
                let accent = if class == CharClass::Accented { LETTER } else { 0 };
                accent
                    + match n_letters {
                        1 if is_single(CharClass::Mark) => PIECE - JOINED,
                        1 => PIECE,
                        2..=6 => 0,
                        _ => LETTER,
                    }
            }
            // A space goes with a word that follows, and not with a number.
            CharClass::Digit => {
                piece(n_before.is_multiple_of(3))
                    + piece(n_before == 0 && is_single(CharClass::Space))
            }
            CharClass::Mark => piece(n_before.is_multiple_of(4)),
            // Ends of lines go with marks before them.
            CharClass::Line => piece(n_before == 0 && last != Some(CharClass::Mark)),
            CharClass::Space => piece(n_before % 16 == 1),
            CharClass::Ideograph => IDEOGRAPH,
            CharClass::OtherLetter => OTHER_LETTER,
            CharClass::Symbol => PIECE,
        };
        (last, n) = (Some(class), n_before + 1);
        if class == CharClass::Lower {
            // Most of a text: what follows in the word is counted without being looked at further.
            let rest = chars.as_str();
            let n_more = rest.bytes().take_while(u8::is_ascii_lowercase).count();
            chars = rest.get(n_more..).unwrap_or_default().chars();
            let n_more = n_more as u64;
            weight += (n_letters + n_more).saturating_sub(n_letters.max(6)) * LETTER;
            (n, n_letters, run.n) = (n + n_more, n_letters + n_more, run.n + n_more);
        }
    }
    run.end(weight)
}

#[cfg(test)]
mod tests;
