// SPDX-License-Identifier: Apache-2.0
//! Single requests from their arrival to the answer: the slowest, and a few usual ones; each opens into what it waited for, with
//! stacks. A page only.

mod steps;

use diagnose::Case;
use diagnose::facts::stacks::Stacks;
use diagnose::facts::stages::{Stage, Stages};
use diagnose::walk::chains::Chain;
use diagnose::walk::paths::{Exemplar, Part, Paths, RequestPaths, Step, What};
use diagnose::walk::{HAND_OFF, Kind, LOCK};

use crate::numbers;
use crate::section::pictures::{Hue, Span, Timeline, TimelineRow};
use crate::section::{Block, Section, Terminal};

use super::Material;

/// Ports of which requests are shown, the ones with most.
const PORTS: usize = 3;

/// The timelines.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let case = material.case;
    let (paths, stacks) = (case.fact::<RequestPaths>().ok()?, case.fact::<Stacks>().ok()?);
    let teller = Teller { case, stacks: &stacks };
    let shown = paths.ports.iter().take(PORTS).filter(|paths| !paths.exemplars.is_empty());
    let blocks: Vec<Block> = shown.map(|paths| Block::Timeline(teller.timeline(paths))).collect();
    (!blocks.is_empty()).then(|| Section::new("exemplars", "Single requests", blocks, Terminal::Nothing))
}

/// What rows are told from.
struct Teller<'t, 'r> {
    case: &'t Case<'r>,
    stacks: &'t Stacks,
}

impl Teller<'_, '_> {
    fn timeline(&self, paths: &Paths) -> Timeline {
        let all = &paths.exemplars;
        let slow = all.iter().filter(|one| !one.is_usual).count();
        let of = numbers::number(paths.all.requests as f64);
        let title = match all.len() - slow {
            0 => format!("At port {}: {slow} of {of} that were followed", paths.port),
            usual => {
                format!("At port {}: of {of} that were followed, the slowest {slow} and {usual} usual ones", paths.port)
            }
        };
        let mut nth = 0;
        let mut row = |one: &Exemplar| {
            nth = if one.is_usual { 0 } else { nth + 1 };
            self.row(one, paths.port, nth)
        };
        let rows: Vec<TimelineRow> = all.iter().map(&mut row).collect();
        let used = |hue: &Hue| rows.iter().any(|row| row.spans.iter().any(|span| span.hue == *hue));
        let keys = KEYS.iter().filter(|(hue, _)| used(hue)).map(|(hue, words)| (*hue, (*words).to_owned())).collect();
        let legend =
            "Each bar is one request from its arrival to the first write of its answer, on a scale of its own; \
                      the line in it is its read. Open it to see what it waited for, with stacks."
                .to_owned();
        Timeline { title, legend, keys, rows }
    }

    fn row(&self, one: &Exemplar, port: u32, nth: usize) -> TimelineRow {
        let title = match nth {
            0 => "usual".to_owned(),
            1 => "slowest".to_owned(),
            nth => format!("slow, no. {nth}"),
        };
        let at = numbers::seconds(one.began_ns / 1e9);
        let main = one.steps.iter().flat_map(|step| &step.parts).max_by(|a, b| a.ns.total_cmp(&b.ns));
        let most = main.filter(|part| part.ns > 0.0).map_or_else(String::new, |part| {
            format!("; longest: {} ({})", part.words(), numbers::seconds(part.ns / 1e9))
        });
        TimelineRow {
            title,
            note: format!("from {}, {at} into the capture{most}", one.peer),
            seconds: one.answered_ns / 1e9,
            spans: spans(one),
            marks: vec![(one.read_ns / 1e9, format!("read after {}", numbers::seconds(one.read_ns / 1e9)))],
            steps: self.steps(one, self.acknowledged(port)),
        }
    }

