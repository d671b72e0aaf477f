// SPDX-License-Identifier: Apache-2.0
//! The page as a file, and the JSON: size, bytes, and that no name breaks out. What a browser makes of the
//! page is tested beside its script, in `web/test`.

#![allow(clippy::unwrap_used, reason = "helpers of a test may panic like the test")]

use diagnose::Case;
use diagnose::verdict::Verdict;
use wakewalk_report::flame::Frame;
use wakewalk_report::formats::json;
use wakewalk_report::section::{Block, FlameNode, Section, Terminal};
use wakewalk_report::verdict;
use wakewalk_report::views::Material;

#[path = "data/sample.rs"]
mod sample;

use sample::samples;

#[test]
fn the_same_verdict_gives_the_same_bytes() {
    for (a, b) in samples().unwrap().iter().zip(&samples().unwrap()) {
        assert_eq!(json::text(&a.verdict).unwrap(), json::text(&b.verdict).unwrap());
        assert_eq!(verdict::page(&a.verdict, &a.sections).unwrap(), verdict::page(&b.verdict, &b.sections).unwrap());
    }
}

#[test]
fn json_is_the_contract() {
    for sample in samples().unwrap() {
        let text = json::text(&sample.verdict).unwrap();
        assert!(text.ends_with("}\n") && !text.contains(|c: char| c.is_control() && c != '\n'));
        let read: Verdict = serde_json::from_str(&text).unwrap();
        // By the same reader: the last digit of a number is its own.
        assert_eq!(serde_json::to_value(read).unwrap(), serde_json::from_str::<serde_json::Value>(&text).unwrap());
    }
}

#[test]
fn json_keeps_the_order_of_the_contract() {
    let sample = samples().unwrap().remove(0);
    let text = json::text(&sample.verdict).unwrap();
    let fields: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  \"")?.split('"').next()).collect();
    let contract = "schema tool host target window symptom verdict headline advice detail findings ruled_out gaps requests ledger coverage cost";
    assert_eq!(fields.join(" "), contract);
}

#[test]
fn names_stay_text() {
    let hostile = samples().unwrap().into_iter().find(|s| s.name == "hostile").unwrap();
    let page = verdict::page(&hostile.verdict, &hostile.sections).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "the data and the script");
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<img") && !page.contains('\u{1b}') && !page.contains('\u{202e}'));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains(r"\x1b[2J"));
}

