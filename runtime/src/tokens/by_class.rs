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

/// For each character of a run that is not words: base64, digests.
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
    /// Number of Unicode scalar values.
    pub(crate) chars: u64,
    /// Hundredths of a token.
    weight: u64,
}

impl Size {
    /// Measures a text. Cost: one pass over it.
    pub(crate) fn of(text: &str) -> Self {
        Self { chars: text.chars().count() as u64, weight: weight(text) }
    }

    /// Returns the size of what counts for this many characters of no known kind, as pictures do.
    pub(crate) fn of_chars(chars: u64) -> Self {
        Self { chars, weight: chars.saturating_mul(LETTER) }
    }

    /// Returns the tokens, rounded up.
    pub(crate) fn by_class(self) -> u64 {
        self.weight.div_ceil(TOKEN)
    }

    /// Returns the part of the weight that `part` tokens of it are, as characters, rounded up.
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

/// The kinds of characters, which count differently.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum CharClass {
    Lower,
    Upper,
    Digit,
    Mark,
    Line,
    Space,
    Accented,
    Ideograph,
    OtherLetter,
    Symbol,
}

/// The classes of ASCII, by their numbers.
const ASCII: [CharClass; 6] = [
    CharClass::Lower,
    CharClass::Upper,
    CharClass::Digit,
    CharClass::Mark,
    CharClass::Line,
    CharClass::Space,
];

/// The number of the class of each byte that is a character by itself, and another one for those that are not.
const NUMBERS: [u8; 256] = {
    let mut numbers = [u8::MAX; 256];
    let mut byte = 0;
    while byte < 128 {
        numbers[byte] = match byte as u8 {
            b'a'..=b'z' => CharClass::Lower,
            b'A'..=b'Z' => CharClass::Upper,
            b'0'..=b'9' => CharClass::Digit,
            b'\n' | b'\r' => CharClass::Line,
            b' ' | b'\t' => CharClass::Space,
            _ => CharClass::Mark,
        } as u8;
        byte += 1;
    }
    numbers
};

impl CharClass {
    /// Returns the kind of a character that takes more than one byte.
    fn of(c: char) -> Self {
        match c {
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
    /// Takes in `n` characters of a class.
    #[inline]
    fn take(&mut self, class: CharClass, n: u64, weight: u64) {
        if self.n == 0 {
            self.before = weight;
        }
        self.n += n;
        if class != CharClass::Mark {
            let is_change = |it| it != class && (it, class) != (CharClass::Upper, CharClass::Lower);
            self.n_changes += u64::from(self.last.is_some_and(is_change));
            self.last = Some(class);
        }
    }

    /// The weight with the run, which has ended, given the weight that its pieces led to.
    #[inline]
    fn end(&mut self, weight: u64) -> u64 {
        if self.n == 0 {
            return weight;
        }
        let Self { n, n_changes, before, .. } = std::mem::take(self);
        // Names and paths change at every fifth character at most, and digests at every second.
        let is_unbroken = SHORTEST_UNBROKEN <= n && n * 3 <= n_changes * 10;
        if is_unbroken { before + n * UNBROKEN } else { weight }
    }
}

/// The sum of the weights in a text. It goes by what is alike and next to one another: a word, a number, an
/// indentation.
#[derive(Default)]
struct WeightSum {
    weight: u64,
    run: LetterRun,
    /// The class before, and how many of it came in a row.
    last: Option<CharClass>,
    n: u64,
    /// The letters of the word so far.
    n_letters: u64,
}

impl WeightSum {
    fn is_after_single(&self, class: CharClass) -> bool {
        self.last == Some(class) && self.n == 1
    }

    /// Takes in letters of a class: all small, all capital, or one with an accent.
    #[inline]
    fn letters(&mut self, class: CharClass, n: u64) {
        let goes_on = self.last.is_some_and(CharClass::is_of_word)
            && (class != CharClass::Upper || self.last != Some(CharClass::Lower));
        let n_before = if goes_on { self.n_letters } else { 0 };
        self.n_letters = n_before + n;
        if n_before == 0 {
            self.weight +=
                if self.is_after_single(CharClass::Mark) { PIECE - JOINED } else { PIECE };
        }
        self.weight += self.n_letters.saturating_sub(n_before.max(6)) * LETTER;
    }

    /// Takes in ASCII characters of a class, all that are next to one another.
    #[inline]
    fn alike(&mut self, class: CharClass, bytes: &[u8]) {
        let n = bytes.len() as u64;
        match class {
            CharClass::Lower | CharClass::Upper => {
                self.run.take(class, n, self.weight);
                self.letters(class, n);
            }
            // A space goes with a word that follows, and not with a number.
            CharClass::Digit => {
                self.run.take(class, n, self.weight);
                let space = if self.is_after_single(CharClass::Space) { PIECE } else { 0 };
                self.weight += n.div_ceil(3) * PIECE + space;
            }
            CharClass::Line => {
                self.weight = self.run.end(self.weight);
                // Ends of lines go with marks before them.
                self.weight += if self.last == Some(CharClass::Mark) { 0 } else { PIECE };
            }
            CharClass::Space => {
                self.weight = self.run.end(self.weight);
                self.weight += (n + 14) / 16 * PIECE;
            }
            _ => self.marks(bytes),
        }
        (self.last, self.n) = (Some(class), n);
    }

    #[inline]
    fn marks(&mut self, marks: &[u8]) {
        for (n_before, mark) in marks.iter().enumerate() {
            match mark {
                b'+' | b'/' | b'=' => self.run.take(CharClass::Mark, 1, self.weight),
                _ => self.weight = self.run.end(self.weight),
            }
            if n_before % 4 == 0 {
                self.weight += PIECE;
            }
        }
    }

    /// Takes in a character that is more than one byte.
    fn add_multibyte(&mut self, class: CharClass) {
        self.weight = self.run.end(self.weight);
        match class {
            CharClass::Accented => {
                self.weight += LETTER;
                self.letters(class, 1);
            }
            CharClass::Ideograph => self.weight += IDEOGRAPH,
            CharClass::OtherLetter => self.weight += OTHER_LETTER,
            _ => self.weight += PIECE,
        }
        (self.last, self.n) = (Some(class), 1);
    }
}

/// Hundredths of a token that a text takes.
fn weight(text: &str) -> u64 {
    let (mut sum, bytes, mut at) = (WeightSum::default(), text.as_bytes(), 0);
    while let Some(rest @ [first, ..]) = bytes.get(at..) {
        let number = NUMBERS[usize::from(*first)];
        if let Some(class) = ASCII.get(usize::from(number)) {
            let is_other = |it: &u8| NUMBERS[usize::from(*it)] != number;
            let n = rest.iter().position(is_other).unwrap_or(rest.len());
            sum.alike(*class, &rest[..n]);
            at += n;
        } else {
            let Some(c) = text.get(at..).and_then(|it| it.chars().next()) else { break };
            sum.add_multibyte(CharClass::of(c));
            at += c.len_utf8();
        }
    }
    sum.run.end(sum.weight)
}

#[cfg(test)]
mod tests;