    /// What happens to answers at a port once they are written, on average.
    fn acknowledged(&self, port: u32) -> Option<String> {
        let stages = self.case.fact::<Stages>().ok()?;
        let at_port = format!(":{port}");
        let of = stages.endpoints.iter().find(|of| of.accepted && of.name.ends_with(&at_port))?;
        let words = |stage, what: &str| of.of(stage).map(|s| format!("{} {what}", numbers::seconds(s)));
        let told: Vec<String> = [words(Stage::Held, "held in the send queue"), words(Stage::Wire, "on the wire")]
            .into_iter()
            .flatten()
            .collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}

/// The hues and what they mean here.
const KEYS: &[(Hue, &str)] = &[
    (Hue::Work, "on a CPU"),
    (Hue::Queue, "ready without a CPU, or before its turn"),
    (Hue::Peer, "waits for somebody whom the target asked, or for the rest of the question"),
    (Hue::Held, "waits for a lock, or for another thread of its own"),
    (Hue::Sleep, "sleeps"),
    (Hue::Wire, "waits for a disk, the kernel or the network"),
    (Hue::Unseen, "not seen, or inside the program"),
];

fn hue(part: &Part) -> Hue {
    match &part.what {
        _ if part.before => Hue::Queue,
        What::Awake { kind: Kind::OnCpu, .. } => Hue::Work,
        What::Awake { kind: Kind::RunQueue, .. } => Hue::Queue,
        What::Asking { .. } => Hue::Peer,
        What::Awake { .. } | What::Inside { .. } => Hue::Unseen,
        What::Waits(chain) => hue_of_wait(chain),
    }
}

fn hue_of_wait(chain: &Chain) -> Hue {
    let (first, end) = (&chain.links[0].who, chain.end.kind);
    match end {
        _ if chain.links.iter().any(|link| !link.who.peer.is_empty()) => Hue::Peer,
        _ if [LOCK, HAND_OFF].contains(&first.fd_kind.as_str()) => Hue::Held,
        Kind::Timer => Hue::Sleep,
        Kind::Disk | Kind::Packet | Kind::Kernel | Kind::Interrupt | Kind::TcpTimer => Hue::Wire,
        _ if chain.links.iter().any(|link| link.who.pid != first.pid) => Hue::Peer,
        Kind::Unseen | Kind::Short => Hue::Unseen,
        _ => Hue::Held,
    }
}

/// Spans of a bar that can be drawn; of the rest, so short, there are too many.
const MOST_SPANS: usize = 60;

/// What covers a bar: the longer before the shorter, which lies within.
fn spans(one: &Exemplar) -> Vec<Span> {
    let span = |step: &Step| {
        let part = step.parts.first()?;
        let (from, until) = (step.from_ns / 1e9, step.until_ns / 1e9);
        let label = format!("{}: {}", part.words(), numbers::seconds(step.ns() / 1e9));
        Some(Span { from, until, hue: hue(part), label })
    };
    let mut spans: Vec<Span> = one.steps.iter().filter_map(span).collect();
    spans.sort_by(|a, b| (b.until - b.from).total_cmp(&(a.until - a.from)));
    spans.truncate(MOST_SPANS);
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::tests::section;

    const TEXT: &str = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
        process pid=1 listen=[\"tcp 0.0.0.0:80\"]
        thread t_ns=1e9 pid=1 tid=1 comm=svc wall_ns=1e9 cpu_ns=5e8 blocked_ns=5e8
        burst t_ns=1e9 length_ns=1e9
        frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
        frame id=2 symbol=do_nanosleep module=kernel kind=kernel
        frame id=3 symbol=handle_order module=/bin/svc kind=native
        stack id=1 frames=[1]
        stack id=2 frames=[2]
        stack id=3 frames=[3]
        sample t_ns=105e6 pid=1 tid=1 comm=svc stack=3 weight=1
        request t_ns=150e6 role=accepted port=80 peer=10.0.0.1:999 pid=1 began_ns=100e6 began_tid=1 read_ns=101e6 ended_tid=1
        wakeup t_ns=149e6 pid=1 tid=1 comm=svc wait_ns=40e6 blocked_ns=40e6 since_ns=100e6 waits=1 cpu_ns=1e6 syscall=35 stack=2 context=interrupt waker_stack=1";

    #[test]
    fn a_request_opens_into_its_path_with_stacks() {
        let section = section(view, TEXT).unwrap();
        let Block::Timeline(timeline) = &section.blocks[0] else { panic!("no timeline") };
        let [row] = &timeline.rows[..] else { panic!("{timeline:?}") };
        assert_eq!((row.title.as_str(), row.seconds), ("slowest", 0.05));
        assert!(
            row.note.starts_with("from 10.0.0.1:999, 100 ms into the capture; longest: svc/1 in nanosleep (40.0 ms)"),
            "{}",
            row.note
        );
        let told: Vec<(&str, &str, &str)> =
            row.steps.iter().map(|step| (step.at.as_str(), step.length.as_str(), step.what.as_str())).collect();
        assert_eq!(told[0].2, "it arrives");
        assert!(told.iter().any(|step| step.0 == "1.00 ms" && step.2 == "svc/1 (thread 1) reads it"), "{told:?}");
        assert!(told.contains(&("9.00 ms", "40.0 ms", "svc/1 in nanosleep")), "{told:?}");
        assert!(told.last().unwrap().2.contains("writes the answer"), "{told:?}");
        let stacks: Vec<&(String, Vec<String>)> = row.steps.iter().flat_map(|step| &step.stacks).collect();
        assert!(stacks.iter().any(|(_, frames)| frames.contains(&"do_nanosleep".to_owned())), "{stacks:?}");
        assert!(
            stacks.iter().any(|(head, frames)| head.contains("on a CPU") && frames[0] == "handle_order"),
            "{stacks:?}"
        );
        assert!(row.spans.iter().any(|span| span.hue == Hue::Sleep));
        assert!(super::super::tests::section(view, "").is_none());
    }
}
