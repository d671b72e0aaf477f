// SPDX-License-Identifier: Apache-2.0
//! Clients that send what they ask in parts: how much of the response time passes until the last part has come, and whether they
//! wait with it for an acknowledgement that this kernel puts off.

use std::f64::consts::TAU;

use recording::tables::Request;

use crate::case::Case;
use crate::facts::requests::{Endpoint, Requests};
use crate::judgement::nagle;
use crate::statistics::share;

/// Of the response time: a user feels a quarter.
const MUCH: f64 = 0.25;

/// Questions in parts: of fewer, each may be chance.
const SEVERAL: f64 = 10.0;

/// On average, ns: sooner, nobody feels it.
const FELT_NS: f64 = 5e6;

/// How long Linux puts off an acknowledgement that nothing else calls for, ns: its shortest timer, in ticks of up to
/// 10 ms, and the way to the client and back.
const PUT_OFF_NS: std::ops::Range<f64> = 36e6..52e6;

/// Of the parts: nearly all that come after a timer come as late as it.
const NEARLY_ALL: f64 = 0.8;

/// Of the parts, the acknowledgements that the timer sent: others of this network namespace may have some too.
const MIN_COUNTED: f64 = 0.5;

/// What clients ask in parts, at the port where most time goes to that.
pub(crate) struct InParts {
    /// It.
    pub endpoint: Endpoint,
    /// Questions in parts, in the whole window.
    pub count: f64,
    /// Of the response time there, until the rest had come.
    pub part: f64,
    /// In all, s.
    pub seconds: f64,
    /// Of the parts, those that came as late as a timer of this kernel acknowledges the first one.
    pub after_timer: f64,
    /// Acknowledgements that this timer sent, in the target's network namespace.
    pub delayed_acks: Option<f64>,
    /// How much the parts come in step with the ticks of this kernel's timers, 0 to 1; none = too few were followed one by one.
    pub in_step: Option<f64>,
}

/// Requests followed one by one, from which on their moments say something.
const FOLLOWED: usize = 20;

/// Measured: 0.96 and more where a timer acknowledges; 0.3 and less of clients that pause by themselves, and up to 0.75 where one
/// round of theirs happens to be a multiple of a tick.
const IN_STEP: f64 = 0.9;

/// Whether parts come in step with the ticks: an acknowledgement that a timer sends leaves at one, and what waits for it comes back
/// at once. A client that pauses by itself comes at any time between two of them.
fn in_step(case: &Case, port: u32) -> Option<f64> {
    let rows = case.recording.rows::<Request>().iter().filter(|r| r.is_of_client() && r.port == port);
    let came: Vec<f64> = rows.filter(|row| row.rest_ns > 0).map(|row| row.rest_ns as f64).collect();
    let tick_ns = case.recording.meta.host.tick_ns;
    (came.len() >= FOLLOWED && tick_ns > 0).then(|| concentration(&came, tick_ns as f64))
}

/// How much moments are at the same place between two ticks: the length of the mean of their directions on a circle.
fn concentration(moments: &[f64], tick_ns: f64) -> f64 {
    let directions = moments.iter().map(|at| (at % tick_ns) / tick_ns * TAU);
    let (x, y) = directions.fold((0.0, 0.0), |(x, y), angle| (x + angle.cos(), y + angle.sin()));
    f64::hypot(x, y) / moments.len() as f64
}

/// The time that clients take to send what they ask, where it matters.
pub(crate) fn look(case: &Case) -> Option<InParts> {
    let requests = case.fact::<Requests>().ok()?;
    let asked = requests.endpoints.iter().filter(|e| e.accepted && e.is_in_parts());
    let most = asked.max_by(|a, b| a.rest.sum_ns.total_cmp(&b.rest.sum_ns))?;
    let scale = requests.scale();
    let after_timer = most.rest.count_from(PUT_OFF_NS.start) - most.rest.count_from(PUT_OFF_NS.end);
    let look = InParts {
        count: most.rest.count * scale,
        part: share(most.rest.sum_ns, most.response.sum_ns),
        seconds: most.rest.sum_ns * scale / 1e9,
        after_timer: share(after_timer, most.rest.count),
        in_step: in_step(case, most.port),
        delayed_acks: nagle::delayed_acks(case),
        endpoint: most.clone(),
    };
    let matters = most.rest.count >= SEVERAL && look.part >= MUCH && most.rest.mean_ns() >= FELT_NS;
    matters.then_some(look)
}