#[test]
fn a_page_needs_nothing_from_outside() {
    let sample = samples().unwrap().remove(0);
    let page = verdict::page(&sample.verdict, &sample.sections).unwrap();
    assert!(page.contains("default-src 'none'"));
    for reference in ["src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn a_big_profile_makes_a_page_of_modest_size() {
    let mut sample = samples().unwrap().remove(0);
    sample.sections.push(big_profile());
    let page = verdict::page(&sample.verdict, &sample.sections).unwrap();
    assert!(page.len() < 600_000, "{} bytes", page.len());
}

fn page_of(name: &str) -> String {
    let sample = samples().unwrap().into_iter().find(|sample| sample.name == name).unwrap();
    verdict::page(&sample.verdict, &sample.sections).unwrap()
}

#[test]
fn requests_are_shown_from_the_recording_alone() {
    let page = page_of("requests");
    for id in ["requests", "stages", "hops", "paths", "exemplars", "sockets"] {
        assert!(page.contains(&format!("<section id=\"{id}\"")), "{id}");
    }
    // Where each exchange spends its time: 4 ms unread, 39 in service, and at the store.
    for words in
        ["read wait <data value=\"0.004\">4.00 ms", "service <data value=\"0.039\">39.0 ms", "it asks 10.0.0.9:5432"]
    {
        assert!(page.contains(words), "{words}");
    }
    // A curve by stage, with its percentiles for whoever has no script.
    assert_eq!(page.matches("data-kind=\"distribution\"").count(), 2);
    // Eight of sixty, each with its arrival, read and answer, and with stacks.
    assert_eq!(page.matches("class=\"exemplar\"").count(), 8);
    assert!(page.contains("of 60 that were followed, the slowest 5 and 3 usual ones"));
    for words in
        ["it arrives", "shop/1 (thread 1) reads it", "shop/1 (thread 1) writes the answer", "<li>tcp_recvmsg</li>"]
    {
        assert!(page.matches(words).count() >= 8, "{words}");
    }
    assert!(page.contains("on average 10.0 ms held in the send queue"));
}

#[test]
fn each_hop_is_guilty_or_innocent() {
    let page = page_of("requests");
    let hops = page.split("<section id=\"hops\"").nth(1).unwrap();
    let row = |name: &str| {
        let rest = hops.split(&format!("<th scope=\"row\">{name}</th>")).nth(1).unwrap_or_default();
        rest.split("</tr>").next().unwrap_or_default().to_owned()
    };
    assert!(
        row("10.0.0.9:5432").contains("<td>guilty</td><td>76.7 % of the response time; slow-dependency: "),
        "{}",
        row("10.0.0.9:5432")
    );
    assert!(
        row("10.0.0.10:6379").contains("<td>innocent</td><td>0 % of the response time; "),
        "{}",
        row("10.0.0.10:6379")
    );
    for name in ["shop", "clients at 0.0.0.0:8080"] {
        assert!(row(name).contains("<td>innocent</td>"), "{}", row(name));
    }
}

#[test]
fn many_requests_with_many_steps_make_a_page_of_modest_size() {
    let mut text =
        "meta host.arch=x86_64 length_ns=100e9 target.pids=[1]\nprocess pid=1\nburst t_ns=100e9 length_ns=100e9\n"
            .to_owned();
    let long = "x".repeat(120);
    for frame in 1..=60 {
        text += &format!("frame id={frame} symbol={long}{frame} kind=kernel module=kernel\n");
    }
    let frames: Vec<String> = (1..=60).map(|frame| frame.to_string()).collect();
    text += &format!("stack id=1 frames=[{}]\n", frames.join(","));
    for nth in 0..400_u64 {
        let (port, at) = (1 + nth % 10, nth * 200_000_000);
        text += &format!(
            "request t_ns={} role=accepted port={port} pid=1 began_ns={at} began_tid=1 read_ns={at} ended_tid=1\n",
            at + 110_000_000
        );
        for wait in 1..=40_u64 {
            let end = at + wait * 2_700_000;
            text += &format!(
                "wakeup t_ns={end} pid=1 tid=1 comm=svc wait_ns=2600000 blocked_ns=2600000 since_ns={} syscall={} stack=1 context=interrupt\n",
                end - 2_700_000,
                wait % 50
            );
        }
    }
    let recording = recording::text::parse(&text).unwrap();
    let verdict = diagnose::diagnose(&recording);
    let sections = verdict::sections(&Material::new(&verdict, &Case::new(&recording)), None);
    let page = verdict::page(&verdict, &sections).unwrap();
    let shown = page.matches("class=\"exemplar\"").count();
    assert_eq!(shown, 24, "eight at each of three ports");
    assert!(page.contains("shorter steps in between: ") && page.contains("and 48 more"));
    assert!(page.len() < 2_500_000, "{} bytes", page.len());
}

/// 2,000 samples of stacks that are 40 frames deep, part every fourth frame, and have long C++ names.
fn big_profile() -> Section {
    let mut root = FlameNode::root("all");
    for sample in 0..2_000_u32 {
        let names: Vec<String> = (0..40).map(|depth| long_name(sample % (1 << (depth / 4)), depth)).collect();
        let frame = |name| Frame { name, kind: "native", module: "/usr/lib/x86_64-linux-gnu/libbig.so" };
        root.insert(names.iter().map(|name| frame(name)), 1.0);
    }
    let [title, unit, legend] = ["big", "samples", ""].map(str::to_owned);
    let blocks = vec![Block::Flame { title, unit, legend, root: root.finish() }];
    Section::new("big", "Big", blocks, Terminal::Nothing)
}

fn long_name(way: u32, depth: u32) -> String {
    format!("void std::__detail::_Executor<std::_Iterator, std::allocator<std::sub_match>>::step_{depth}_{way}")
}
