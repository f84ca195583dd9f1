//! The ways to damage a transcript.

/// One damage. Lines count from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum Damage {
    /// The line is gone.
    Cut(usize),
    /// The line and the next one have changed places.
    Swap(usize),
    /// The last letter of a key is another one: the line, and the place of that letter in it.
    Letter(usize, usize),
}

/// Every line cut, every neighbouring pair swapped, every key changed by a letter.
pub(super) fn damages(bytes: &[u8]) -> Vec<Damage> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|it| *it == b'\n').collect();
    let cuts = (0..lines.len()).map(Damage::Cut);
    let swaps = (0..lines.len() - 1).map(Damage::Swap);
    let letters = lines.iter().enumerate().flat_map(|(at, line)| {
        key_ends(line).into_iter().map(move |place| Damage::Letter(at, place))
    });
    cuts.chain(swaps).chain(letters).collect()
}

/// The places of the last letters of all keys of a line of JSON.
fn key_ends(line: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < line.len() {
        if line[at] == b'"' {
            let mut end = at + 1;
            while line[end] != b'"' {
                end += if line[end] == b'\\' { 2 } else { 1 };
            }
            if line.get(end + 1) == Some(&b':') && at + 1 < end {
                ends.push(end - 1);
            }
            at = end;
        }
        at += 1;
    }
    ends
}

impl Damage {
    /// The line, counted from 1 in the damaged file, at which it is noticed: the one that it is in or,
    /// where what is missing is noticed by its successor, the next one.
    pub(super) fn is_noticed_at(self, line: u64) -> bool {
        let (Damage::Cut(at) | Damage::Swap(at) | Damage::Letter(at, _)) = self;
        (at as u64 + 1..=at as u64 + 2).contains(&line)
    }

    /// The transcript with this damage.
    pub(super) fn apply(self, bytes: &[u8]) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> =
            bytes.split_inclusive(|it| *it == b'\n').map(<[u8]>::to_vec).collect();
        match self {
            Damage::Cut(at) => drop(lines.remove(at)),
            Damage::Swap(at) => lines.swap(at, at + 1),
            Damage::Letter(at, place) => {
                let letter = &mut lines[at][place];
                *letter = if *letter == b'z' { b'y' } else { b'z' };
            }
        }
        lines.concat()
    }
}
