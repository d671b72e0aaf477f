// SPDX-License-Identifier: Apache-2.0
//! Whether a service stood still for a while: nobody got an answer, although several waited for one, and answers were due.

use std::collections::BTreeMap;

use recording::Part;
use recording::tables::Connection;

use crate::case::{Case, SLICE_NS};
use crate::facts::followed::Followed;
use crate::facts::requests::{Endpoint, Requests};
use crate::statistics::ratio;

/// Without an answer, ns: a user feels a quarter of a second.
pub(crate) const FELT_NS: f64 = 250e6;

/// Of what half of the answers take: a service of which all answers are long stands still between any two of them.
const MUCH_LONGER: f64 = 10.0;

/// Answers that were due meanwhile, by the rate of the whole window: with fewer, none of them may be chance.
const MIN_DUE: f64 = 20.0;

/// Requests that waited for the end of it: one or two may be long ones of their own.
const SEVERAL: u64 = 3;

/// A time in which nobody got an answer.
#[derive(Default)]
pub(crate) struct Standstill {
    /// Where.
    pub endpoint: String,
    /// Its port.
    pub port: u32,
    /// Its length, ns.
    pub ns: f64,
    /// Requests that waited then and were answered after it.
    pub requests: u64,
    /// Answers that were due.
    pub due: f64,
    /// Of the time in which exchanges were followed, or of the window where looks tell, the share that was in such times, 0 to 1.
    pub share: f64,
    /// End of the slice in which it ended, ns after the capture's start.
    pub until_ns: f64,
    /// Exchanges were followed then; else looks at the connections tell, and the numbers are about right.
    pub is_followed: bool,
}

impl Standstill {
    /// Where it is in the window, in whole slices, which take a second.
    pub(crate) fn slices(&self) -> Part {
        let from_s = (((self.until_ns - self.ns - SLICE_NS as f64) / 1e9).max(0.0)).floor();
        let to_s = (self.until_ns / 1e9).ceil();
        Part { from_ns: (from_s * 1e9) as u64, to_ns: (to_s * 1e9) as u64 }
    }
}

/// Of the time: a client in a hundred meets it, and it is more than one short pause in a long capture.
const MIN_SHARE: f64 = 0.01;

/// The longest one, at the port where clients wait most, if such times are no small part of the window.
pub(crate) fn look(case: &Case) -> Option<Standstill> {
    longest(case).filter(|seen| seen.share >= MIN_SHARE)
}

/// Likewise, if they are.
pub(crate) fn small(case: &Case) -> Option<Standstill> {
    longest(case).filter(|seen| seen.share < MIN_SHARE)
}

/// The longest one, however small a part; of one that was followed and one that was looked at, the one that is no small part.
pub(crate) fn longest(case: &Case) -> Option<Standstill> {
    let requests = case.fact::<Requests>().ok()?;
    let main = requests.main()?;
    let seen = [followed(main, requests.followed_ns), looked_at(case, &requests, main)].into_iter().flatten();
    let named = |seen: Standstill| Standstill {
        endpoint: main.name.trim_start_matches("tcp ").to_string(),
        port: main.port,
        due: ratio(main.response.count, requests.followed_ns) * seen.ns,
        ..seen
    };
    let seen: Vec<Standstill> = seen.map(named).filter(|seen| matters(seen, main)).collect();
    let at = seen.iter().position(|seen| seen.share >= MIN_SHARE).unwrap_or(0);
    seen.into_iter().nth(at)
}

fn followed(main: &Endpoint, followed_ns: f64) -> Option<Standstill> {
    let longest = main.stands.iter().max_by(|a, b| a.ns.total_cmp(&b.ns))?;
    let (ns, requests, until_ns) = (longest.ns, longest.requests, longest.t_ns as f64);
    let felt = main.stands.iter().filter(|stood| stood.ns >= FELT_NS && stood.requests >= SEVERAL);
    let share = ratio(felt.map(|stood| stood.ns).sum(), followed_ns);
    Some(Standstill { ns, requests, until_ns, share, is_followed: true, ..Standstill::default() })
}

/// Of what is under way at a time, late in most slices: with more, looks meet requests that are always long, now more of them, now
/// fewer.
const HARDLY_ANY: f64 = 0.1;

/// Of what is under way at a time, late in one look: then all of it stands, and not one request that is long by itself.
const NEARLY_ALL: f64 = 0.8;

