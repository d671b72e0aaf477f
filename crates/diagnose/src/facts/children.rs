// SPDX-License-Identifier: Apache-2.0
//! Children that the target started and that ended within a slice of the window: how many, what they cost.

use recording::tables;

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::threads::Threads;
use crate::statistics::{ratio, share};

/// Short-lived processes of the target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Children {
    /// How many ended.
    pub count: u64,
    /// The same a second.
    pub per_second: f64,
    /// Their CPU time as a share of the target's.
    pub cpu_share: f64,
    /// Their command names, the most frequent first.
    pub names: Vec<String>,
}

impl Fact for Children {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let brief = |p: &&tables::Process| p.pid == 0 && p.instances > 0;
        let mut rows: Vec<&tables::Process> = case.recording.rows::<tables::Process>().iter().filter(brief).collect();
        rows.sort_by(|a, b| b.instances.cmp(&a.instances).then(a.comm.cmp(&b.comm)));
        let count = rows.iter().map(|p| p.instances).fold(0, u64::saturating_add);
        let names: Vec<String> = rows.into_iter().map(|p| p.comm.clone()).collect();
        let ledger = case.fact::<Threads>()?;
        let theirs = ledger.threads.iter().filter(|t| t.tid == 0 && names.contains(&t.comm));
        Ok(Children {
            count,
            per_second: ratio(count as f64, case.seconds()),
            cpu_share: share(theirs.map(|t| t.lines.cpu_ns).sum::<f64>(), ledger.total.cpu_ns),
            names,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn counted_by_name_and_weighed_by_the_ledger() {
        let recording = parse(
            "meta length_ns=2e9
             process pid=7 comm=sh instances=1
             process comm=expr instances=300\nprocess comm=date instances=500
             thread t_ns=2e9 pid=7 tid=7 comm=sh wall_ns=2e9 cpu_ns=4e8 blocked_ns=16e8
             thread t_ns=2e9 comm=date instances=500 wall_ns=1e9 cpu_ns=6e8 blocked_ns=4e8
             thread t_ns=2e9 comm=worker instances=9 wall_ns=1e9 cpu_ns=2e8 blocked_ns=8e8",
        )
        .unwrap();
        let c = Case::new(&recording).fact::<Children>().unwrap();
        assert_eq!((c.count, c.per_second, c.names.join(" ")), (800, 400.0, "date expr".into()));
        assert!((c.cpu_share - 0.5).abs() < 1e-9, "threads of a living process are not children: {}", c.cpu_share);
    }

    #[test]
    fn none() {
        let recording = parse("meta length_ns=1e9\nthread pid=1 tid=1 wall_ns=1e9 cpu_ns=1e9").unwrap();
        assert_eq!(*Case::new(&recording).fact::<Children>().unwrap(), Children::default());
    }
}
