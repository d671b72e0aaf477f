// SPDX-License-Identifier: Apache-2.0
//! Connections that the other end has closed and the target has not: each keeps a descriptor, until there is none left.

use recording::counters::pid;

use super::Remark;
use crate::case::Case;
use crate::facts::counters::Counters;
use crate::facts::socket_states::{InState, SocketStates};
use crate::statistics::ratio;
use crate::wording::count;

/// Of fewer, each may be about to be closed.
const MANY: f64 = 50.0;
/// So many more a second are a growth, and not the difference of two moments.
const MIN_GROWTH: f64 = 1.0;

/// What there is to say about them, if there were many as the capture began and as it ended.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let states = case.fact::<SocketStates>().ok()?;
    let left = |of: &&InState| of.state == "CLOSE_WAIT" && of.held.0.min(of.held.1) >= MANY;
    let most = states.own.iter().filter(left).max_by(|a, b| a.held.1.total_cmp(&b.held.1))?;
    let (who, of) = if most.accepted { ("clients", "at") } else { ("the other end", "to") };
    let n = count(most.held.1);
    Some(Remark {
        headline: format!("{n} connections that {who} closed stay open"),
        advice: Some(advice(case, ratio(most.held.1 - most.held.0, case.seconds()))),
        detail: format!(
            "{n} connections {of} {} were closed by {who} and are still open here (CLOSE_WAIT), {} when the capture began: unless \
             something is still sent on them, the program forgets to close them, and each keeps a descriptor (ss -tanp state \
             close-wait).",
            most.name.trim_start_matches("tcp "),
            count(most.held.0)
        ),
    })
}

/// What to do, and how long there is for it.
fn advice(case: &Case, grows: f64) -> String {
    let close = "close connections when the other end has: `ss -tanp state close-wait` lists them";
    match left(case).filter(|_| grows >= MIN_GROWTH) {
        Some(left) => {
            format!("{close}; {} more a second, and there are descriptors for {} more", count(grows), count(left))
        }
        None => close.to_string(),
    }
}

/// How many descriptors the process may open yet, if it is one alone: of several, nothing tells which has the connections.
fn left(case: &Case) -> Option<f64> {
    let counters = case.fact::<Counters>().ok()?;
    let mut processes = counters.entities(pid::SOURCE);
    let process = processes.next().filter(|_| processes.next().is_none())?;
    let limit = counters.last(pid::OPEN_FILES_LIMIT, process).filter(|limit| *limit > 0.0)?;
    Some((limit - counters.last(pid::OPEN_FILES, process)?).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(begin: u32, end: u32, state: &str) -> Option<Remark> {
        let text = format!(
            "meta length_ns=5e9 target.listen=[\"tcp 0.0.0.0:80\"]
             socket_state state={state} role=accepted port=80 held=true count={begin}
             socket_state t_ns=5e9 state={state} role=accepted port=80 held=true count={end}
             counter source=proc/pid entity=\"1\" name=open_files value=800
             counter source=proc/pid entity=\"1\" name=open_files_limit value=1024"
        );
        remark(&Case::new(&parse(&text).unwrap()))
    }

    #[test]
    fn those_that_stay() {
        let Remark { detail: said, advice, .. } = of(100, 350, "CLOSE_WAIT").unwrap();
        assert!(advice.unwrap().ends_with("; 50 more a second, and there are descriptors for 224 more"));
        let steady = of(100, 100, "CLOSE_WAIT").unwrap().advice.unwrap();
        assert!(steady.ends_with("lists them"), "{steady}");
        assert!(said.starts_with("350 connections at 0.0.0.0:80 were closed by clients and are still open"), "{said}");
        assert!(said.contains("100 when the capture began"), "{said}");
        for (begin, end, state) in [(100, 0, "CLOSE_WAIT"), (3, 350, "CLOSE_WAIT"), (100, 350, "ESTABLISHED")] {
            assert!(of(begin, end, state).is_none());
        }
    }
}
