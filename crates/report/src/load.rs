// SPDX-License-Identifier: Apache-2.0
//! What `wakewalk load` says: the verdict on the numbers before the numbers.

use std::io::{self, Write};

use load::{Failure, Meanwhile, Percentiles, Phase, Step, Sweep, Verdict, Word, rounded, words};
use schemars::JsonSchema;
use serde::Serialize;

use crate::formats::terminal;
use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

/// Version of the contract of `load`.
const SCHEMA: u32 = 1;

/// What `wakewalk load --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct Answer {
    /// Version of this contract.
    schema: u32,
    /// Always `load`.
    kind: &'static str,
    /// Name and version of the program.
    tool: String,
    /// Whom it loaded, or the command that loaded.
    load: String,
    /// The verdict and its numbers.
    #[serde(flatten)]
    verdict: Verdict,
    /// What the service did meanwhile; none = it was not diagnosed.
    service: Option<Meanwhile>,
}

/// What `wakewalk load --sweep --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct SweepAnswer {
    /// Version of this contract.
    schema: u32,
    /// Always `sweep`.
    kind: &'static str,
    /// Name and version of the program.
    tool: String,
    /// Whom it loaded.
    load: String,
    /// Its loads and what they say.
    #[serde(flatten)]
    sweep: Sweep,
}

impl Answer {
    /// Of one load.
    pub fn new(tool: &str, load: String, verdict: Verdict, service: Option<Meanwhile>) -> Self {
        Self { schema: SCHEMA, kind: "load", tool: tool.into(), load, verdict, service }
    }
}

impl SweepAnswer {
    /// Of one load after another.
    pub fn new(tool: &str, load: String, sweep: Sweep) -> Self {
        Self { schema: SCHEMA, kind: "sweep", tool: tool.into(), load, sweep }
    }
}

/// Draws the verdict on one load, no line wider than `width` columns.
///
/// # Errors
/// When `out` cannot be written.
pub fn draw(answer: &Answer, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let verdict = &answer.verdict;
    let mut sections = vec![headline(&answer.load, verdict), response_times(verdict)];
    sections.extend(failures(verdict));
    sections.extend(phases(&verdict.phases));
    sections.push(client(verdict));
    sections.extend(answer.service.as_ref().map(service));
    terminal::sections(&sections, width, &mut &mut *out)
}

/// Draws a sweep, no line wider than `width` columns.
///
/// # Errors
/// When `out` cannot be written.
pub fn draw_sweep(answer: &SweepAnswer, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let sweep = &answer.sweep;
    let (text, tone) = match sweep.knee {
        Some(knee) => {
            let text = format!(
                "{:.0} requests a second are answered, {:.0} are not: the limit lies between.",
                knee.sustained, knee.not_sustained
            );
            (text, Tone::Good)
        }
        None => ("The limit was not found.".into(), Tone::Warn),
    };
    let mut blocks = vec![Block::Text { text, tone }];
    if !sweep.findings.is_empty() {
        blocks.push(Block::List { items: sweep.findings.iter().map(|finding| finding.sentence.clone()).collect() });
    }
    let sections =
        [section("sweep", format!("Sweep of {}", answer.load), blocks), section("loads", "Loads".into(), loads(sweep))];
    terminal::sections(&sections, width, &mut &mut *out)
}

/// A row for each load, and what it means.
fn loads(sweep: &Sweep) -> Vec<Block> {
    let mut steps: Vec<&Step> = sweep.steps.iter().collect();
    steps.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let shown = Shown {
        diagnosed: steps.iter().any(|step| step.service.is_some()),
        failed: steps.iter().any(|step| step.verdict.errors.values().sum::<u64>() > 0),
    };
    let mut columns: Vec<Column> = ["asked/s", "answered/s", "p50", "p99"].map(Column::right).into();
    columns.extend(shown.failed.then(|| Column::right("failed")));
    if shown.diagnosed {
        columns.extend([Column::right("its CPUs"), Column::left("the service")]);
    }
    columns.push(Column::left(""));
    let step = |step: &Step| row_of_step(step, &shown);
    let table = Block::Table { title: String::new(), columns, rows: steps.into_iter().map(step).collect() };
    let lag = sweep
        .steps
        .iter()
        .filter_map(|step| step.verdict.client.lag.p99.or(step.verdict.client.lag.p90))
        .fold(0.0, f64::max);
    let legend = format!(
        "From when requests were due; - where fewer than ten answers lie beyond. Sustained: 97 % of what was due is answered while \
         it is asked, and at most 1 % fails; else `over`, or `client` and `late` where the generator was. The generator \
         was up to {} late (p99, of few requests p90).",
        numbers::seconds(lag)
    );
    vec![table, dim(&legend)]
}

/// Columns that not every sweep has.
struct Shown {
    diagnosed: bool,
    failed: bool,
}

