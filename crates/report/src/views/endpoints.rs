// SPDX-License-Identifier: Apache-2.0
//! Response times by what was asked, the slowest first, where labels were wanted.

use std::ops::Range;

use diagnose::answer::RequestTimes;
use diagnose::facts::labels::{Labelled, Labels, Place};

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// Labels of each place on a terminal; the page and JSON have all.
const LONG: usize = 12;
/// Places and labels in the short form.
const SHORT: (usize, usize) = (2, 4);

/// Of exchanges without a label: fewer are not worth a word.
const FEW: f64 = 0.01;

/// The table of each place.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let labels = material.case.fact::<Labels>().ok()?;
    let seconds = material.case.fact::<diagnose::facts::requests::Requests>().ok()?.followed_ns / 1e9;
    let cpu = |place: &Place| {
        let is_it = |times: &&RequestTimes| (times.is_accepted(), &times.endpoint) == (place.accepted, &place.name);
        let labels = material.verdict.requests.iter().find(is_it).map_or(&[][..], |times| &times.endpoints);
        labels.iter().map(|label| label.cpu_share).collect::<Vec<_>>()
    };
    let draw = |places: usize, most: usize| -> Vec<Block> {
        labels.places.iter().take(places).flat_map(|place| of(place, &cpu(place), seconds, most)).collect()
    };
    let mut blocks = draw(usize::MAX, LONG);
    let told = blocks.len();
    let more = labels.places.iter().filter(|place| place.labels.len() > LONG);
    blocks.extend(more.map(|place| table(place, &cpu(place), seconds, LONG..usize::MAX).folded()));
    let section = Section::new("endpoints", "Slow by endpoint", blocks, Terminal::First(told));
    Some(section.kept_as(draw(SHORT.0, SHORT.1)))
}

fn of(place: &Place, cpu: &[Option<f64>], seconds: f64, most: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    if !place.labels.is_empty() {
        blocks.push(table(place, cpu, seconds, 0..most));
    }
    blocks.extend(note(place));
    blocks
}

fn table(place: &Place, cpu: &[Option<f64>], seconds: f64, range: Range<usize>) -> Block {
    // Labels in the order of the verdict's, of which none has a share where no request was followed.
    let is_known = cpu.iter().any(Option::is_some);
    let name = place.name.trim_start_matches("tcp ");
    let title = if place.accepted { name.to_owned() } else { format!("it asks {name}") };
    let heads = [title.as_str(), "a second", "p50", "p99", "mean", "of waits", "of CPU"];
    let heads = heads.iter().take(if is_known { heads.len() } else { heads.len() - 1 });
    let columns = heads.enumerate().map(|(at, head)| match at {
        0 => Column::left(head),
        _ => Column::right(head),
    });
    let shown = place.labels.iter().enumerate().take(range.end).skip(range.start);
    let share = |at: usize| is_known.then(|| cpu.get(at).copied().flatten().map_or_else(String::new, numbers::share));
    let rows = shown.map(|(at, labelled)| row(place, labelled, seconds).into_iter().chain(share(at)).collect());
    Block::Table { title: String::new(), columns: columns.collect(), rows: rows.collect() }
}

fn row(place: &Place, labelled: &Labelled, seconds: f64) -> Vec<String> {
    let time = |ns: f64| numbers::seconds(ns / 1e9);
    let lengths = &labelled.lengths;
    vec![
        labelled.label.clone(),
        numbers::number((lengths.count / seconds.max(1e-9) * 10.0).round() / 10.0),
        time(lengths.quantile_ns(0.5)),
        time(lengths.quantile_ns(0.99)),
        time(lengths.mean_ns()),
        numbers::share(place.share_of_time(labelled)),
    ]
}

