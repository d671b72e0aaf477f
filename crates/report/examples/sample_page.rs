// SPDX-License-Identifier: Apache-2.0
//! Writes sample reports into a folder, each as a page, as JSON and as a terminal shows it; for the page test
//! and for looking at.
//!
//! `cargo run --release -p wakewalk-report --example sample_page -- FOLDER`

use std::fs;
use std::path::Path;

use anyhow::Context;
use diagnose::Case;
use diagnose::comparison::{Named, Per, compare};
use wakewalk_report::compared::{self, Compared};
use wakewalk_report::formats::{json, terminal};
use wakewalk_report::load::{self, Answer, SweepAnswer};
use wakewalk_report::verdict;

#[path = "../tests/data/loads.rs"]
mod loads;
#[path = "../tests/data/compared.rs"]
mod recordings;
#[path = "../tests/data/sample.rs"]
mod sample;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args().nth(1).context("usage: sample_page FOLDER")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    for sample in sample::samples()? {
        let mut drawn = Vec::new();
        verdict::draw(&sample.verdict, &sample.sections, 80, &mut drawn)?;
        let file = |extension: &str| folder.join(format!("{}.{extension}", sample.name));
        fs::write(file("ansi"), drawn)?;
        fs::write(file("json"), json::text(&sample.verdict)?)?;
        fs::write(file("html"), verdict::page(&sample.verdict, &sample.sections)?)?;
    }
    comparison(folder, "compared", "svc")?;
    comparison(folder, "compared-hostile", r#""\u001b[2J<script>alert(1)</script>\u202e""#)?;
    loaded(folder, "", "http://shop:8080/")?;
    loaded(folder, "-hostile", "\u{1b}[2J<script>alert(1)</script>\u{202e}")
}

/// A load and a sweep.
fn loaded(folder: &Path, kind: &str, name: &str) -> anyhow::Result<()> {
    let service = Some(loads::service(name, 400.0));
    let load = Answer::new("wakewalk", name.to_owned(), loads::slowing(), service);
    fs::write(folder.join(format!("load{kind}.html")), load::page(&load)?)?;
    let swept = SweepAnswer::new("wakewalk", name.to_owned(), loads::swept(name)?);
    fs::write(folder.join(format!("sweep{kind}.html")), load::sweep_page(&swept)?)?;
    Ok(())
}

/// A comparison in which one function grew, one shrank, one went and one came.
fn comparison(folder: &Path, file: &str, name: &str) -> anyhow::Result<()> {
    let before = recordings::recorded(name, &[("usual", 0.2), ("score", 0.05), ("parse", 0.1), ("old", 0.08)], 1)?;
    let after = recordings::recorded(name, &[("usual", 0.2), ("score", 0.15), ("parse", 0.02), ("fresh", 0.04)], 2)?;
    let named = |recording, label: &str| Named { recording, label: label.to_owned() };
    let comparison = compare(&named(&before, "before"), &named(&after, "after"), Per::Auto)?;
    let cases = [Case::new(&before), Case::new(&after)];
    let sections = compared::sections(&Compared { comparison: &comparison, cases: [&cases[0], &cases[1]] });
    let mut drawn = Vec::new();
    terminal::report(&compared::head(&comparison), &sections, 80, &mut drawn)?;
    fs::write(folder.join(format!("{file}.ansi")), drawn)?;
    fs::write(folder.join(format!("{file}.json")), json::text(&comparison)?)?;
    fs::write(folder.join(format!("{file}.html")), compared::page(&comparison, &sections)?)?;
    Ok(())
}