fn row_of_step(step: &Step, shown: &Shown) -> Vec<String> {
    let verdict = &step.verdict;
    let note = match (verdict.verdict, step.sustained) {
        (Word::ClientLimited, true) => "late",
        (Word::ClientLimited, false) => "client",
        (_, false) => "over",
        _ => "",
    };
    let [p50, p99] = [verdict.corrected.p50, verdict.corrected.p99].map(percentile);
    let mut cells = vec![rounded(step.rate), rounded(verdict.rate), p50, p99];
    if shown.failed {
        cells.push(verdict.errors.values().sum::<u64>().to_string());
    }
    if shown.diagnosed {
        let service = step.service.as_ref();
        cells.push(service.map_or(String::new(), |service| format!("{:.2}", service.cpus)));
        cells.push(service.map_or(String::new(), |service| service.verdict.clone()));
    }
    cells.push(note.into());
    cells
}

fn section(id: &'static str, title: String, blocks: Vec<Block>) -> Section {
    Section::new(id, title, blocks, Terminal::All)
}

fn dim(text: &str) -> Block {
    Block::Text { text: text.into(), tone: Tone::Dim }
}

fn headline(load: &str, verdict: &Verdict) -> Section {
    let (word, tone) = match verdict.verdict {
        Word::Valid if !verdict.sees_answers => {
            ("valid, as far as the kernel sees: these times are the service's.", Tone::Good)
        }
        Word::Valid => ("valid: these numbers are the service's.", Tone::Good),
        Word::ClientLimited => ("client-limited: what is slow here is the generator, not the service.", Tone::Bad),
        Word::Misleading => {
            ("misleading: these numbers are true, and say something else than they seem to.", Tone::Warn)
        }
        Word::NotEnoughData => ("not enough data: too few answers for a p99; what is shown stands.", Tone::Warn),
    };
    let asked = verdict.planned.map_or(String::new(), |planned| format!("{}/s asked, ", rounded(planned)));
    // Of a load that was two, a rate is of neither.
    let went_alike = verdict.phases.iter().filter(|phase| !phase.is_warm_up).count() < 2;
    let rate = if went_alike { format!("{}/s ", rounded(verdict.rate)) } else { String::new() };
    let numbers = format!(
        "{asked}{rate}answered for {}; {} of {} requests.",
        numbers::seconds(verdict.length),
        verdict.answered,
        verdict.due
    );
    let mut blocks = vec![Block::Text { text: word.into(), tone }, Block::Text { text: numbers, tone: Tone::Plain }];
    if let Some(slo) = verdict.slo {
        let text = format!(
            "{} of the requests took longer than {} or have no answer.",
            numbers::share(slo.broken),
            numbers::seconds(slo.seconds)
        );
        blocks.push(Block::Text { text, tone: if slo.broken > 0.01 { Tone::Bad } else { Tone::Good } });
    }
    if !verdict.reasons.is_empty() {
        blocks.push(Block::List { items: verdict.reasons.iter().map(|reason| reason.sentence.clone()).collect() });
    }
    section("verdict", format!("Load: {load}"), blocks)
}

fn response_times(verdict: &Verdict) -> Section {
    let row = |name: &str, of: &Percentiles| {
        let cells = [of.p50, of.p90, of.p99, of.p999, of.longest].map(percentile);
        [vec![name.to_string()], cells.to_vec()].concat()
    };
    let mut rows = vec![row("from when it was sent", &verdict.seconds)];
    if verdict.planned.is_some() || verdict.reasons.iter().any(|reason| reason.code == "coordinated-omission") {
        rows.insert(0, row("from when it was due", &verdict.corrected));
    }
    if verdict.refusals.longest.is_some() {
        rows.push(row("answers of 400 and more", &verdict.refusals));
    }
    let heads = ["p50", "p90", "p99", "p99.9", "longest"].map(Column::right);
    let columns =
        [Column::left(if verdict.sees_answers { "until the answer was whole" } else { "until the answer began" })]
            .into_iter()
            .chain(heads)
            .collect();
    let mut blocks = vec![Block::Table { title: String::new(), columns, rows }];
    if verdict.verdict == Word::ClientLimited {
        blocks.push(dim("Slow answers are not shown: what the generator itself adds is largest there."));
    }
    section("times", "Response times".into(), blocks)
}

fn failures(verdict: &Verdict) -> Option<Section> {
    if verdict.errors.is_empty() {
        return None;
    }
    let mut rows: Vec<Vec<String>> =
        verdict.errors.iter().map(|(failure, count)| vec![words(*failure).into(), count.to_string()]).collect();
    // Told by status instead.
    if let Some(word) = verdict.errors.contains_key(&Failure::Status).then(|| words(Failure::Status)) {
        rows.retain(|row| row[0] != word);
    }
    let refused = verdict.statuses.iter().filter(|entry| *entry.0 >= 400);
    rows.extend(refused.map(|(status, count)| vec![format!("status {status}"), count.to_string()]));
    let columns = vec![Column::left("requests that failed"), Column::right("count")];
    Some(section("failures", "Failures".into(), vec![Block::Table { title: String::new(), columns, rows }]))
}

