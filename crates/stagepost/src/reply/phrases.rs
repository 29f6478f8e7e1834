//! Several words that mean something together, as a tree: one step per word, however many phrases there are.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::lexicon::Classes;

/// The phrases of one language; a word's own number is the root of those that begin with it.
#[derive(Debug, Default)]
pub(super) struct Phrases {
    nodes: Vec<Node>,
    steps: HashMap<u64, u32, BuildHasherDefault<StepHasher>>,
}

/// A place in the tree.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    /// What the words up to here do, if they are a phrase.
    classes: Classes,
    /// Whether any phrase goes on from here.
    goes_on: bool,
}

impl Phrases {
    /// Makes a place from which phrases can begin.
    pub(super) fn root(&mut self) -> u32 {
        self.nodes.push(Node::default());
        self.nodes.len() as u32 - 1
    }

    /// Adds a phrase: where it begins, its further words, and what it does.
    pub(super) fn add(&mut self, root: u32, rest: &[u32], classes: Classes) {
        let last = rest.iter().fold(root, |node, word| self.step_or_add(node, *word));
        let node = &mut self.nodes[last as usize];
        node.classes = node.classes.or(classes);
    }

    fn step_or_add(&mut self, node: u32, word: u32) -> u32 {
        if let Some(next) = self.step(node, word) {
            return next;
        }
        let next = self.root();
        self.nodes[node as usize].goes_on = true;
        self.steps.insert(key(node, word), next);
        next
    }

    /// Goes on with a word.
    pub(super) fn step(&self, node: u32, word: u32) -> Option<u32> {
        if !self.nodes[node as usize].goes_on {
            return None;
        }
        self.steps.get(&key(node, word)).copied()
    }

    /// What the words up to here do.
    pub(super) fn classes(&self, node: u32) -> Classes {
        self.nodes[node as usize].classes
    }

    /// What every phrase does.
    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = Classes> {
        self.nodes.iter().map(|node| node.classes)
    }
}

fn key(node: u32, word: u32) -> u64 {
    u64::from(node) << 32 | u64::from(word)
}

/// Spreads a pair of numbers; nobody chooses them.
#[derive(Default)]
struct StepHasher(u64);

impl Hasher for StepHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, pair: u64) {
        let spread = (self.0 ^ pair).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_word_by_word() {
        let mut phrases = Phrases::default();
        let (go, ahead, back) = (phrases.root(), phrases.root(), phrases.root());
        phrases.add(go, &[ahead], Classes::GO);
        phrases.add(go, &[ahead, back], Classes::BACK);
        let node = phrases.step(go, ahead).expect("was added");
        assert_eq!(phrases.classes(node), Classes::GO);
        assert!(phrases.step(node, back).is_some() && phrases.step(go, back).is_none());
        assert!(phrases.step(ahead, go).is_none());
    }
}
