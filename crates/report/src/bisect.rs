// SPDX-License-Identifier: Apache-2.0
//! What `wakewalk bisect` says: which hop has the time, by the ledgers of one run or by an experiment.

use std::io::{self, Write};

use diagnose::Case;
use diagnose::bisect::{Bisection, HopTime, Word, bisect};
use diagnose::verdict::Verdict;
use load::{Answerable, Beside, Effect, Estimate, rounded};
use schemars::JsonSchema;
use serde::Serialize;

use crate::formats::terminal;
use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

/// Version of the contracts of `bisect`.
const SCHEMA: u32 = 1;

/// Role of who an upstream itself waits for: named by the upstream already.
const BEHIND: &str = "behind";

/// What `wakewalk bisect --json` prints of a service.
#[derive(Serialize, JsonSchema)]
pub struct Answer {
    /// Version of this contract.
    schema: u32,
    /// Always `bisect`.
    kind: &'static str,
    /// Name and version of the program.
    tool: String,
    /// The service's name.
    service: String,
    /// Its verdict: cause id, or `healthy`, `at-capacity`, `not-determined`.
    verdict: String,
    /// That in one line.
    headline: String,
    /// Its hops.
    #[serde(flatten)]
    bisection: Bisection,
}

/// What `wakewalk bisect URL --beside URL --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct BesideAnswer {
    /// Version of this contract.
    schema: u32,
    /// Always `beside`.
    kind: &'static str,
    /// Name and version of the program.
    tool: String,
    /// The service as it is.
    load: String,
    /// The same with one hop replaced.
    beside: String,
    /// Requests a second.
    rate: f64,
    /// What came of it.
    #[serde(flatten)]
    found: Beside,
}

impl Answer {
    /// The hops of a verdict.
    pub fn new(case: &Case<'_>, verdict: &Verdict) -> Self {
        Self {
            schema: SCHEMA,
            kind: "bisect",
            tool: verdict.tool.clone(),
            service: verdict.target.comm.clone(),
            verdict: verdict.verdict.clone(),
            headline: verdict.headline.clone(),
            bisection: bisect(case, verdict),
        }
    }
}

impl BesideAnswer {
    /// Of two services that were loaded by turns.
    pub fn new(tool: &str, [load, beside]: [String; 2], rate: f64, found: Beside) -> Self {
        Self { schema: SCHEMA, kind: "beside", tool: tool.into(), load, beside, rate, found }
    }
}

/// Draws the hops, no line wider than `width` columns.
///
/// # Errors
/// When `out` cannot be written.
pub fn draw(answer: &Answer, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let hops = &answer.bisection.hops;
    let mut blocks = vec![plain(format!("{}: {}", answer.verdict, answer.headline)), guilty(hops)];
    if !hops.is_empty() {
        blocks.push(in_time(hops));
        blocks.push(whys(hops));
        blocks.push(note(&answer.bisection));
    }
    let section = Section::new("bisect", format!("Hops of {}", answer.service), blocks, Terminal::All);
    terminal::sections(&[section], width, &mut &mut *out)
}

/// Who it is, in a line.
fn guilty(hops: &[HopTime]) -> Block {
    let of = |word| {
        let names: Vec<&str> =
            hops.iter().filter(|hop| hop.word == word && hop.role != BEHIND).map(|hop| hop.name.as_str()).collect();
        names.join(", ")
    };
    let (guilty, open) = (of(Word::Guilty), of(Word::NotDetermined));
    let (text, tone) = match (guilty.is_empty(), open.is_empty()) {
        _ if hops.is_empty() => ("Not determined: no exchange on its TCP connections was seen.".into(), Tone::Warn),
        (false, _) => (format!("Guilty: {guilty}."), Tone::Bad),
        (true, false) => (format!("Nobody is found guilty; not determined: {open}."), Tone::Warn),
        (true, true) => ("All hops are innocent.".into(), Tone::Good),
    };
    Block::Text { text, tone }
}

fn in_time(hops: &[HopTime]) -> Block {
    let heads = ["mean", "usual", "slow 1 %", "share"].map(Column::right);
    let columns = ["hop", ""].map(Column::left).into_iter().chain(heads).collect();
    let row = |hop: &HopTime| {
        let indent = if hop.role == BEHIND { "  " } else { "" };
        let times = [hop.seconds, hop.p50, hop.p99].map(|time| time.map_or("-".into(), numbers::seconds));
        let share = hop.share.map_or("-".into(), numbers::share);
        [vec![format!("{indent}{}", hop.name), word(hop.word).into()], times.to_vec(), vec![share]].concat()
    };
    Block::Table { title: String::new(), columns, rows: hops.iter().map(row).collect() }
}

fn whys(hops: &[HopTime]) -> Block {
    Block::List { items: hops.iter().map(|hop| format!("{}: {}", hop.name, hop.why)).collect() }
}

fn note(bisection: &Bisection) -> Block {
    let mut text = match (&bisection.response, bisection.followed) {
        (None, _) => {
            "Clients got no answer that was seen; what is asked of others is no part of a response time.".into()
        }
        (Some(_), 0) => {
            "No request was followed from end to end: what is whose is told by the sockets, where it can be.".into()
        }
        (Some(response), followed) => format!(
            "Answers at {} take {} (p50), {} (p99). Times are those of {} requests that were followed from end to end.",
            response.endpoint.trim_start_matches("tcp "),
            numbers::seconds(response.p50),
            numbers::seconds(response.p99),
            numbers::number(followed as f64)
        ),
    };
    if bisection.left_out > 0 {
        text += &format!(" {} less busy hops are left out.", bisection.left_out);
    }
    Block::Text { text, tone: Tone::Dim }
}

