// SPDX-License-Identifier: Apache-2.0
//! Who else ran: the slices of the table added up, a row a process.

use std::collections::BTreeMap;

use recording::tables::Neighbour;

use crate::answer::Gap;
use crate::case::{Case, Fact};

/// The processes, by id.
pub struct Neighbours(pub Vec<Neighbour>);

impl Fact for Neighbours {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let mut by_pid: BTreeMap<u32, Neighbour> = BTreeMap::new();
        for row in case.recording.rows::<Neighbour>() {
            let sum = by_pid.entry(row.pid).or_default();
            let (samples, delayed_ns) = (sum.samples + row.samples, sum.delayed_ns + row.delayed_ns);
            let mut lengths = std::mem::take(&mut sum.by_length_ns);
            lengths.resize(lengths.len().max(row.by_length_ns.len()), 0);
            lengths.iter_mut().zip(&row.by_length_ns).for_each(|(sum, ns)| *sum = sum.saturating_add(*ns));
            let own = sum.own || row.own; // a child is known as one once it has been met
            // The last name that was seen counts: a process may execute another program, and end before it is asked.
            let comm = if row.comm.is_empty() { std::mem::take(&mut sum.comm) } else { row.comm.clone() };
            *sum = Neighbour { comm, samples, delayed_ns, by_length_ns: lengths, own, ..row.clone() };
        }
        Ok(Self(by_pid.into_values().collect()))
    }
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use super::*;

    #[test]
    fn slices_add_up() {
        let text = "neighbour t_ns=1 pid=7 comm=sh samples=1 delayed_ns=5 by_length_ns=[5,0]
            neighbour t_ns=2 pid=7 comm=cc own=true samples=2
            neighbour t_ns=2 pid=3 comm=x
            neighbour t_ns=3 pid=7 comm=cc samples=0 delayed_ns=9 by_length_ns=[4,5]";
        let recording = parse(text).unwrap();
        let rows = &Case::new(&recording).fact::<Neighbours>().unwrap().0;
        assert_eq!(rows.iter().map(|row| row.pid).collect::<Vec<_>>(), [3, 7]);
        let sum = &rows[1];
        assert!(sum.comm == "cc" && sum.own && sum.samples == 3 && sum.delayed_ns == 14);
        assert_eq!(sum.by_length_ns, [9, 5]);
    }
}
