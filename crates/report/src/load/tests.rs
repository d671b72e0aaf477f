// SPDX-License-Identifier: Apache-2.0
//! What is said of loads, on a terminal and on a page.

use super::*;
use crate::section::Block;
use load::{Failure, Run, Tried, Word, judge, sweep};
use std::time::Duration;

#[path = "../../tests/data/loads.rs"]
mod loads;

fn run() -> Run {
    let mut run = Run { who: "this program".into(), planned: Some(100.0), pool: 4, ..Run::default() };
    (run.due, run.sent, run.length, run.seen) = (2000, 2000, Duration::from_secs(20), Duration::from_secs(20));
    run.in_time = 2000;
    for second in 0..20 {
        let mut each = load::Second { due: 100, sent: 100, done: 100, ..load::Second::default() };
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
    draw(&Answer::new("wakewalk", "http://h/".into(), verdict, Some(service)), false, 80, &mut out).unwrap();
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
    draw_sweep(&SweepAnswer::new("wakewalk", "http://h/".into(), swept), false, 80, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("requests a second at most") && text.contains("over"), "{text}");
    let [low, high] = ["\n       50 ", "\n      200 "].map(|rate| text.find(rate));
    assert!(low < high, "{text}");
}

const HOSTILE: &str = "\u{1b}[2J<script>alert(1)</script>\u{202e}";

fn swept(name: &str) -> SweepAnswer {
    SweepAnswer::new("wakewalk", name.into(), loads::swept(name).unwrap())
}

fn ids(sections: &[Section]) -> Vec<&str> {
    sections.iter().map(|section| section.id).collect()
}

/// What a page shows of it, where markup of foreign words cannot come from us.
fn is_harmless(page: &str) {
    assert_eq!(page.matches("<script").count(), 2, "the data and the script");
    assert!(!page.contains(['\u{1b}', '\u{202e}']) && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn a_page_of_a_sweep_has_every_section_and_foreign_words_stay_text() {
    let answer = swept(HOSTILE);
    let sections = sweep::sections(&answer);
    assert_eq!(ids(&sections), ["found", "curves", "distribution", "loads", "generator"]);
    let page = sweep_page(&answer).unwrap();
    is_harmless(&page);
    assert_eq!(page.matches("class=\"plotted\"").count(), 4, "answers, times, CPUs, share over the SLO");
    for words in ["limit found", "answers are slower at lower load", "limit: ", "promised: 60.0 ms", "over SLO"] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn a_paradox_comes_before_what_is_accused_and_is_seen_in_the_curves() {
    let answer = swept("shop");
    let head = sweep::head::head(&answer);
    assert_eq!((head.cause.as_str(), head.tone), ("limit found", Tone::Warn));
    assert!(head.how_much.starts_with("Answers are slower at lower load"), "{}", head.how_much);
    assert!(answer.sweep.findings.iter().any(|finding| finding.code == "service"), "{:?}", answer.sweep.findings);
    let sections = sweep::sections(&answer);
    let distribution = sections.iter().find(|section| section.id == "distribution").unwrap();
    let [Block::Distribution(distribution)] = &distribution.blocks[..] else { panic!("no distribution") };
    let half = |label: &str| distribution.curves.iter().find(|it| it.label == label).unwrap().quantile(0.5);
    assert!(half("20/s") > 10.0 * half("160/s"), "one line for each rate, the slow one to the right");
}

#[test]
fn a_page_of_a_load_has_its_seconds_and_its_failures() {
    let answer = Answer::new("wakewalk", HOSTILE.into(), loads::slowing(), Some(loads::service(HOSTILE, 400.0)));
    let all = sections(&answer);
    assert_eq!(ids(&all), ["reasons", "times", "course", "failures", "phases", "client", "service", "production"]);
    let page = page(&answer).unwrap();
    is_harmless(&page);
    for words in ["misleading", "another phase", "status 503", "In numbers (20 rows)", "data-kind=\"series\""] {
        assert!(page.contains(words), "{words}");
    }
    let short = sections(&Answer::new("wakewalk", "x".into(), judge(&loads::run(50, 50, 1, |_| 900), None), None));
    assert!(!ids(&short).contains(&"course"), "one second is no line");
}

#[test]
fn the_long_form_tells_seconds_and_what_the_generator_took() {
    let told = |full| {
        let mut out = Vec::new();
        let answer = Answer::new("wakewalk", "http://h/".into(), loads::slowing(), None);
        draw(&answer, full, 80, &mut out).unwrap();
        draw_sweep(&swept("shop"), full, 80, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let (brief, full) = (told(false), told(true));
    assert!(!brief.contains("Second by second") && full.contains("Second by second"), "{full}");
    assert!(full.contains("late p50") && brief.contains("over SLO") && brief.contains("slow-dependency"), "{brief}");
    let wide =
        |line: &&str| textwrap::core::display_width(&line.replace("\u{1b}[2m", "").replace("\u{1b}[0m", "")) > 80;
    assert_eq!(full.lines().find(wide), None);
}

/// Those that are said beside any verdict alone need no advice.
#[test]
fn what_makes_a_load_unsound_has_advice() {
    let text = include_str!("../../../../docs/load.md");
    let rows = text.lines().skip_while(|line| !line.starts_with("| reason |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|')).filter(|row| !row.contains("(said beside any verdict) |"));
    let codes: Vec<&str> = rows.flat_map(|row| row[..row.find(" | ").unwrap()].split('`').skip(1).step_by(2)).collect();
    assert!(codes.len() > 15, "{codes:?}");
    for code in codes {
        let mut verdict = judge(&run(), None);
        verdict.verdict = Word::Misleading;
        verdict.reasons = vec![load::Reason { code: code.into(), sentence: String::new() }];
        let advice = head::head(&Answer::new("wakewalk", "http://h/".into(), verdict, None)).to_do;
        assert!(!advice.contains("was sound") && !advice.contains("See why before"), "{code}: {advice}");
    }
}

#[test]
fn a_load_beside_production() {
    use diagnose::likeness::{Likeness, Trait, Unit};
    let service = || Some(loads::service("node", 10.0));
    let drawn = |production: Option<Likeness>| {
        let answer = Answer::new("wakewalk", "http://h/".into(), judge(&run(), None), service()).beside(production);
        let mut out = Vec::new();
        draw(&answer, false, 80, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(drawn(None).contains("--like DIR"));
    let it = |what: &str, unit, is_unlike| Trait {
        id: "x".into(),
        what: what.into(),
        unit,
        production: 0.25,
        load: 1.0,
        is_unlike,
    };
    let mut both = Likeness {
        traits: vec![it("requests that begin a connection", Unit::Share, true), it("burst", Unit::Number, false)],
        not_compared: vec!["round trip to clients: nothing was on its way".into()],
    };
    let text = drawn(Some(both.clone()));
    for part in ["In 1 of 2 things", "25.0 %", "100 %", "unlike", "Not compared: round trip"] {
        assert!(text.contains(part), "`{part}` is missing: {text}");
    }
    both.traits.remove(0);
    let alike = drawn(Some(both));
    assert!(alike.contains("The load comes as clients do"), "{alike}");
}
