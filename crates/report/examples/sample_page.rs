// SPDX-License-Identifier: Apache-2.0
//! Writes sample reports into a folder, each as a page, as JSON and as a terminal shows it; for the page test
//! and for looking at.
//!
//! `cargo run --release -p wakewalk-report --example sample_page -- FOLDER`

use std::fs;
use std::path::Path;

use anyhow::Context;
use wakewalk_report::formats::{html, json, terminal};

#[path = "../tests/data/sample.rs"]
mod sample;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args().nth(1).context("usage: sample_page FOLDER")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    for sample in sample::samples()? {
        let mut drawn = Vec::new();
        terminal::draw(&sample.verdict, &sample.sections, 80, &mut drawn)?;
        let file = |extension: &str| folder.join(format!("{}.{extension}", sample.name));
        fs::write(file("ansi"), drawn)?;
        fs::write(file("json"), json::text(&sample.verdict)?)?;
        fs::write(file("html"), html::page(&sample.verdict, &sample.sections)?)?;
    }
    Ok(())
}
