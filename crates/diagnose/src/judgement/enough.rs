// SPDX-License-Identifier: Apache-2.0
//! Whether some waiting is enough for a finding, and whether requests can have waited for so much.

use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::requests::Requests;
use crate::facts::waiting::Waiting;
use crate::judgement::hung::is_one_way;
use crate::judgement::tail;
use crate::ledger::threads::Threads;
use crate::statistics::ratio;
use crate::wording::{percent, seconds};

/// Why time is too little for a finding, if it is: its part of active time, or its share of the window, whichever is farther
/// from what a finding needs.
pub(crate) fn little(
    case: &Case,
    (ns, part): (f64, f64),
    min_part: f64,
    min_of_window: f64,
) -> Option<(Measured, String)> {
    let of_window = ratio(ns, case.length_ns());
    let told = format!("{}, {} of the target's active time", seconds(ns / 1e9), percent(part));
    let needed = [Measured::new(part, min_part, Unit::Share), Measured::new(of_window, min_of_window, Unit::Share)];
    let seen = Measured::farthest(needed)?;
    if part < min_part {
        Some((seen, format!("{told} (under {})", percent(min_part))))
    } else {
        let least = percent(min_of_window);
        Some((seen, format!("{told}, but only {} of the window (under {least})", percent(of_window))))
    }
}

/// Answers, from which on they tell how clients ask, and their sum how long.
const ENOUGH: f64 = 20.0;

/// Threads that may wait for one request at once: those that ask several others in parallel.
const THREADS_A_REQUEST: f64 = 4.0;

/// Why most of some waiting was not for requests, if so: by Little's law, no more time can have been waited for them
/// than there were answers owed. A request may be worked on by several threads at once.
pub(crate) fn not_for_requests(case: &Case, waiting: &Waiting, ns: f64) -> Option<String> {
    let connections = case.fact::<Connections>().ok().filter(|c| c.tells() && !waiting.other_clients)?;
    let requests = case.fact::<Requests>().ok();
    let clients = || requests.iter().flat_map(|requests| &requests.endpoints).filter(|e| e.accepted);
    // Of a stream nobody knows what its clients wait for.
    if requests.as_ref().is_some_and(|requests| !requests.streams.is_empty()) {
        return None;
    }
    // Over one connection come several requests at once, and how many is not seen.
    if clients().any(|e| e.is_mixed() && e.response.count >= ENOUGH) {
        return None;
    }
    // Nor does a look see the rest of an answer of which the first bytes are there.
    let rest_ns: f64 = clients().filter(|e| !e.is_mostly_news()).map(|e| e.later_writes().1).sum();
    let rest_ns = rest_ns * requests.as_ref().map_or(0.0, |requests| requests.scale());
    // To lines of a log or measurements no answer is due.
    let in_hand = if is_one_way(case) { 0.0 } else { connections.accepted.in_hand() };
    let owed_ns = in_hand * case.length_ns() + rest_ns;
    (owed_ns * THREADS_A_REQUEST < ns).then(|| {
        format!(
            "{}, but it had requests of clients in hand for {} together, over all connections: it was not for those",
            seconds(ns / 1e9),
            seconds(owed_ns / 1e9)
        )
    })
}

/// Of the time that clients wait for answers: a cause of less is none of theirs.
const MIN_OF_REQUESTS: f64 = 0.1;

/// What part of the time that clients waited for answers, or for the slow ones where they make a good part of it, this can have cost
/// at most, if that is too little to be felt: as much as it lasted, of every request that was in hand meanwhile.
pub(crate) fn little_of_requests(case: &Case, waited_ns: f64) -> Option<f64> {
    let requests = case.fact::<Requests>().ok()?;
    let main = requests.main().filter(|b| b.response.count >= ENOUGH && !b.is_mixed())?;
    let part = tail::of(main).map_or(1.0, |tail| tail.part);
    let all_ns = main.response.sum_ns * requests.scale() * part;
    Some(ratio(waited_ns, all_ns.min(case.length_ns()))).filter(|part| *part < MIN_OF_REQUESTS)
}

/// Of one CPU: a target that wants less has no queue before it, also where nobody sees what requests wait for; one that wants more may
/// do less for what is taken from it, however soon it answers.
const LITTLE_CORES: f64 = 0.5;

/// Whether all threads together hardly want a CPU.
pub(crate) fn wants_little(case: &Case) -> bool {
    let wanted = |ledger: &Threads| ledger.total.demand_ns() + ledger.total.interrupted_ns;
    case.fact::<Threads>().is_ok_and(|ledger| wanted(&ledger) < case.length_ns() * LITTLE_CORES)
}

/// Of a stop, an answer that met it, on average; and of that, a usual one at most, so that they can be told apart.
const MET: f64 = 0.5;

/// Whether clients wait for a good part of their time in answers as long as those that so many stops of all threads hold up. Requests
/// come meanwhile and stand in line, more than there are in hand on average: those of a stop wait for half of it each.
pub(crate) fn are_held_up(case: &Case, (stops, stop_ns): (f64, f64)) -> bool {
    let Ok(requests) = case.fact::<Requests>() else { return false };
    let Some(main) = requests.main().filter(|b| b.response.count >= ENOUGH && !b.is_mixed()) else {
        return false;
    };
    let times = &main.response;
    let a_ns = ratio(times.count * requests.scale(), case.length_ns());
    let cost_ns = stops * a_ns * stop_ns * stop_ns / 2.0;
    stop_ns > 0.0
        && cost_ns >= times.sum_ns * requests.scale() * MIN_OF_REQUESTS
        && times.quantile_ns(0.5) < stop_ns * MET * MET
        && times.share_of_time_from(stop_ns * MET) >= MIN_OF_REQUESTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// Twenty threads wait for a database for nearly all of ten seconds each, and one connection owes an answer at a time.
    #[test]
    fn what_was_in_hand_is_not_seen_where_several_share_a_connection() {
        let said = |more: &str| {
            let text = format!(
                "meta length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:50051\"]
                 connection role=accepted port=50051 looks=100 open=200 unanswered=100 late=30 late_ns=45e7
                 exchange_window t_ns=10e9 length_ns=10e9
                 exchange role=accepted port=50051 stage=response count=900 sum_ns=9e9 length_ns=[10000000] counts=[900] began=900 {more}
                 thread pid=1 tid=11 wall_ns=10e9 cpu_ns=1e8 blocked_ns=99e8
                 wakeup"
            );
            let recording = parse(&text).unwrap();
            let case = Case::new(&recording);
            not_for_requests(&case, &case.fact::<Waiting>().unwrap(), 192e9).is_some()
        };
        assert!(said(""), "no more than four threads for the one request at a time");
        assert!(!said("more=500"), "several at once");
        assert!(!said("apart=900 apart_ns=90e9"), "the rest of each answer comes later");
        assert!(said("apart=9000 apart_ns=900e9"), "most of what it writes nobody asked for");
    }
}