/// Who asks with `Expect: 100-continue` whether it may send a body, and sends it without an answer after so long, ns.
const EXPECTING: [(&str, f64); 2] = [("curl does", 1e9), (".NET does", 35e7)];

/// Beside that: the way there and back, and what lengths are rounded to.
const ABOUT: std::ops::Range<f64> = 0.94..1.08;

impl InParts {
    /// Who is known to wait for `100 Continue` as long as these clients wait before they send the rest, nearly all of them, and how long, ns.
    pub(crate) fn expects(&self) -> Option<(&'static str, f64)> {
        let (length_ns, part) = self.endpoint.rest.most_alike();
        let known = EXPECTING.iter().find(|(_, ns)| ABOUT.contains(&(length_ns / ns)));
        known.filter(|_| part >= NEARLY_ALL).map(|(who, _)| (*who, length_ns))
    }

    /// Whether the rest comes when this kernel has acknowledged the first part, and not before: the client holds it until then.
    pub(crate) fn waits_for_acknowledgement(&self) -> bool {
        self.after_timer >= NEARLY_ALL
            && self.in_step.is_some_and(|in_step| in_step >= IN_STEP)
            && self.delayed_acks.is_some_and(|acks| acks >= self.count * MIN_COUNTED)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use recording::text::parse;

    /// A hundred answers after 42 ms, of which the rest of the question comes so late, at a tick or not; and so many late
    /// acknowledgements.
    pub(crate) fn text(rest_ms: u64, acks: u32, more: &str) -> String {
        at_ticks(rest_ms, acks, more, true)
    }

    fn at_ticks(rest_ms: u64, acks: u32, more: &str, at_ticks: bool) -> String {
        let apart = if at_ticks { 60_000_000 } else { 60_530_000 };
        let request = |nth: u64| {
            let rest = 1_000_000_000 + nth * apart + nth % 3 * 40_000;
            let (began, ended) = (rest - rest_ms * 1_000_000, rest + 100_000);
            format!(
                "request t_ns={ended} role=accepted port=80 pid=7 began_ns={began} read_ns={began} rest_ns={rest} began_tid=7 \
                 ended_tid=7\n"
            )
        };
        let requests: String = (0..40).map(request).collect();
        requests + &format!(
            "meta host.arch=x86_64 host.tick_ns=4000000 length_ns=4e9 target.pids=[7] target.comm=shop target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=4e9 length_ns=4e9
             counter source=proc/net/netstat entity=TcpExt name=DelayedACKs value=0
             counter t_ns=4e9 source=proc/net/netstat entity=TcpExt name=DelayedACKs value={acks}
             exchange t_ns=4e9 role=accepted port=80 stage=response count=100 sum_ns=42e8 length_ns=[42000000] counts=[100] more=100 {more}
             exchange t_ns=4e9 role=accepted port=80 stage=service count=100 sum_ns=42e8 length_ns=[42000000] counts=[100]
             exchange t_ns=4e9 role=accepted port=80 stage=rest count=100 sum_ns={} length_ns=[{}] counts=[100]\n",
            rest_ms * 100_000_000,
            rest_ms * 1_000_000
        )
    }

    #[test]
    fn who_waits_to_be_told_to_go_on() {
        let expects =
            |rest_ms| look(&Case::new(&parse(&text(rest_ms, 0, "")).unwrap())).unwrap().expects().map(|e| e.0);
        assert_eq!([1_003, 352, 600, 41].map(expects), [Some("curl does"), Some(".NET does"), None, None]);
    }

    #[test]
    fn a_timer_is_told_by_its_length_and_its_count() {
        let paused = at_ticks(41, 98, "", false);
        let look = |text: String| {
            look(&Case::new(&parse(&text).unwrap())).map(|it| (it.waits_for_acknowledgement(), it.endpoint.is_mixed()))
        };
        assert_eq!(look(text(41, 98, "")), Some((true, false)));
        assert_eq!(look(text(41, 9, "")), Some((false, false)), "nobody put an acknowledgement off");
        assert_eq!(look(paused), Some((false, false)), "clients that take 41 ms by themselves come at any time");
        assert_eq!(look(text(20, 98, "")), Some((false, false)), "clients that take 20 ms by themselves");
        assert_eq!(look(text(3, 98, "")), None, "nobody feels it");
        // Several questions on one connection: their answers are writes apart.
        assert_eq!(look(text(41, 98, "apart=80 apart_ns=8e8")), None);
    }
}
