// SPDX-License-Identifier: Apache-2.0
//! Answers that report an error, of a generator that is somebody else's: what the first bytes of some of them say.

use std::collections::BTreeMap;

use recording::Recording;
use recording::tables::{Exchange, Label};

/// Answers of which was looked at what they say, by slice and by whom they came from.
pub(super) struct Failed<'r>(BTreeMap<(u64, &'r str), Said>);

/// How many of each length say that what was asked has failed, and how many were looked at or stand for such.
#[derive(Default)]
struct Said {
    failed: BTreeMap<u64, u64>,
    all: u64,
}

/// Of all exchanges of which was looked at what they say, the share of some.
pub(super) fn share_of(recording: &Recording, wanted: fn(&Label) -> bool) -> f64 {
    let count = |wanted: fn(&Label) -> bool| {
        let rows = recording.rows::<Label>().iter().filter(|row| row.role == "made" && wanted(row));
        rows.map(|row| row.count).sum::<u64>() as f64
    };
    count(wanted) / count(|_| true).max(1.0)
}

/// Below, what answers say is an estimate.
const NEARLY_ALL: f64 = 0.5;

/// The share of answers of which was looked at what they say, and how many of these are good; none = nearly all, or nothing is said.
pub(super) fn looked(recording: &Recording) -> Option<(f64, u64)> {
    let rows = || recording.rows::<Label>().iter().filter(|row| row.role == "made");
    let [seen, count] = [|row: &Label| row.seen, |row: &Label| row.count].map(|of| rows().map(of).sum::<u64>());
    let bad = rows().filter(|row| ["failed", "refused"].contains(&row.outcome.as_str()));
    let good = seen.saturating_sub(bad.map(|row| row.seen).sum());
    let share = seen as f64 / count.max(1) as f64;
    // Where all say the same, so do the others.
    (count > 0 && share < NEARLY_ALL && good < seen).then_some((share, good))
}

impl<'r> Failed<'r> {
    pub(super) fn of(recording: &'r Recording) -> Self {
        let mut all: BTreeMap<_, Said> = BTreeMap::new();
        let labels = recording.rows::<Label>().iter().filter(|row| row.role == "made");
        for row in labels {
            let said = all.entry((row.t_ns, row.peer.as_str())).or_default();
            said.all += row.count;
            if ["failed", "refused"].contains(&row.outcome.as_str()) {
                let lengths = row.length_ns.iter().zip(&row.counts);
                lengths.for_each(|(ns, count)| *said.failed.entry(*ns).or_default() += count);
            }
        }
        Self(all)
    }

    /// Those of a row. Where one in several was looked at, the others failed in the same share; of each length as many as it has, and
    /// those that are left over of the next ones.
    pub(super) fn take(&mut self, row: &'r Exchange) -> BTreeMap<u64, u64> {
        let Said { failed, all } = self.0.remove(&(row.t_ns, row.peer.as_str())).unwrap_or_default();
        let mut left: BTreeMap<u64, u64> = row.length_ns.iter().copied().zip(row.counts.iter().copied()).collect();
        let total: u64 = failed.values().sum();
        let share = total as f64 / all.max(1) as f64;
        let scale = if total > 0 { share * row.count as f64 / total as f64 } else { 0.0 };
        let (mut taken, mut so_far, mut asked) = (BTreeMap::new(), 0.0, 0);
        for (ns, count) in failed {
            // What one length rounds off, the next ones make up for.
            so_far += count as f64 * scale;
            let mut want = (so_far.round() as u64).saturating_sub(asked);
            asked += want;
            while want > 0 {
                let nearest =
                    left.iter().filter(|bin| *bin.1 > 0).min_by_key(|bin| bin.0.abs_diff(ns)).map(|bin| *bin.0);
                let Some(bin) = nearest.and_then(|at| left.get_mut(&at).map(|bin| (at, bin))) else { return taken };
                let got = want.min(*bin.1);
                *bin.1 -= got;
                *taken.entry(bin.0).or_default() += got;
                want -= got;
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::generator;
    use crate::run::Failure;

    #[test]
    fn answers_that_say_where_else_to_ask() {
        let second = |nth: u64| {
            format!(
                "exchange t_ns={nth}e9 role=made peer=127.0.0.1:80 stage=response count=100 began=100 sum_ns=1e7 \
                 length_ns=[100000] counts=[100]
                 label t_ns={nth}e9 role=made peer=127.0.0.1:80 protocol=http label=\"GET /\" outcome=elsewhere seen=10 count=50
                 label t_ns={nth}e9 role=made peer=127.0.0.1:80 protocol=http label=\"GET /\" outcome=ok seen=10 count=50\n"
            )
        };
        let run = generator(&(1..=10).map(second).collect::<String>());
        assert_eq!((run.elsewhere, run.answered()), (500, 1000));
        let verdict = crate::judge::judge(&run, None);
        assert!(verdict.reasons.iter().any(|reason| reason.code == "redirects"), "{:?}", verdict.reasons);
    }

    /// Of an answer in five it was looked at what it says: all of those that was looked at failed, in lengths that are not all there are.
    #[test]
    fn answers_that_were_not_looked_at_are_like_the_others() {
        let second = |nth: u64| {
            format!(
                "exchange t_ns={nth}e9 role=made peer=127.0.0.1:80 stage=response count=1000 began=1000 sum_ns=3e8 \
                 length_ns=[200000,300000,400000] counts=[300,400,300]
                 label t_ns={nth}e9 role=made peer=127.0.0.1:80 protocol=http label=\"GET /\" outcome=failed seen=10 count=900 \
                 length_ns=[200000,300000] counts=[400,500]\n"
            )
        };
        let run = generator(&(1..=10).map(second).collect::<String>());
        assert_eq!((run.failures[&Failure::Status], run.answered()), (10_000, 0));
        // Each in a length of its own.
        let own: Vec<String> = (1..=700).map(|nth| format!("{}", 200_000 + nth)).collect();
        let each = format!(
            "exchange t_ns=1e9 role=made peer=127.0.0.1:80 stage=response count=1000 began=1000 sum_ns=3e8 length_ns=[{0},900000] counts=[{1},300]
             label t_ns=1e9 role=made peer=127.0.0.1:80 protocol=http label=\"GET /\" outcome=failed seen=700 count=700 length_ns=[{0}] counts=[{1}]",
            own.join(","),
            ["1"; 700].join(",")
        );
        assert_eq!(generator(&each).failures[&Failure::Status], 1000);
        let half = (1..=10).map(|nth| second(nth).replace("outcome=failed", "outcome=ok")).collect::<String>();
        let half = generator(
            &(half + &(1..=5).map(|nth| second(nth).lines().last().unwrap().to_string() + "\n").collect::<String>()),
        );
        assert_eq!(half.failures[&Failure::Status], 2500, "half of those in half of the seconds");
    }
}