/// What the table rests on, and what is not in it.
fn note(place: &Place) -> Option<Block> {
    let mut notes = Vec::new();
    if place.one_in() > 1.0 {
        let seen = numbers::number(place.seen);
        notes.push(format!(
            "From {seen} requests, picked at random: about one in {}.",
            numbers::number(place.one_in().ceil())
        ));
    }
    notes.extend(failed(place));
    if place.unlabelled_share() > FEW {
        let mut why: Vec<(&String, &f64)> = place.unlabelled.iter().collect();
        why.sort_by(|a, b| b.1.total_cmp(a.1));
        let why: Vec<&str> = why.into_iter().map(|(why, _)| reason(why)).collect();
        let name = place.name.trim_start_matches("tcp ");
        let whose = if place.accepted { format!("asked at {name}") } else { format!("that it asks {name}") };
        notes.push(format!(
            "No labels for {} of what is {whose}: {}.",
            numbers::share(place.unlabelled_share()),
            why.join("; ")
        ));
    }
    (!notes.is_empty()).then(|| Block::Text { text: notes.join(" "), tone: Tone::Plain })
}

/// That answers failed, and to what.
fn failed(place: &Place) -> Option<String> {
    let worst = place.labels.iter().max_by(|a, b| a.outcomes.failed.total_cmp(&b.outcomes.failed))?;
    let all = place.outcomes;
    (all.failed > 0.0).then(|| {
        format!(
            "Of {} answers, {} say that they failed ({}); to {} {} of {}.",
            numbers::number(all.all),
            numbers::number(all.failed),
            numbers::share(all.failed_share()),
            worst.label,
            numbers::number(worst.outcomes.failed),
            numbers::number(worst.outcomes.all),
        )
    })
}

/// Why something has no label.
fn reason(why: &str) -> &'static str {
    match why {
        "tls" => "TLS",
        "http2" => "HTTP/2",
        "unread" => "the bytes could not be read (io_uring, or the first request of a connection that stood before)",
        _ => "none of the protocols that are known",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::tests::{section, tables};

    #[test]
    fn the_slow_one_comes_first_and_what_has_no_label_is_told() {
        let text = "meta length_ns=10e9 target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=10e9 length_ns=10e9
             exchange t_ns=1 role=accepted port=80 stage=response count=1000 sum_ns=2e9
             label t_ns=1 role=accepted port=80 protocol=http label=\"GET /fast\" seen=450 count=900 sum_ns=900e6 length_ns=[1000000] counts=[900]
             label t_ns=1 role=accepted port=80 protocol=http label=\"GET /slow\" seen=25 count=50 sum_ns=1000e6 length_ns=[20000000] counts=[50]
             label t_ns=1 role=accepted port=80 protocol=tls seen=25 count=50 sum_ns=100e6 length_ns=[2000000] counts=[50]";
        let section = section(view, text).unwrap();
        let table = &tables(&section)[0];
        assert_eq!(table[0][0], "0.0.0.0:80");
        assert_eq!(table[1], ["GET /slow", "5", "20.0 ms", "20.0 ms", "20.0 ms", "50.0 %"]);
        assert_eq!(table[2][0], "GET /fast");
        let Some(Block::Text { text, .. }) = section.blocks.last() else { panic!("no note") };
        assert_eq!(
            text,
            "From 500 requests, picked at random: about one in 2. No labels for 5.0 % of what is asked at 0.0.0.0:80: TLS."
        );
        assert!(super::super::tests::section(view, "").is_none());
    }

    #[test]
    fn where_all_is_encrypted_there_is_a_word_and_no_table() {
        let text = "meta length_ns=1e9\nexchange_window t_ns=1e9 length_ns=1e9
             exchange t_ns=1 role=accepted port=443 stage=response count=10 sum_ns=2e9
             label t_ns=1 role=accepted port=443 protocol=tls seen=10 count=10 sum_ns=1";
        let section = section(view, text).unwrap();
        assert!(tables(&section).is_empty());
        let [Block::Text { text, .. }] = &section.blocks[..] else { panic!("no note") };
        assert_eq!(text, "No labels for 100 % of what is asked at port 443: TLS.");
    }
}
