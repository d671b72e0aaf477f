// SPDX-License-Identifier: Apache-2.0
//! Who had the CPU while the target wanted it, and how long it stood there at a time.

use recording::tables;

use crate::case::Case;
use crate::facts::neighbours::Neighbours;
use crate::statistics::ratio;

/// A process outside the target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbour {
    /// Process id.
    pub pid: u32,
    /// Command name.
    pub comm: String,
    /// Cgroup.
    pub cgroup: String,
    /// Samples that found it running.
    pub samples: f64,
    /// Run-queue time of the target in which this process had the CPU, ns. Who ran last is known; the time of those who
    /// ran before is spread over all by their samples.
    pub delayed_ns: f64,
}

impl Neighbour {
    /// Its name in words: of one that ended before anybody asked, none is known.
    pub fn name(&self) -> &str {
        if self.comm.is_empty() { "a process that has ended" } else { &self.comm }
    }
}

/// The first class of lengths reaches to two to the power of this, ns; each further one twice as far.
const SHORTEST: u32 = 17;

/// More classes than this nobody writes: the last one begins at two minutes.
const MOST_CLASSES: usize = 21;

/// Time that was waited, ns, by the length of the waits that it is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lengths(Vec<f64>);

impl Lengths {
    fn add(&mut self, by_length: &[u64], part: f64) {
        let by_length = &by_length[..by_length.len().min(MOST_CLASSES)];
        self.0.resize(self.0.len().max(by_length.len()), 0.0);
        for (sum, ns) in self.0.iter_mut().zip(by_length) {
            *sum += *ns as f64 * part;
        }
    }

    /// Shortest wait of a class, ns; that of the first is nothing.
    fn from_ns(class: usize) -> f64 {
        if class == 0 { 0.0 } else { 2f64.powi(SHORTEST as i32 + class as i32 - 1) }
    }

    /// Time in waits of a length or longer, ns; the length is a power of two, as the classes are.
    pub fn over(&self, ns: f64) -> f64 {
        self.0.iter().enumerate().filter(|(class, _)| Self::from_ns(*class) >= ns).map(|(_, sum)| sum).sum()
    }

    /// The length, ns, that half of the time was waited in waits of, or longer ones, to a factor of two.
    pub fn half(&self) -> f64 {
        let all: f64 = self.0.iter().sum();
        let classes = (0..self.0.len()).rev().map(Self::from_ns);
        classes.into_iter().find(|from| self.over(*from) * 2.0 >= all).unwrap_or(0.0)
    }
}

/// Samples of the target, with their weight.
pub(super) fn own_samples(case: &Case) -> f64 {
    case.recording.rows::<tables::Sample>().iter().map(|s| f64::from(s.weight.max(1))).sum()
}

/// Who had the CPU while the target wanted it.
#[derive(Default)]
pub(super) struct Queue {
    pub neighbours: Vec<Neighbour>,
    /// Of the neighbours together; none where nobody noted lengths.
    pub lengths: Option<Lengths>,
    pub own_ns: f64,
    pub observer_ns: f64,
}

impl Queue {
    pub(super) fn new(case: &Case) -> Self {
        let known = case.fact::<Neighbours>();
        let rows = known.as_ref().map_or(&[][..], |known| &known.0);
        let own = if rows.iter().any(|row| row.own) { own_samples(case) } else { 0.0 }; // one thread is never behind itself
        let all = own + rows.iter().map(|row| row.samples as f64).sum::<f64>();
        let others = |row: &&tables::Neighbour| !row.own && !row.observer && row.pid != 0;
        let of_others = ratio(rows.iter().filter(others).map(|row| row.samples as f64).sum(), all);
        let earlier: f64 = rows.iter().filter(|row| row.pid == 0).map(|row| row.delayed_ns as f64).sum();
        // Without a sample nobody can be named for it.
        let (each, unnamed) = if all > 0.0 { (earlier / all, 0.0) } else { (0.0, earlier) };
        let mut queue = Queue { own_ns: own * each, ..Queue::default() };
        for row in rows {
            let last = if row.pid == 0 { unnamed } else { row.delayed_ns as f64 };
            queue.add(row, last + row.samples as f64 * each);
            let part = match row.pid {
                0 if all > 0.0 => of_others,
                _ if row.own || row.observer => 0.0,
                _ => 1.0,
            };
            if !row.by_length_ns.is_empty() {
                queue.lengths.get_or_insert_default().add(&row.by_length_ns, part);
            }
        }
        queue.neighbours.sort_by(|a, b| {
            b.delayed_ns.total_cmp(&a.delayed_ns).then(b.samples.total_cmp(&a.samples)).then(a.pid.cmp(&b.pid))
        });
        queue
    }

    fn add(&mut self, row: &tables::Neighbour, delayed_ns: f64) {
        if row.own {
            self.own_ns += delayed_ns;
        } else if row.observer {
            self.observer_ns += delayed_ns;
        } else if row.pid != 0 || delayed_ns > 0.0 {
            let (comm, cgroup) = (row.comm.clone(), row.cgroup.clone());
            self.neighbours.push(Neighbour { pid: row.pid, comm, cgroup, samples: row.samples as f64, delayed_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn lengths_of_waits_behind_others() {
        let recording = parse(
            "neighbour pid=9 samples=30 delayed_ns=60 by_length_ns=[10,0,50]
             neighbour pid=0 delayed_ns=40 by_length_ns=[0,0,0,40]
             neighbour pid=1 own=true delayed_ns=900 by_length_ns=[0,0,900]
             sample pid=1 weight=10",
        )
        .unwrap();
        let lengths = Queue::new(&Case::new(&recording)).lengths.unwrap();
        assert_eq!((lengths.over(0.0), lengths.over(262_144.0), lengths.over(524_288.0)), (90.0, 80.0, 30.0));
        assert_eq!(lengths.half(), 262_144.0);
        let old = parse("neighbour pid=9 samples=30 delayed_ns=60").unwrap();
        assert_eq!(Queue::new(&Case::new(&old)).lengths, None);
        assert_eq!(Lengths::default().half(), 0.0);
    }
}
