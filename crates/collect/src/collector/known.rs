// SPDX-License-Identifier: Apache-2.0
//! Which processes are the target's. The kernel gives a number to another process as soon as one has ended, so a process is
//! known no longer than it lives, and what comes under its number later is met anew.

use std::collections::HashSet;

use super::SliceEnd;
use crate::probes::ledger::ThreadRow;

/// Processes of the target that were met and have not ended.
#[derive(Debug, Default)]
pub struct Known(HashSet<u32>);

impl Known {
    /// Takes note of those that are there at the start.
    pub fn begin(&mut self, pids: impl IntoIterator<Item = u32>) {
        self.0.extend(pids);
    }

    /// Forgets those that have ended in this slice, and takes note of those that were born in it and are still there: the rows of
    /// their main threads.
    pub fn meet<'e>(&mut self, end: &'e SliceEnd) -> Vec<&'e ThreadRow> {
        let living: HashSet<u32> = end.living.iter().map(|row| row.tgid).collect();
        let mains: HashSet<u32> = main_threads(&end.living).map(|row| row.tgid).collect();
        // A main thread that is there although one of its number has ended is another. Where only the main thread has ended, the
        // others are still the same process.
        let again: HashSet<u32> = main_threads(&end.ended).map(|row| row.tgid).filter(|p| mains.contains(p)).collect();
        self.0.retain(|pid| living.contains(pid) && !again.contains(pid));
        main_threads(&end.living).filter(|row| self.0.insert(row.tgid)).collect()
    }

    /// Those that were of the target at any time of the slice, also where they were born or have ended in it.
    pub fn within(&self, end: &SliceEnd) -> HashSet<u32> {
        let rows = end.living.iter().chain(&end.ended).map(|row| row.tgid);
        self.0.iter().copied().chain(rows).collect()
    }

    /// Whether one of them has this number.
    pub fn has(&self, pid: u32) -> bool {
        self.0.contains(&pid)
    }

    /// All of them, in no order.
    pub fn pids(&self) -> Vec<u32> {
        self.0.iter().copied().collect()
    }
}

fn main_threads(rows: &[ThreadRow]) -> impl Iterator<Item = &ThreadRow> {
    rows.iter().filter(|row| row.tid == row.tgid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(threads: &[(u32, u32)]) -> Vec<ThreadRow> {
        threads.iter().map(|&(tgid, tid)| ThreadRow { tgid, tid, ..ThreadRow::default() }).collect()
    }

    /// After a slice with these threads, living and ended, (process, thread): who was met, and who is known then.
    fn after(known: &mut Known, living: &[(u32, u32)], ended: &[(u32, u32)]) -> (Vec<u32>, Vec<u32>) {
        let end = SliceEnd { t_ns: 1, last: false, living: rows(living), ended: rows(ended) };
        let met = known.meet(&end).iter().map(|row| row.tgid).collect();
        let mut pids = known.pids();
        pids.sort_unstable();
        (met, pids)
    }

    #[test]
    fn who_has_ended_is_forgotten() {
        let mut known = Known::default();
        known.begin([1, 2]);
        assert_eq!(after(&mut known, &[(1, 1), (2, 2), (2, 5), (3, 3)], &[]), (vec![3], vec![1, 2, 3]));
        assert_eq!(after(&mut known, &[(1, 1), (2, 2)], &[(3, 3), (2, 5)]), (vec![], vec![1, 2]));
        assert_eq!(after(&mut known, &[(1, 1)], &[]), (vec![], vec![1]), "nobody heard of its end");
    }

    #[test]
    fn a_number_that_came_again_is_met_again() {
        let mut known = Known::default();
        known.begin([1, 3]);
        assert_eq!(after(&mut known, &[(1, 1), (3, 3)], &[(3, 3)]), (vec![3], vec![1, 3]));
        assert_eq!(after(&mut known, &[(1, 1)], &[(3, 3)]), (vec![], vec![1]));
        assert_eq!(after(&mut known, &[(1, 1), (3, 3)], &[]), (vec![3], vec![1, 3]));
    }

    #[test]
    fn a_process_outlives_its_main_thread() {
        let mut known = Known::default();
        known.begin([1]);
        assert_eq!(after(&mut known, &[(1, 8)], &[(1, 1)]), (vec![], vec![1]));
    }

    #[test]
    fn a_slice_has_those_that_end_or_begin_in_it() {
        let mut known = Known::default();
        known.begin([1, 2]);
        let end = SliceEnd { t_ns: 1, last: false, living: rows(&[(1, 1), (4, 4)]), ended: rows(&[(2, 2), (3, 3)]) };
        assert_eq!(known.within(&end), HashSet::from([1, 2, 3, 4]));
        known.meet(&end);
        let next = SliceEnd { t_ns: 2, ended: Vec::new(), ..end };
        assert_eq!(known.within(&next), HashSet::from([1, 4]), "a stranger may have the number 2 by now");
    }
}
