//! The body of a request to a server, in pieces that are sent one after another.
//!
//! What of a conversation is settled is sent with each request, and its texts are kept anyway. A body refers to
//! them, so that making and holding one takes no time and no memory for what was said before; what sends it
//! copies a piece at a time.

use std::{fmt, sync::Arc};

use bytes::Bytes;

/// Bytes of a piece that is put together of texts. It is small enough to be made of memory that was used for the
/// piece before, and large enough that its number does not count.
const PIECE: usize = 32 * 1024;

/// Texts that are kept, in the order in which they are sent. What they are never changes.
pub(crate) trait KeptTexts: fmt::Debug + Send + Sync {
    /// Returns a text of an element, both counted from 0; `None` after its last.
    fn text(&self, element: usize, n: usize) -> Option<&str>;

    /// Returns how many elements have texts.
    fn n_elements(&self) -> usize;
}

/// The body of a request. Cheap to clone.
#[derive(Clone, Default)]
pub struct WireBody {
    front: Bytes,
    kept: Option<Arc<dyn KeptTexts>>,
    n_kept: usize,
    back: Bytes,
}

/// The pieces of a body, in order. None is empty.
#[derive(Clone, Debug)]
pub struct BodyPieces {
    body: WireBody,
    n_left: usize,
    /// The next text to be copied of what is kept, and the bytes of it that were.
    element: usize,
    text: usize,
    n_copied: usize,
}

impl WireBody {
    /// Makes a body of three parts. `n_kept` is the length of all kept texts; without any there is one part.
    pub(crate) fn with_kept(
        mut front: Vec<u8>,
        (kept, n_kept): (Arc<dyn KeptTexts>, usize),
        back: Vec<u8>,
    ) -> Self {
        if n_kept == 0 {
            front.extend_from_slice(&back);
            return front.into();
        }
        Self { front: front.into(), kept: Some(kept), n_kept, back: back.into() }
    }

    /// Counts the bytes of the body.
    pub fn len(&self) -> usize {
        self.front.len() + self.n_kept + self.back.len()
    }

    /// Returns whether the body has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the body in one piece, and copies it where it is not in one. What sends a body does better with
    /// [`pieces`](Self::pieces).
    pub fn to_bytes(&self) -> Bytes {
        if self.kept.is_none() && self.front.is_empty() {
            return self.back.clone();
        }
        let mut bytes = Vec::with_capacity(self.len());
        self.pieces().for_each(|it| bytes.extend_from_slice(&it));
        bytes.into()
    }

    /// Counts the bytes that are its own, and no texts that are kept anyway.
    #[cfg(test)]
    pub(crate) fn n_own(&self) -> usize {
        self.front.len() + self.back.len()
    }

    /// Returns the pieces of the body, which are made as they are asked for. What is not in one piece already is put
    /// together in pieces of 32 KiB.
    pub fn pieces(&self) -> BodyPieces {
        BodyPieces { body: self.clone(), n_left: self.n_kept, element: 0, text: 0, n_copied: 0 }
    }
}

impl BodyPieces {
    /// Counts the bytes that are still to come.
    pub fn n_left(&self) -> usize {
        self.body.front.len() + self.n_left + self.body.back.len()
    }

    /// Puts the next piece of what is kept together.
    fn kept(&mut self) -> Option<Bytes> {
        let texts = self.body.kept.as_ref()?;
        let n_bytes = self.n_left.min(PIECE);
        let mut piece = Vec::with_capacity(n_bytes);
        while piece.len() < n_bytes && self.element < texts.n_elements() {
            let Some(text) = texts.text(self.element, self.text) else {
                (self.element, self.text) = (self.element + 1, 0);
                continue;
            };
            let rest = &text.as_bytes()[self.n_copied..];
            let n_more = rest.len().min(n_bytes - piece.len());
            piece.extend_from_slice(&rest[..n_more]);
            self.n_copied += n_more;
            if n_more == rest.len() {
                (self.text, self.n_copied) = (self.text + 1, 0);
            }
        }
        self.n_left -= piece.len();
        (!piece.is_empty()).then(|| piece.into())
    }
}

impl Iterator for BodyPieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let front = std::mem::take(&mut self.body.front);
        if !front.is_empty() {
            return Some(front);
        }
        if 0 < self.n_left
            && let Some(piece) = self.kept()
        {
            return Some(piece);
        }
        let back = std::mem::take(&mut self.body.back);
        (!back.is_empty()).then_some(back)
    }
}

impl From<Bytes> for WireBody {
    fn from(back: Bytes) -> Self {
        Self { back, ..Self::default() }
    }
}

impl From<Vec<u8>> for WireBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for WireBody {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for WireBody {
    fn from(text: &'static str) -> Self {
        Bytes::from(text).into()
    }
}

/// Bodies are equal whose bytes are.
impl PartialEq for WireBody {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.to_bytes() == other.to_bytes()
    }
}

impl Eq for WireBody {}

impl fmt::Debug for WireBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireBody").field("n_bytes", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Elements, each of some texts.
    #[derive(Debug)]
    struct Texts(Vec<Vec<String>>);

    impl KeptTexts for Texts {
        fn text(&self, element: usize, n: usize) -> Option<&str> {
            self.0.get(element)?.get(n).map(String::as_str)
        }

        fn n_elements(&self) -> usize {
            self.0.len()
        }
    }

    /// A text of up to three pieces, most often a short one.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => (0..40_usize, "[a-zä]").prop_map(|(n, it)| it.repeat(n)),
            1 => (0..3 * PIECE, "[a-zä]").prop_map(|(n, it)| it.repeat(n)),
        ]
    }

    fn texts() -> impl Strategy<Value = Vec<Vec<String>>> {
        proptest::collection::vec(proptest::collection::vec(text(), 0..4), 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        // REQ: CTX-7
        #[test]
        fn pieces_of_a_body_are_its_texts_in_order(
            front in text(),
            texts in texts(),
            back in text(),
        ) {
            let whole = format!("{front}{}{back}", texts.concat().concat());
            let n_kept = texts.iter().flatten().map(String::len).sum();
            let kept: Arc<dyn KeptTexts> = Arc::new(Texts(texts));
            let ends = (front.into_bytes(), back.into_bytes());
            let n_ends = ends.0.len() + ends.1.len();
            let body = WireBody::with_kept(ends.0, (kept, n_kept), ends.1);
            prop_assert_eq!((body.len(), body.is_empty()), (whole.len(), whole.is_empty()));
            prop_assert_eq!(body.to_bytes(), whole.as_bytes());
            prop_assert_eq!(&body, &WireBody::from(whole.clone()));
            let (mut pieces, mut seen) = (body.pieces(), Vec::new());
            while let Some(piece) = pieces.next() {
                prop_assert!(!piece.is_empty() && piece.len() <= PIECE.max(n_ends));
                seen.extend_from_slice(&piece);
                prop_assert_eq!(pieces.n_left(), whole.len() - seen.len());
            }
            prop_assert_eq!(seen, whole.into_bytes());
        }
    }

    #[test]
    fn body_in_one_piece_is_not_copied() {
        let text = Bytes::from(vec![b'x'; 100]);
        let body = WireBody::from(text.clone());
        assert_eq!(body.to_bytes().as_ptr(), text.as_ptr());
        assert_eq!(body.pieces().next().map(|it| it.as_ptr()), Some(text.as_ptr()));
        assert_eq!((WireBody::default().len(), WireBody::default().pieces().next()), (0, None));
    }
}
