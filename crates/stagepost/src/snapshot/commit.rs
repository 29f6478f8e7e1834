//! Commits, written and read as bytes.

use crate::model::ObjectId;

/// What a snapshot needs of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Commit {
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents.
    pub parents: Vec<ObjectId>,
}

impl Commit {
    /// Reads a commit's bytes, or returns `None` if they are none.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let tree = id_after(b"tree ", lines.next()?)?;
        let parents = lines.map_while(|line| id_after(b"parent ", line)).collect();
        Some(Self { tree, parents })
    }
}

fn id_after(word: &[u8], line: &[u8]) -> Option<ObjectId> {
    std::str::from_utf8(line.strip_prefix(word)?).ok()?.parse().ok()
}

/// Who a snapshot's commit says made it, and when: handed in, for the library knows neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
    /// Seconds since 1970, UTC.
    pub seconds: i64,
}

impl Default for Signature {
    fn default() -> Self {
        Self { name: "Stagepost".to_owned(), email: "stagepost@localhost".to_owned(), seconds: 0 }
    }
}

impl Signature {
    /// What git would strip or stumble over is left out.
    fn to_line(&self) -> String {
        let clean = |text: &str| -> String {
            text.chars()
                .filter(|c| !c.is_control() && !matches!(c, '<' | '>'))
                .collect::<String>()
                .trim()
                .to_owned()
        };
        format!("{} <{}> {} +0000", clean(&self.name), clean(&self.email), self.seconds.max(0))
    }
}

/// Writes a commit's bytes.
pub(super) fn compose(tree: &ObjectId, parents: &[&ObjectId], who: &Signature, message: &str) -> Vec<u8> {
    let mut text = format!("tree {tree}\n");
    for parent in parents {
        text.push_str(&format!("parent {parent}\n"));
    }
    let who = who.to_line();
    let message = message.replace('\0', "");
    text.push_str(&format!("author {who}\ncommitter {who}\n\n{}\n", message.trim_end()));
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_reads_back_and_its_author_cannot_add_headers() {
        let id: ObjectId = "89abcdef0123456789abcdef0123456789abcdef".parse().unwrap();
        let who = Signature { name: "a\nparent <x>".into(), ..Signature::default() };
        let bytes = compose(&id, &[&id], &who, "hello\0");
        assert_eq!(Commit::parse(&bytes).unwrap(), Commit { tree: id.clone(), parents: vec![id] });
        assert!(
            String::from_utf8(bytes).unwrap().contains("author aparent x <stagepost@localhost> 0 +0000\n")
        );
    }
}
