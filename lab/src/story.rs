// SPDX-License-Identifier: Apache-2.0
//! Stories, retold on the machine at hand: the symptom, the diagnosis, the fix, before and after.

mod alvin;
mod clumsy;
mod go_epoll;
mod measure;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::documents;
use crate::paths::Paths;
use crate::stop::Stop;

pub use go_epoll::demo;

/// A story: its number, its folder, and how it is told.
type Story = (&'static str, &'static str, fn(&Paths, &Stop) -> Result<String>);

const STORIES: [Story; 3] = [
    ("001", "001-clumsy-kernel", clumsy::tell),
    ("002", "002-go-epoll", go_epoll::tell),
    ("004", "004-alvin", alvin::tell),
];

/// Where a story's README takes its output.
fn begin(number: &str) -> String {
    format!("<!-- output of `make story-{number}`: begin -->")
}

/// Tells a story; with `readme` its README gets the output.
///
/// # Errors
/// There is no such story, or a step of it failed.
pub fn tell(number: &str, readme: bool, paths: &Paths, stop: &Stop) -> Result<()> {
    let Some((_, folder, tell)) = STORIES.iter().find(|story| story.0 == number) else {
        let numbers = STORIES.map(|story| story.0).join(", ");
        bail!("there is no story {number}; there are {numbers}");
    };
    let told = tell(paths, stop)?;
    if readme {
        let file = paths.repository.join("stories").join(folder).join("README.md");
        documents::put(&file, &begin(number), &format!("```\n{}\n```", told.trim()))?;
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

/// A number with its unit, short enough for a table.
fn amount(value: f64, unit: &str) -> String {
    match unit {
        "s" if value < 1.0 => format!("{:.1} ms", value * 1e3),
        "%" | "s" => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
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
    fn the_readme_of_each_story_has_the_marks() {
        for (number, folder, _) in STORIES {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stories").join(folder).join("README.md");
            assert!(documents::fill(&fs::read_to_string(file).unwrap(), &begin(number), "x").is_ok(), "{folder}");
        }
    }
}