fn phases(phases: &[Phase]) -> Option<Section> {
    if phases.len() < 2 {
        return None;
    }
    let row = |phase: &Phase| {
        let note = if phase.is_warm_up { "warm-up, left out" } else { "" };
        let span = format!("{} to {} s", phase.from, phase.to);
        let [p50, p99] = [phase.corrected.p50, phase.corrected.p99].map(percentile);
        vec![span, rounded(phase.rate), phase.failed.to_string(), p50, p99, note.into()]
    };
    let heads = ["answered/s", "failed", "p50", "p99"].map(Column::right);
    let columns = [Column::left("phase")].into_iter().chain(heads).chain([Column::left("")]).collect();
    let table = Block::Table { title: String::new(), columns, rows: phases.iter().map(row).collect() };
    Some(section("phases", "It did not go alike all the time".into(), vec![table]))
}

fn client(verdict: &Verdict) -> Section {
    let client = &verdict.client;
    let late = client.lag.p99.or(client.lag.p50).map_or(String::new(), |lag| {
        format!("one request in a hundred was noticed {} late or more; ", numbers::seconds(lag))
    });
    let text = format!(
        "{late}{:.2} CPUs, {} for each request, {} of the time waiting for one{}.",
        client.cpus,
        numbers::seconds(client.cpu_per_request),
        numbers::share(client.waited_for_cpu),
        if verdict.connections > 0 { format!("; {} connections", verdict.connections) } else { String::new() }
    );
    section("client", "The generator".into(), vec![Block::Text { text, tone: Tone::Plain }])
}

fn service(service: &Meanwhile) -> Section {
    let headline = format!("{}: {}", service.verdict, service.headline);
    let mut texts = vec![headline, format!("It used {:.2} CPUs.", service.cpus)];
    if !service.advice.is_empty() {
        texts.insert(1, service.advice.clone());
    }
    let blocks = texts.into_iter().map(|text| Block::Text { text, tone: Tone::Plain }).collect();
    section("service", "The service meanwhile".into(), blocks)
}

fn percentile(seconds: Option<f64>) -> String {
    seconds.map_or("-".into(), numbers::seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::{Run, Tried, judge, sweep};
    use std::time::Duration;

    fn run() -> Run {
        let mut run = Run { who: "this program".into(), planned: Some(100.0), pool: 4, ..Run::default() };
        (run.due, run.sent, run.length, run.seen) = (2000, 2000, Duration::from_secs(20), Duration::from_secs(20));
        run.in_time = 2000;
        for second in 0..20 {
            let mut each = load::Second { due: 100, sent: 100, ..load::Second::default() };
            (0..100).for_each(|nth| each.latency.add(Duration::from_micros(if second < 8 { 900 } else { 9000 } + nth)));
            (0..100).for_each(|nth| each.service.add(Duration::from_micros(800 + nth)));
            run.seconds.push(each);
        }
        run
    }

    fn drawn(verdict: Verdict) -> String {
        let service =
            Meanwhile { verdict: "busy-poll".into(), headline: "it polls".into(), advice: "wait".into(), cpus: 1.5 };
        let mut out = Vec::new();
        draw(&Answer::new("wakewalk", "http://h/".into(), verdict, Some(service)), 80, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_verdict_comes_first_and_phases_are_shown() {
        let text = drawn(judge(&run(), Some(Duration::from_millis(5))));
        assert!(text.find("misleading").unwrap() < text.find("Response times").unwrap(), "{text}");
        for part in ["8 to 20 s", "60.0 %", "busy-poll: it polls", "1.50 CPUs", "It did not go alike"] {
            assert!(text.contains(part), "`{part}` is missing: {text}");
        }
        assert!(!text.contains("Failures"));
    }

    #[test]
    fn failures_have_their_kinds() {
        let mut run = run();
        run.failures = [(Failure::Refused, 30), (Failure::Status, 70)].into();
        run.statuses = [(200, 1900), (503, 70)].into();
        let text = drawn(judge(&run, None));
        for part in ["connections refused", "status 503", "5.0 % of requests failed"] {
            assert!(text.contains(part), "`{part}` is missing: {text}");
        }
        assert!(!text.contains("status 200"));
    }

    #[test]
    fn a_sweep_is_a_table_by_rate() {
        let mut load = |rate: f64| {
            let mut verdict = judge(&run(), None);
            (verdict.rate, verdict.due, verdict.length, verdict.verdict) =
                (rate.min(150.0), (rate * 20.0) as u64, 20.0, Word::Valid);
            Ok(Some(Tried { verdict, service: None }))
        };
        let swept = sweep(50.0, 400.0, &mut load).unwrap();
        let mut out = Vec::new();
        draw_sweep(&SweepAnswer::new("wakewalk", "http://h/".into(), swept), 80, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("the limit lies between") && text.contains("over"), "{text}");
        let [low, high] = ["\n       50 ", "\n      200 "].map(|rate| text.find(rate));
        assert!(low < high, "{text}");
    }
}
