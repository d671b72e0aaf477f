// SPDX-License-Identifier: Apache-2.0
//! The page as a file, and the JSON: size, bytes, and that no name breaks out. What a browser makes of the
//! page is tested beside its script, in `web/test`.

use diagnose::verdict::Verdict;
use wakewalk_report::flame::Frame;
use wakewalk_report::formats::{html, json};
use wakewalk_report::section::{Block, FlameNode, Section, Terminal};

#[path = "data/sample.rs"]
mod sample;

use sample::samples;

#[test]
fn the_same_verdict_gives_the_same_bytes() {
    for (a, b) in samples().unwrap().iter().zip(&samples().unwrap()) {
        assert_eq!(json::text(&a.verdict).unwrap(), json::text(&b.verdict).unwrap());
        assert_eq!(html::page(&a.verdict, &a.sections).unwrap(), html::page(&b.verdict, &b.sections).unwrap());
    }
}

#[test]
fn json_is_the_contract() {
    for sample in samples().unwrap() {
        let text = json::text(&sample.verdict).unwrap();
        assert!(text.ends_with("}\n") && !text.contains(|c: char| c.is_control() && c != '\n'));
        let read: Verdict = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), serde_json::to_value(&sample.verdict).unwrap());
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
    let page = html::page(&hostile.verdict, &hostile.sections).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "the data and the script");
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<img") && !page.contains('\u{1b}') && !page.contains('\u{202e}'));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains(r"\x1b[2J"));
}

#[test]
fn a_page_needs_nothing_from_outside() {
    let sample = samples().unwrap().remove(0);
    let page = html::page(&sample.verdict, &sample.sections).unwrap();
    assert!(page.contains("default-src 'none'"));
    for reference in ["src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn a_big_profile_makes_a_page_of_modest_size() {
    let mut sample = samples().unwrap().remove(0);
    sample.sections.push(big_profile());
    let page = html::page(&sample.verdict, &sample.sections).unwrap();
    assert!(page.len() < 600_000, "{} bytes", page.len());
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