/// By the looks at connections, ten a second: in one slice as many answers are owed for 10 ms or longer as requests are under way at
/// a time (by Little's law), for a part of it, and in most slices hardly any. Only of slices in which exchanges were not followed, as
/// those of a busy service are not all the time.
fn looked_at(case: &Case, requests: &Requests, main: &Endpoint) -> Option<Standstill> {
    let under_way = requests.at_once(&main.response);
    let (mut slices, mut at_once) = (BTreeMap::<u64, f64>::new(), BTreeMap::<u64, u64>::new());
    for row in case.recording.rows::<Connection>().iter().filter(|row| row.is_accepted() && row.port == main.port) {
        *slices.entry(row.t_ns).or_default() += ratio(row.late as f64, row.looks as f64);
        *at_once.entry(row.t_ns).or_default() += row.most_late;
    }
    let mut late: Vec<f64> = slices.values().copied().collect();
    late.sort_by(f64::total_cmp);
    let usual = *late.get(late.len() / 2).filter(|late| **late <= under_way * HARDLY_ANY)?;
    let followed = case.fact::<Followed>().ok()?;
    let stand = |t_ns: &u64| at_once[t_ns] as f64 >= (under_way * NEARLY_ALL).max(SEVERAL as f64);
    let unseen = slices.into_iter().filter(|(t_ns, _)| stand(t_ns) && !followed.has(*t_ns));
    let stood_ns = |late: f64| ratio(late - usual, under_way).min(1.0) * SLICE_NS as f64;
    let stood: Vec<(u64, f64)> = unseen.map(|(t_ns, late)| (t_ns, stood_ns(late))).collect();
    let (t_ns, ns) = *stood.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (until_ns, requests) = (t_ns as f64, under_way.round() as u64);
    let felt = stood.iter().map(|(_, ns)| *ns).filter(|ns| *ns >= FELT_NS);
    let share = ratio(felt.sum(), case.length_ns());
    Some(Standstill { ns, requests, until_ns, share, is_followed: false, ..Standstill::default() })
}

fn matters(seen: &Standstill, endpoint: &Endpoint) -> bool {
    let usual_ns = endpoint.response.quantile_ns(0.5);
    seen.ns >= FELT_NS.max(usual_ns * MUCH_LONGER) && seen.due >= MIN_DUE && seen.requests >= SEVERAL
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use recording::text::parse;

    /// Some answers in four seconds, each of so many ms, and one time of so many ms without any.
    pub(crate) fn text(answers: u32, each_ms: u64, stood_ms: u64, requests: u32) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=4e9 pid=1 tid=1 wall_ns=4e9 cpu_ns=4e8 blocked_ns=36e8
             exchange_window t_ns=4e9 length_ns=4e9
             exchange t_ns=2e9 role=accepted port=80 stage=response count=9 sum_ns=1 stood_ns=1000 stood=2
             exchange t_ns=4e9 role=accepted port=80 stage=response count={answers} sum_ns={} length_ns=[{}] counts=[{answers}]
              stood_ns={} stood={requests}",
            u64::from(answers) * each_ms * 1_000_000,
            each_ms * 1_000_000,
            stood_ms * 1_000_000
        )
        .replace("\n              stood_ns", " stood_ns")
    }

    #[test]
    fn several_waited_while_answers_were_due() {
        let look = |answers, each_ms, stood_ms, requests| {
            let recording = parse(&text(answers, each_ms, stood_ms, requests)).unwrap();
            look(&Case::new(&recording)).map(|seen| (seen.ns / 1e6, seen.requests, seen.until_ns / 1e9))
        };
        assert_eq!(look(2400, 2, 920, 4), Some((920.0, 4, 4.0)));
        assert_eq!(look(2400, 2, 120, 4), None, "nobody feels it");
        assert_eq!(look(2400, 2, 920, 1), None, "one heavy request");
        assert_eq!(look(60, 2, 920, 4), None, "under twenty a second: hardly any was due");
        assert_eq!(look(2400, 100, 920, 40), None, "all of them are slow");
    }

    /// Exchanges of a busy service are followed for a second of eight, and it stands still in another one.
    #[test]
    fn connections_tell_where_exchanges_were_not_followed() {
        let of = |late: [u32; 8], under_way: u32, looks_with: u32| {
            let mut text = format!(
                "meta length_ns=8e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
                 exchange_window t_ns=1e9 length_ns=1e9
                 exchange t_ns=1e9 role=accepted port=80 stage=response count=10000 sum_ns={under_way}e9 length_ns=[100000] counts=[10000]\n"
            );
            for (slice, late) in (1..).zip(late) {
                let most = late.div_ceil(looks_with);
                text += &format!(
                    "connection t_ns={slice}e9 role=accepted port=80 looks=10 open=400 late={late} most_late={most}\n"
                );
            }
            look(&Case::new(&parse(&text).unwrap())).map(|seen| (seen.ns / 1e6, seen.requests, seen.until_ns / 1e9))
        };
        let look = |late, under_way| of(late, under_way, 9);
        assert_eq!(look([0, 0, 0, 36, 0, 0, 0, 0], 4), Some((900.0, 4, 4.0)));
        assert_eq!(of([0, 0, 0, 10, 0, 0, 0, 0], 3, 10), None, "one that is long by itself");
        assert_eq!(look([36, 0, 0, 0, 0, 0, 0, 0], 4), None, "exchanges were followed then, and tell");
        assert_eq!(look([10, 12, 8, 36, 9, 11, 10, 8], 4), None, "there are always some");
        assert_eq!(look([30, 36, 36, 36, 34, 36, 36, 36], 4), None, "long polls stand all the time");
        assert_eq!(look([0, 0, 0, 8, 0, 0, 0, 0], 4), None, "for a fifth of a second");
        assert_eq!(look([0, 0, 0, 9, 0, 0, 0, 0], 1), None, "one request");
    }
}
