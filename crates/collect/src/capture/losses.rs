// SPDX-License-Identifier: Apache-2.0
//! What probes, rings and maps could not keep, slice by slice.

use std::collections::BTreeMap;

use anyhow::Result;
use recording::tables::Loss;

use super::Probes;
use super::windows::Windows;
use crate::collector::Kept;

/// What was told so far: kept and lost, by what.
#[derive(Default)]
pub struct Losses(BTreeMap<&'static str, (u64, u64)>);

impl Losses {
    /// What was kept and lost in the slice that ends at `t_ns`; of what nothing is new, only the first time.
    pub fn rows(&mut self, t_ns: u64, probes: &Probes<'_>, windows: &Windows<'_>) -> Result<Vec<Loss>> {
        let mut sums = Vec::new();
        for collector in probes.all() {
            sums.extend(collector.losses()?);
        }
        sums.push(windows.loss());
        Ok(self.fresh(t_ns, sums))
    }

    fn fresh(&mut self, t_ns: u64, sums: Vec<Kept>) -> Vec<Loss> {
        let mut rows = Vec::new();
        for Kept { what, kept, lost } in sums {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slice_tells_what_is_new_in_it() {
        let mut losses = Losses::default();
        let mut told = |t_ns, sums: &[(&'static str, u64, u64)]| -> Vec<(String, u64, u64)> {
            let sums = sums.iter().map(|(what, kept, lost)| Kept { what, kept: *kept, lost: *lost });
            losses.fresh(t_ns, sums.collect()).into_iter().map(|row| (row.what, row.kept, row.count)).collect()
        };
        assert_eq!(told(1, &[("a", 0, 0), ("b", 5, 1)]), [("a".into(), 0, 0), ("b".into(), 5, 1)]);
        assert_eq!(told(2, &[("a", 0, 0), ("b", 7, 4)]), [("b".into(), 2, 3)]);
        assert_eq!(told(3, &[("a", 0, 0), ("b", 7, 4)]), []);
    }
}
