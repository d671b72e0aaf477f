// SPDX-License-Identifier: Apache-2.0
//! What requests waited for, from their arrival to the answer: usual ones, slow ones and the slowest, side by side.

use std::collections::{BTreeMap, BTreeSet};

use diagnose::walk::paths::{Group, Part, Paths, RequestPaths};

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// Of the time of a group of requests; what is less in all of them is added up in one row.
const LEAST_SHARE: f64 = 0.02;

/// Lines of the table on a terminal of 80 columns, without its head: what does not fit is added up in the last one.
const LINES: usize = 8;

/// Columns that it has for words there.
const WORDS: usize = 44;

/// The critical path, by what the time went to.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let paths = material.case.fact::<RequestPaths>().ok()?;
    let main = paths.main()?;
    let groups = [&main.half, &main.slow, &main.worst];
    let short = short(groups);
    let mut blocks = vec![table(groups, "", &short, LINES), note(main)];
    let on_terminal = blocks[..1].to_vec();
    // The page has each part by its full name.
    blocks.push(table(groups, "All of it, by thread", &Part::words, usize::MAX).folded());
    let section = Section::new("paths", "What requests waited for", blocks, Terminal::First(2));
    Some(section.kept_as(on_terminal))
}

/// Words for little room: where all parts are of one, its name says nothing, and of workers that are alike it does not matter which.
fn short(groups: [&Group; 3]) -> impl Fn(&Part) -> String {
    let names: BTreeSet<String> = groups.iter().flat_map(|group| &group.parts).map(Part::who).collect();
    let alike = alike(&names);
    let of_all = if names.len() == 1 { names.into_iter().next().unwrap_or_default() } else { String::new() };
    move |part| {
        let words = part.short_words(&of_all);
        alike.iter().fold(words, |words, (name, program)| without_number(&words, name, program))
    }
}

/// The words with a program for each time that they name a process of it, and no other one whose number goes on.
fn without_number(words: &str, name: &str, program: &str) -> String {
    let mut told = String::new();
    let mut rest = words;
    while let Some((before, after)) = rest.split_once(name) {
        told += before;
        told += if after.starts_with(|c: char| c.is_ascii_digit()) { name } else { program };
        rest = after;
    }
    told + rest
}

/// Processes of one program of which there are several, `nginx/17`, and the program.
fn alike(names: &BTreeSet<String>) -> Vec<(String, String)> {
    let of = |name: &String| Some((name.clone(), name.rsplit_once('/')?.0.to_owned()));
    let all: Vec<(String, String)> = names.iter().filter_map(of).collect();
    let several = |(_, program): &&(String, String)| all.iter().filter(|(_, other)| other == program).count() > 1;
    all.iter().filter(several).cloned().collect()
}

fn table(groups: [&Group; 3], title: &str, words: &dyn Fn(&Part) -> String, lines: usize) -> Block {
    let mut rows: BTreeMap<String, [f64; 3]> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate() {
        for part in &group.parts {
            rows.entry(words(part)).or_default()[at] += part.ns;
        }
    }
    let share = |ns: &[f64; 3]| {
        let of = ns.iter().zip(groups).map(|(ns, group)| if group.ns > 0.0 { ns / group.ns } else { 0.0 });
        of.fold(0.0, f64::max)
    };
    let mut rows: Vec<(String, [f64; 3])> = rows.into_iter().collect();
    rows.sort_by(|a, b| share(&b.1).total_cmp(&share(&a.1)));
    // The first line is the whole, the last one the rest.
    let mut room = lines.saturating_sub(2);
    let fits = |(words, ns): &&(String, [f64; 3])| {
        let needs = words.chars().count().div_ceil(WORDS);
        let fits = share(ns) >= LEAST_SHARE && needs <= room;
        room = room.saturating_sub(needs);
        fits
    };
    let told = rows.iter().take_while(fits).count();
    let rest = rows.split_off(told);
    let mut table = vec![line("from the arrival to the answer", groups.map(|group| group.ns), groups)];
    table.extend(rows.into_iter().map(|(words, ns)| line(&words, ns, groups)));
    if !rest.is_empty() {
        let sum = rest.iter().fold([0.0; 3], |sum, (_, ns)| [sum[0] + ns[0], sum[1] + ns[1], sum[2] + ns[2]]);
        table.push(line("the rest", sum, groups));
    }
    let heads = ["", "usual", "slowest 1 %", "slowest"];
    let columns =
        heads.iter().enumerate().map(|(at, head)| if at == 0 { Column::left(head) } else { Column::right(head) });
    Block::Table { title: title.to_owned(), columns: columns.collect(), rows: table }
}

/// Mean time a request, by group.
fn line(words: &str, ns: [f64; 3], groups: [&Group; 3]) -> Vec<String> {
    // What is less than a nanosecond is left over from adding up.
    let mean = |(ns, group): (&f64, &Group)| (ns / group.requests.max(1) as f64).round() / 1e9;
    let mean = ns.iter().zip(groups).map(mean).map(numbers::seconds);
    std::iter::once(words.to_owned()).chain(mean).collect()
}

fn note(paths: &Paths) -> Block {
    let mut text = format!(
        "Of {} requests at port {}, each followed from its arrival back from its answer; mean time each.",
        numbers::number(paths.all.requests as f64),
        paths.port
    );
    let labels = [("Usual ones", &paths.half), ("The slowest 1 %", &paths.slow), ("The slowest", &paths.worst)];
    let told = labels.map(|(who, group)| Some(format!("{who}: {}", asked(group)?)));
    let told: Vec<String> = told.into_iter().flatten().collect();
    if !told.is_empty() {
        text = format!("{text} {}.", told.join("; "));
    }
    Block::Text { text, tone: Tone::Plain }
}

/// What most of a group asked.
fn asked(group: &Group) -> Option<String> {
    let (label, count) = group.labels.first()?;
    let part = *count as f64 / group.requests.max(1) as f64;
    Some(if part < 1.0 { format!("{} {label}", numbers::share(part)) } else { label.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_told_by_their_program() {
        let names = ["app/98", "app/99", "store/7"].map(str::to_owned).into();
        let alike = alike(&names);
        assert_eq!(alike.iter().map(|(_, program)| program.as_str()).collect::<Vec<_>>(), ["app", "app"]);
        let words =
            |text: &str| alike.iter().fold(text.to_owned(), |words, (name, app)| without_number(&words, name, app));
        assert_eq!(words("app/98 in flock < app/99: code"), "app in flock < app: code");
        assert_eq!(words("app/98 in read < app/985 and store/7"), "app in read < app/985 and store/7");
    }
}
