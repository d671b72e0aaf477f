// SPDX-License-Identifier: Apache-2.0
//! Whole comparisons of recordings written as text.

use super::*;
use recording::Part;
use recording::text::parse;

/// `seconds` of a service: cores used, of these in the kernel, requests a second, polls for each of them.
#[derive(Clone, Copy)]
struct Service {
    seconds: u64,
    cores: f64,
    kernel: f64,
    rate: f64,
    polls: f64,
}

const USUAL: Service = Service { seconds: 20, cores: 0.5, kernel: 0.2, rate: 1000.0, polls: 2.0 };

impl Service {
    /// As a recording, with an honest ripple of a few per cent.
    fn recorded(&self, extra: &str) -> Recording {
        let mut text = format!("meta host.arch=x86_64 host.boot_id=b target.comm=svc length_ns={}e9\n", self.seconds);
        text += "frame id=1 symbol=work module=svc\nframe id=2 symbol=main module=svc\nstack id=1 frames=[1,2] complete=true\n";
        text += "frame id=3 symbol=send module=kernel kind=kernel\nstack id=2 frames=[3,2] complete=true\n";
        text += "counter source=proc/pid entity=p1 name=write_calls value=0\n";
        let mut writes = 0.0;
        for i in 1..=self.seconds {
            let ripple = 1.0 + 0.02 * ((i * 7 % 5) as f64 - 2.0) / 2.0;
            writes += self.rate;
            text += &format!(
                "thread t_ns={i}e9 pid=1 tid=1 comm=svc wall_ns=1e9 cpu_ns={}\n",
                (self.cores * ripple * 1e9).round()
            );
            text += &format!("counter t_ns={i}e9 source=proc/pid entity=p1 name=write_calls value={writes}\n");
            let samples = 200.0 * self.cores * ripple;
            for (stack, kernel, share) in [(1, false, 1.0 - self.kernel), (2, true, self.kernel)] {
                let weight = (samples * share).round();
                text += &format!(
                    "sample t_ns={} pid=1 tid=1 kernel={kernel} stack={stack} weight={weight}\n",
                    i * 1_000_000_000 - 5
                );
            }
            let (t_ns, useful) = (i * 1_000_000_000 - 500_000_000, self.rate * 0.05);
            text += &format!("call_window id={i} kind=results t_ns={t_ns} length_ns=5e7\n");
            text += &format!("call window={i} syscall=232 result=0 count={}\n", (self.polls * useful * ripple).round());
            text += &format!("call window={i} syscall=1 result=64 count={useful}\n");
        }
        parse(&(text + extra)).unwrap()
    }
}

fn compared(a: &Recording, b: &Recording) -> Comparison {
    let named = |recording, label: &str| Named { recording, label: label.into() };
    compare(&named(a, "a"), &named(b, "b"), Per::Auto).unwrap()
}

fn measure<'c>(c: &'c Comparison, id: &str) -> &'c Measure {
    c.measures.iter().find(|m| m.id == id).unwrap_or_else(|| panic!("no {id} among {:?}", c.measures))
}

#[test]
fn the_same_again_shows_nothing_and_says_what_it_would_have_shown() {
    let c = compared(&USUAL.recorded(""), &USUAL.recorded("meta start_ns=7"));
    assert_eq!(c.verdict, "no-difference", "{}", c.headline);
    assert!(c.headline.contains("would have been seen"), "{}", c.headline);
    assert!(c.load.starts_with("the same, 1000 write calls a second"), "{}", c.load);
    assert!(measure(&c, "cpu").difference.detectable.unwrap() > 0.0 && c.statistics.between_runs > 0.0);
    assert!((measure(&c, "cpu").difference.a - 0.5e-3).abs() < 1e-6);
}

#[test]
fn a_tenth_more_work_at_the_same_load_is_found_where_it_is() {
    let more = Service { cores: 0.55, kernel: 0.2 * 0.5 / 0.55, ..USUAL };
    let c = compared(&USUAL.recorded(""), &more.recorded("meta start_ns=7"));
    assert_eq!(c.verdict, "changed");
    assert!(c.headline.starts_with("CPU time per write call rose by 10.0 % ("), "{}", c.headline);
    assert!(measure(&c, "user_cpu").difference.changed && !measure(&c, "kernel_cpu").difference.changed);
    assert_eq!((c.functions[0].name.as_str(), c.functions[0].own.b > c.functions[0].own.a), ("work", true));
}

