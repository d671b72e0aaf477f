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
    fs::write(document, fill(&old, begin, text)?).with_context(|| format!("failed to write `{}`", document.display()))
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
    fn the_rest_of_the_document_is_kept() {
        let document = format!("a\n<!-- here -->\nold\n{END}\nb\n");
        assert_eq!(fill(&document, "<!-- here -->", "new\n").unwrap(), format!("a\n<!-- here -->\nnew\n{END}\nb\n"));
        assert!(fill("a", "<!-- here -->", "b").unwrap_err().to_string().contains("here"));
    }
}