fn word(word: Word) -> &'static str {
    match word {
        Word::Guilty => "guilty",
        Word::Innocent => "innocent",
        Word::NotDetermined => "not determined",
    }
}

/// Draws the experiment, no line wider than `width` columns.
///
/// # Errors
/// When `out` cannot be written.
pub fn draw_beside(answer: &BesideAnswer, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let found = &answer.found;
    let (text, tone) = match found.word {
        Answerable::Guilty => ("The hop that was replaced is guilty.", Tone::Bad),
        Answerable::Innocent => ("The hop that was replaced is innocent.", Tone::Good),
        Answerable::NotDetermined => ("Not determined.", Tone::Warn),
    };
    let mut blocks = vec![Block::Text { text: text.into(), tone }];
    let mut whys: Vec<String> = found.effects.iter().map(|effect| effect.why.clone()).collect();
    whys.dedup(); // what keeps both from being told is said once
    blocks.push(Block::List { items: whys });
    blocks.push(effects(&found.effects));
    if !found.remarks.is_empty() {
        blocks.push(Block::List { items: found.remarks.iter().map(|remark| remark.sentence.clone()).collect() });
    }
    let text = format!(
        "{} pairs of loads, {} a second each, by turns; times from when requests were due, intervals of 95 % from the pairs.",
        found.pairs.len(),
        rounded(answer.rate)
    );
    blocks.push(Block::Text { text, tone: Tone::Dim });
    let title = format!("{} beside {}", answer.load, answer.beside);
    terminal::sections(&[Section::new("beside", title, blocks, Terminal::All)], width, &mut &mut *out)
}

fn effects(effects: &[Effect]) -> Block {
    let heads = ["as it is", "replaced", "gone without it"].map(Column::right);
    let columns = [Column::left("")].into_iter().chain(heads).chain([Column::left("")]).collect();
    let time = |seconds: Option<f64>| seconds.map_or("-".into(), numbers::seconds);
    let gone = |of: Estimate| {
        format!("{} ({} to {})", numbers::seconds(of.mean), numbers::seconds(of.low), numbers::seconds(of.high))
    };
    let row = |effect: &Effect| {
        let word = match effect.word {
            Answerable::Guilty => "guilty",
            Answerable::Innocent => "innocent",
            Answerable::NotDetermined => "not determined",
        };
        let gone = effect.seconds.map_or("-".into(), gone);
        vec![effect.of.clone(), time(effect.as_it_is), time(effect.replaced), gone, word.into()]
    };
    Block::Table { title: String::new(), columns, rows: effects.iter().map(row).collect() }
}

fn plain(text: String) -> Block {
    Block::Text { text, tone: Tone::Plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(name: &str, word: Word, share: Option<f64>) -> HopTime {
        HopTime {
            role: "upstream".into(),
            name: name.into(),
            seconds: share.map(|share| share * 0.04),
            p50: None,
            p99: None,
            share,
            word,
            why: "as it was seen".into(),
        }
    }

    fn drawn(hops: Vec<HopTime>) -> String {
        let bisection =
            Bisection { hops, followed: 50, response: Some(diagnose::bisect::Response::default()), left_out: 1 };
        let (schema, kind) = (SCHEMA, "bisect");
        let (tool, service) = ("wakewalk".into(), "api".into());
        let (verdict, headline) = ("slow-dependency".into(), "waits".into());
        let mut out = Vec::new();
        draw(&Answer { schema, kind, tool, service, verdict, headline, bisection }, 80, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_guilty_come_first() {
        let text = drawn(vec![hop("10.0.0.9:1", Word::Guilty, Some(0.75)), hop("clients", Word::Innocent, None)]);
        for part in ["Guilty: 10.0.0.9:1.", "30.0 ms", "75.0 %", "1 less busy", "50 requests"] {
            assert!(text.contains(part), "`{part}` is missing: {text}");
        }
        assert!(text.find("Guilty:") < text.find("mean"), "{text}");
        assert!(drawn(vec![hop("a:1", Word::NotDetermined, None)]).contains("not determined: a:1"));
        assert!(drawn(Vec::new()).contains("no exchange"));
    }

    #[test]
    fn an_experiment_has_its_interval() {
        let of = |p50: f64| {
            let mut verdict = load::judge(&load::Run::default(), None);
            verdict.corrected.p50 = Some(p50);
            verdict
        };
        let pairs = (0..4).map(|nth| load::Pair { as_it_is: of(0.02 + 1e-4 * f64::from(nth)), replaced: of(0.002) });
        let found = load::beside(pairs.collect());
        let answer = BesideAnswer::new("wakewalk", ["http://a/".into(), "http://b/".into()], 100.0, found);
        let mut out = Vec::new();
        draw_beside(&answer, 80, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for part in
            ["is guilty", "90 % of the p50 is gone", "too few answers for a p99", "4 pairs of loads, 100 a second"]
        {
            assert!(text.contains(part), "`{part}` is missing: {text}");
        }
    }
}