#[test]
fn twice_the_load_at_the_same_cost_is_no_dearer_service() {
    let twice = Service { cores: 1.0, rate: 2000.0, ..USUAL };
    let c = compared(&USUAL.recorded(""), &twice.recorded("meta start_ns=7"));
    assert!(!measure(&c, "cpu").difference.changed && measure(&c, "operations").difference.changed);
    assert!(
        c.load.contains("rose by 100.0 %") && c.warnings.iter().any(|w| w.starts_with("the load changed")),
        "{}",
        c.load
    );
    assert_eq!(c.verdict, "changed");
}

#[test]
fn polls_per_useful_event_before_and_after() {
    let spinning = Service { cores: 1.0, polls: 5000.0, ..USUAL };
    let c = compared(&spinning.recorded(""), &USUAL.recorded("meta start_ns=7"));
    let polls = measure(&c, "polls_per_useful_event").difference;
    assert!(polls.changed && (polls.a - 5000.0).abs() < 50.0 && (polls.b - 2.0).abs() < 0.1);
    assert!(c.headline.contains("polls per useful event fell by"), "{}", c.headline);
    assert!(!measure(&c, "operations").difference.changed);
    assert!(measure(&c, "calls_epoll_wait").difference.changed);
}

#[test]
fn two_parts_of_one_recording() {
    let whole = USUAL.recorded("");
    let part =
        |from: u64, to: u64| whole.part(Part { from_ns: from * 1_000_000_000, to_ns: to * 1_000_000_000 }).unwrap().0;
    let c = compared(&part(0, 10), &part(10, 20));
    assert_eq!((c.verdict.as_str(), c.a.slices, c.statistics.between_runs), ("no-difference", 10, 0.0));
    assert!(c.warnings.iter().any(|w| w.contains("parts of one run")));
}

#[test]
fn what_cannot_be_compared_is_refused_with_a_sentence() {
    let short = Service { seconds: 3, ..USUAL }.recorded("");
    let (usual, empty) = (USUAL.recorded(""), parse("").unwrap());
    let host = parse("meta kind=host").unwrap();
    let refused = |a: &Recording| {
        let named = |recording| Named { recording, label: "x".into() };
        compare(&named(a), &named(&usual), Per::Auto).err().unwrap().0
    };
    assert!(refused(&short).contains("3 time slices"));
    assert!(refused(&empty).contains("no thread ledger"));
    assert!(refused(&host).contains("whole host"));
}

#[test]
fn absurd_and_missing_rows_never_panic_and_stay_numbers() {
    let text = "meta host.arch=x86_64\n".to_string()
        + &(1..=6).map(|i| format!("thread t_ns={i} pid=1 tid=1 cpu_ns={}\n", u64::MAX)).collect::<String>()
        + "sample t_ns=99 stack=77 weight=4294967295\ncall_window id=1\ncall window=1 syscall=232 count=18446744073709551615
           counter source=proc/pid entity=p1 name=write_calls value=1e308\ncounter t_ns=3 source=proc/pid entity=p1 name=write_calls value=-1e308";
    let odd = parse(&text).unwrap();
    let idle = parse(&(1..=6).map(|i| format!("thread t_ns={i} pid=1 tid=1\n")).collect::<String>()).unwrap();
    for (a, b) in [(&odd, &odd), (&odd, &idle), (&idle, &odd), (&idle, &idle)] {
        let json = serde_json::to_string(&compared(a, b)).unwrap();
        assert!(serde_json::from_str::<Comparison>(&json).is_ok(), "not a number in {json}");
    }
}

#[test]
fn the_same_recordings_give_the_same_bytes() {
    let (a, b) = (USUAL.recorded(""), Service { cores: 0.6, ..USUAL }.recorded("meta start_ns=7"));
    let json = || serde_json::to_string(&compared(&a, &b)).unwrap();
    assert_eq!(json(), json());
}

/// A kernel without PSI on one side; and on the other a neighbour who writes to a disk.
#[test]
fn what_one_side_cannot_read_and_what_others_do_is_no_change() {
    let grows = |source: &str, entity: &str, name: &str| -> String {
        (0..=USUAL.seconds)
            .map(|i| format!("counter t_ns={i}e9 source={source} entity={entity} name={name} value={i}e8\n"))
            .collect()
    };
    let stalls = USUAL.recorded(&grows("proc/pressure", "cpu", "some_ns"));
    let c = compared(&USUAL.recorded(""), &stalls);
    assert!(c.measures.iter().all(|m| !m.label.contains("pressure")) && c.verdict == "no-difference", "{c:?}");
    let quiet = grows("proc/diskstats", "sda", "io_ns").replace("e8", "e3");
    let c = compared(&USUAL.recorded(&quiet), &USUAL.recorded(&grows("proc/diskstats", "sda", "io_ns")));
    let host = c.measures.iter().find(|m| m.label.contains("diskstats io")).unwrap();
    assert!(host.difference.changed && host.group == "host" && c.verdict == "no-difference", "{host:?}");
}
