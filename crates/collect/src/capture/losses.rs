// SPDX-License-Identifier: Apache-2.0
//! What probes, rings and maps could not keep, slice by slice.

use std::collections::BTreeMap;

use anyhow::Result;
use recording::tables::Loss;

use super::Probes;
use super::windows::Windows;

/// What was told so far: kept and lost, by what.
#[derive(Default)]
pub struct Losses(BTreeMap<&'static str, (u64, u64)>);

impl Losses {
    /// What was kept and lost in the slice that ends at `t_ns`; of what nothing is new, only the first time.
    pub fn rows(&mut self, t_ns: u64, probes: &Probes<'_>, windows: &Windows<'_>) -> Result<Vec<Loss>> {
        Ok(self.fresh(t_ns, sums(probes, windows)?))
    }

    fn fresh(&mut self, t_ns: u64, sums: Vec<(&'static str, u64, u64)>) -> Vec<Loss> {
        let mut rows = Vec::new();
        for (what, kept, lost) in sums {
            let told = self.0.insert(what, (kept, lost));
            let (told_kept, told_lost) = told.unwrap_or_default();
            let (kept, count) = (kept.saturating_sub(told_kept), lost.saturating_sub(told_lost));
            if told.is_none() || kept + count > 0 {
                rows.push(Loss { t_ns, what: what.into(), count, kept });
            }
        }
        rows
    }
}

/// What was kept and lost since the start.
fn sums(probes: &Probes<'_>, windows: &Windows<'_>) -> Result<Vec<(&'static str, u64, u64)>> {
    let c = probes.ledger.counts()?;
    let mut sums = vec![
        ("thread ends", c.exits - c.exits_lost, c.exits_lost),
        ("program starts", c.execs - c.execs_lost, c.execs_lost),
        ("threads", c.forks, c.forks_lost),
        ("waits", c.waits - c.waits_lost, c.waits_lost),
        ("stacks of waits", c.stacks - c.stacks_lost, c.stacks_lost),
        ("stacks of programs that wait", c.snapshots, c.snapshots_lost),
        ("names of who was in the way", c.delays - c.delays_lost, c.delays_lost),
    ];
    if let Some(profile) = &probes.profile {
        let c = profile.counts()?;
        sums.push(("samples", c.samples, c.lost));
        sums.push(("samples of others", c.neighbours - c.neighbours_lost, c.neighbours_lost));
    }
    if let Some(wakeups) = &probes.wakeups {
        let c = wakeups.counts()?;
        sums.push(("wakeups", c.rows, c.rows_lost));
        sums.push(("stacks of programs that wake others", c.snapshots, c.snapshots_lost));
        sums.push(("stacks of wakeups", c.stacks - c.stacks_lost, c.stacks_lost));
    }
    let (kept, lost) = windows.loss();
    sums.push(("counted calls", kept, lost));
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slice_tells_what_is_new_in_it() {
        let mut losses = Losses::default();
        let mut told = |t_ns, sums: &[(&'static str, u64, u64)]| -> Vec<(String, u64, u64)> {
            losses.fresh(t_ns, sums.to_vec()).into_iter().map(|row| (row.what, row.kept, row.count)).collect()
        };
        assert_eq!(told(1, &[("a", 0, 0), ("b", 5, 1)]), [("a".into(), 0, 0), ("b".into(), 5, 1)]);
        assert_eq!(told(2, &[("a", 0, 0), ("b", 7, 4)]), [("b".into(), 2, 3)]);
        assert_eq!(told(3, &[("a", 0, 0), ("b", 7, 4)]), []);
    }
}
