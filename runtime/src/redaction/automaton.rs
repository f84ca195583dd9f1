//! Finds where patterns begin: the words that shapes begin with, and whole values.
//!
//! The automaton of Aho and Corasick ("Efficient string matching", 1975): one step per byte, whatever
//! the patterns are, and the depth of a node is the number of bytes that may yet become one. Letters
//! are compared without their case here; who takes a match compares again where case counts.

use std::collections::VecDeque;

use super::{SecretValue, table::TABLE};

/// The node at which nothing of a pattern was read.
pub(super) const ROOT: u32 = 0;

/// Takes the place of a node where there is none.
const NONE: u32 = u32::MAX;

/// What was found to end at a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AutomatonWord {
    /// The beginning of the shape of this rule, of this many bytes.
    Anchor { rule: usize, n_bytes: usize },
    /// The configured value at this place of the list.
    Value(usize),
}

#[derive(Debug, Default)]
struct TrieNode {
    /// Each byte that goes on from here and the node that it leads to, sorted by byte.
    next: Vec<(u8, u32)>,
    fail: u32,
    depth: u32,
    /// Whether a pattern goes through it that may follow any character.
    is_free: bool,
    words: Vec<AutomatonWord>,
    /// The nearest node on the way of fails that has words.
    shorter: u32,
}

#[derive(Debug)]
pub(super) struct Automaton {
    nodes: Vec<TrieNode>,
    /// The steps from the root, by byte.
    first: Box<[u32]>,
}

impl Automaton {
    pub(super) fn new(values: &[SecretValue]) -> Self {
        let mut automaton = Self { nodes: vec![TrieNode::default()], first: Box::default() };
        for (rule, it) in TABLE.iter().enumerate() {
            for anchor in it.anchors {
                let word = AutomatonWord::Anchor { rule, n_bytes: anchor.len() };
                automaton.add(anchor.as_bytes(), !it.at_word, word);
            }
        }
        for (place, it) in values.iter().enumerate() {
            automaton.add(it.value.as_bytes(), true, AutomatonWord::Value(place));
        }
        automaton.link();
        automaton
    }

    fn add(&mut self, pattern: &[u8], is_free: bool, word: AutomatonWord) {
        let mut at = 0;
        for (depth, byte) in (1..).zip(pattern.iter().map(u8::to_ascii_lowercase)) {
            at = match self.nodes[at].next.binary_search_by_key(&byte, |it| it.0) {
                Ok(place) => self.nodes[at].next[place].1 as usize,
                Err(place) => {
                    let new = self.nodes.len();
                    let id = u32::try_from(new).unwrap_or(NONE);
                    self.nodes.push(TrieNode { depth, ..TrieNode::default() });
                    self.nodes[at].next.insert(place, (byte, id));
                    new
                }
            };
            self.nodes[at].is_free |= is_free;
        }
        self.nodes[at].words.push(word);
    }

    fn link(&mut self) {
        self.first = (0..=u8::MAX).map(|byte| self.child(ROOT, byte).unwrap_or(ROOT)).collect();
        let mut waiting: VecDeque<u32> = self.nodes[0].next.iter().map(|it| it.1).collect();
        self.nodes[0].shorter = NONE;
        waiting.iter().for_each(|it| self.nodes[*it as usize].shorter = NONE);
        while let Some(node) = waiting.pop_front() {
            for (byte, child) in self.nodes[node as usize].next.clone() {
                let fail = self.step(self.nodes[node as usize].fail, byte);
                let target = &self.nodes[fail as usize];
                let shorter = if target.words.is_empty() { target.shorter } else { fail };
                let child_node = &mut self.nodes[child as usize];
                (child_node.fail, child_node.shorter) = (fail, shorter);
                waiting.push_back(child);
            }
        }
    }

    fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let next = &self.nodes[node as usize].next;
        // Most have one or two.
        next.iter().find(|it| it.0 == byte.to_ascii_lowercase()).map(|it| it.1)
    }

    /// Returns the node after this byte. The fails on the way are paid for by the bytes that led down.
    pub(super) fn step(&self, node: u32, byte: u8) -> u32 {
        let mut at = node;
        while at != ROOT {
            if let Some(child) = self.child(at, byte) {
                return child;
            }
            at = self.nodes[at as usize].fail;
        }
        self.first[usize::from(byte)]
    }

    /// Returns the words that end here, longest first.
    pub(super) fn words(&self, node: u32) -> impl Iterator<Item = AutomatonWord> {
        let mut at = node;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            at = node.shorter;
            Some(node.words.iter().copied())
        })
        .flatten()
    }

    /// Counts the bytes before this place that may yet become a pattern. `is_inside_word` is whether a letter or digit
    /// is in front of as many.
    pub(super) fn n_pending(&self, node: u32, is_inside_word: impl Fn(usize) -> bool) -> usize {
        let mut at = node;
        while at != ROOT {
            let node = &self.nodes[at as usize];
            let depth = node.depth as usize;
            if node.is_free || !is_inside_word(depth) {
                return depth;
            }
            at = node.fail;
        }
        0
    }

    /// Counts the bytes of patterns that were read to reach the node.
    pub(super) fn depth(&self, node: u32) -> usize {
        self.nodes[node as usize].depth as usize
    }
}
