// SPDX-License-Identifier: Apache-2.0
//! Stories, retold on the machine at hand: the symptom, the diagnosis, the fix, before and after.

mod go_epoll;
mod measure;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::documents;
use crate::paths::Paths;
use crate::stop::Stop;

pub use go_epoll::demo;

/// Where a story's README takes its output.
const BEGIN: &str = "<!-- output of `make story-002`: begin -->";

/// Tells a story; with `readme` its README gets the output.
///
/// # Errors
/// There is no such story, or a step of it failed.
pub fn tell(number: &str, readme: bool, paths: &Paths, stop: &Stop) -> Result<()> {
    if number != "002" {
        bail!("there is no story {number}; there is 002");
    }
    let told = go_epoll::tell(paths, stop)?;
    if readme {
        let file = paths.repository.join("stories/002-go-epoll/README.md");
        documents::put(&file, BEGIN, &format!("```\n{}\n```", told.trim()))?;
    }
    Ok(())
}

/// Prints a paragraph and remembers it.
struct Teller(String);

impl Teller {
    fn say(&mut self, text: impl AsRef<str>) {
        println!("{}\n", text.as_ref().trim_end());
        self.0 += text.as_ref().trim_end();
        self.0 += "\n\n";
    }
}

/// The page's folder, made.
fn make_parent(file: &Path) -> Result<()> {
    let parent = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).with_context(|| format!("failed to make `{}`", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_of_the_story_has_the_marks() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stories/002-go-epoll/README.md");
        assert!(documents::fill(&fs::read_to_string(file).unwrap(), BEGIN, "x").is_ok());
    }
}
