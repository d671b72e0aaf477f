// SPDX-License-Identifier: Apache-2.0
//! Stories, retold on the machine at hand: the symptom, the diagnosis, the fix, before and after.

mod go_epoll;
mod measure;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::paths::Paths;
use crate::stop::Stop;

pub use go_epoll::demo;

/// Where a story's README takes its output.
const BEGIN: &str = "<!-- output of `make story-002`: begin -->";
const END: &str = "<!-- output: end -->";

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
        let text = fs::read_to_string(&file).with_context(|| format!("failed to read `{}`", file.display()))?;
        fs::write(&file, fill(&text, &told)?)?;
    }
    Ok(())
}

/// Replaces what stands between the marks.
fn fill(readme: &str, told: &str) -> Result<String> {
    let (head, rest) = readme.split_once(BEGIN).with_context(|| format!("the README has no line `{BEGIN}`"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("the README has no line `{END}`"))?;
    Ok(format!("{head}{BEGIN}\n```\n{}\n```\n{END}{tail}", told.trim()))
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
    fn the_output_replaces_the_one_before() {
        let readme = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let once = fill(&readme, "new\n").unwrap();
        assert_eq!(once, format!("a\n{BEGIN}\n```\nnew\n```\n{END}\nb\n"));
        assert_eq!(fill(&once, "new").unwrap(), once);
    }

    #[test]
    fn a_readme_without_marks_is_a_mistake() {
        assert!(fill("a", "b").unwrap_err().to_string().contains("begin"));
    }

    #[test]
    fn the_readme_of_the_story_has_the_marks() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stories/002-go-epoll/README.md");
        assert!(fill(&fs::read_to_string(file).unwrap(), "x").is_ok());
    }
}
