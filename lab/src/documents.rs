// SPDX-License-Identifier: Apache-2.0
//! Putting what a run printed into a document, between two marks.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Where such output ends.
const END: &str = "<!-- output: end -->";

/// Replaces what stands behind the mark in a document.
///
/// # Errors
/// The document cannot be read or written, or has no such mark.
pub fn put(document: &Path, begin: &str, text: &str) -> Result<()> {
    let old = fs::read_to_string(document).with_context(|| format!("failed to read `{}`", document.display()))?;
    let new = fill(&old, begin, &from_repository(document, text))?;
    fs::write(document, new).with_context(|| format!("failed to write `{}`", document.display()))
}

/// The text with paths from the repository on: where that lies on the host that ran it says nothing to anybody else.
fn from_repository(document: &Path, text: &str) -> String {
    let repository = document.ancestors().skip(1).find(|folder| folder.join(".git").exists());
    repository.map_or_else(|| text.to_string(), |folder| text.replace(&format!("{}/", folder.display()), ""))
}

/// The text behind the mark.
///
/// # Errors
/// The document has no such mark, or no end of the output.
pub fn between<'a>(document: &'a str, begin: &str) -> Result<&'a str> {
    let (_, rest) = document.split_once(begin).with_context(|| format!("the document has no line `{begin}`"))?;
    let (text, _) = rest.split_once(END).with_context(|| format!("the document has no line `{END}`"))?;
    Ok(text)
}

/// The document with new text behind the mark.
///
/// # Errors
/// It has no such mark, or no end of the output.
pub fn fill(document: &str, begin: &str, text: &str) -> Result<String> {
    let (head, rest) = document.split_once(begin).with_context(|| format!("the document has no line `{begin}`"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("the document has no line `{END}`"))?;
    Ok(format!("{head}{begin}\n{}\n{END}{tail}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_the_repository() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = format!("see `{}/target/lab/logs`", repository.display());
        assert_eq!(from_repository(&repository.join("docs/bench.md"), &text), "see `target/lab/logs`");
        assert_eq!(from_repository(Path::new("/nowhere/bench.md"), "/a/b"), "/a/b");
    }

    #[test]
    fn the_rest_of_the_document_is_kept() {
        let document = format!("a\n<!-- here -->\nold\n{END}\nb\n");
        assert_eq!(fill(&document, "<!-- here -->", "new\n").unwrap(), format!("a\n<!-- here -->\nnew\n{END}\nb\n"));
        assert!(fill("a", "<!-- here -->", "b").unwrap_err().to_string().contains("here"));
    }
}
