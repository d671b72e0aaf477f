// SPDX-License-Identifier: Apache-2.0
//! Threads that read requests, and whether each keeps the one that it has until it is answered: a pool of workers does, an
//! event loop and a runtime's tasks do not.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::Request;

use super::requests::Requests;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::share;

/// Who reads requests at the port where clients wait most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readers {
    /// Requests that were followed.
    pub requests: usize,
    /// Process and thread of those that read some of them.
    pub who: BTreeSet<(u32, u32)>,
    /// Threads that answered some of them.
    pub answerers: usize,
    /// Share of the requests that the thread that read them answered, too.
    pub kept: f64,
    /// Share of the requests that were read while the same thread had another one in hand.
    pub beside: f64,
}

impl Fact for Readers {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let requests = case.fact::<Requests>()?;
        let port = requests.main().map_or(0, |main| main.port);
        let rows = case.recording.rows::<Request>().iter().filter(|row| row.is_of_client() && row.port == port);
        let mut threads: BTreeMap<(u32, u32), Vec<&Request>> = BTreeMap::new();
        let mut answerers: BTreeSet<u32> = BTreeSet::new();
        rows.for_each(|row| {
            threads.entry((row.pid, row.began_tid)).or_default().push(row);
            answerers.insert(row.ended_tid);
        });
        let (mut all, mut kept, mut beside) = (0, 0, 0);
        for of_thread in threads.values_mut() {
            of_thread.sort_by_key(|row| row.read_ns);
            all += of_thread.len();
            kept += of_thread.iter().filter(|row| row.ended_tid == row.began_tid).count();
            beside += of_thread.windows(2).filter(|pair| pair[1].read_ns < pair[0].t_ns).count();
        }
        let of_all = |count: usize| share(count as f64, all as f64);
        let (who, answerers) = (threads.into_keys().collect(), answerers.len());
        Ok(Self { requests: all, who, answerers, kept: of_all(kept), beside: of_all(beside) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn one_at_a_time_or_several() {
        let readers = |second: &str| {
            let text = format!(
                "exchange role=accepted port=80 stage=response count=2
                 request t_ns=30e6 role=accepted port=80 pid=1 began_ns=10e6 began_tid=1 read_ns=10e6 ended_tid=1
                 request {second}"
            );
            (*Case::new(&parse(&text).unwrap()).fact::<Readers>().unwrap()).clone()
        };
        let pool = readers("t_ns=40e6 role=accepted port=80 pid=1 began_ns=11e6 began_tid=2 read_ns=12e6 ended_tid=2");
        assert_eq!((pool.who.len(), pool.answerers, pool.kept, pool.beside), (2, 2, 1.0, 0.0));
        let event_loop =
            readers("t_ns=40e6 role=accepted port=80 pid=1 began_ns=11e6 began_tid=1 read_ns=12e6 ended_tid=3");
        assert_eq!((event_loop.who.len(), event_loop.answerers, event_loop.kept, event_loop.beside), (1, 2, 0.5, 0.5));
    }
}
