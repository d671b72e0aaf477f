// SPDX-License-Identifier: Apache-2.0
//! One question: a recording or a part of it, and the facts computed from that, each at most once.
//!
//! A fact that cannot be computed is a [`Gap`], which ends the rule that asked for it.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use recording::{Part, Recording};

use crate::answer::comparison::{Comparison, Refused};
use crate::answer::{Gap, Unseen, length_ns};

/// Length of a slice of a capture, ns.
pub const SLICE_NS: u64 = 1_000_000_000;

/// Typed numbers computed from a case: no thresholds, no opinion.
pub trait Fact: Send + Sync + Sized + 'static {
    /// Computes the fact.
    ///
    /// # Errors
    /// The gap: which table is missing and what would fill it.
    fn compute(case: &Case) -> Result<Self, Gap>;
}

/// What else is asked of a recording.
#[derive(Default)]
pub struct Question {
    /// How it differs from a baseline, so that rules know what grew; an error is why they cannot be compared.
    pub compared: Option<Result<Comparison, Refused>>,
    /// The response time that the owner promises; none = what was promised when it was recorded.
    pub slo: Option<Duration>,
}

/// A recording that somebody else has, or a part of one.
pub enum Evidence<'r> {
    /// Somebody else's.
    Given(&'r Recording),
    /// A part that was made for the question.
    Part(Box<Recording>),
}

impl Deref for Evidence<'_> {
    type Target = Recording;

    fn deref(&self) -> &Recording {
        match self {
            Self::Given(recording) => recording,
            Self::Part(recording) => recording,
        }
    }
}

/// One question about one recording, or about a part of it.
pub struct Case<'r> {
    /// The evidence.
    pub recording: Evidence<'r>,
    /// How it differs from a baseline, where there is one.
    pub comparison: Option<Comparison>,
    /// Why it cannot be compared with the baseline that was given.
    pub(crate) not_compared: Option<Gap>,
    /// The response time that its owner promises.
    pub slo: Option<Duration>,
    facts: Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    /// Cases about parts of it, each with facts of its own.
    parts: Mutex<BTreeMap<Part, Option<Arc<Case<'static>>>>>,
}

impl<'r> Case<'r> {
    /// A case about the whole recording.
    pub fn new(recording: &'r Recording) -> Self {
        Self::asked(recording, Question::default())
    }

    /// A case about the whole recording, with more to be asked. A baseline that cannot be compared is a gap.
    pub fn asked(recording: &'r Recording, question: Question) -> Self {
        Self::about(Evidence::Given(recording), question)
    }

    fn about(recording: Evidence<'r>, question: Question) -> Self {
        let (comparison, not_compared) = match question.compared.transpose() {
            Ok(comparison) => (comparison, None),
            Err(refused) => (None, Some(Gap::new("baseline", Unseen::NotComparable, refused.0))),
        };
        let kept = (recording.meta.slo_ns > 0).then(|| Duration::from_nanos(recording.meta.slo_ns));
        let slo = question.slo.or(kept);
        Case { recording, comparison, not_compared, slo, facts: Mutex::default(), parts: Mutex::default() }
    }

    /// A case about a part of a recording, to the nearest slices, and where that begins, ns after the capture's start; `None` = no
    /// slice lies in it.
    pub(crate) fn of_part(recording: &Recording, part: Part, slo: Option<Duration>) -> Option<(Case<'static>, u64)> {
        let (cut, from_ns) = recording.part(part).ok()?;
        let question = Question { slo, ..Question::default() };
        Some((Case::about(Evidence::Part(Box::new(cut)), question), from_ns))
    }

    /// The case about a part of the recording, to the nearest slices, made on the first call; `None` = no slice lies in it.
    pub fn part(&self, part: Part) -> Option<Arc<Case<'static>>> {
        let parts = || self.parts.lock().unwrap_or_else(PoisonError::into_inner); // a map, whole at any moment
        if let Some(known) = parts().get(&part).cloned() {
            return known;
        }
        let case = Case::of_part(&self.recording, part, self.slo).map(|(case, _)| Arc::new(case));
        parts().insert(part, case.clone());
        case
    }

    /// The fact of this type, computed on the first call.
    ///
    /// # Errors
    /// The gap that keeps it from being computed; the same one each time.
    pub fn fact<F: Fact>(&self) -> Result<Arc<F>, Gap> {
        let known = self.facts().get(&TypeId::of::<F>()).cloned();
        if let Some(Ok(answer)) = known.map(Arc::downcast::<Result<Arc<F>, Gap>>) {
            return (*answer).clone();
        }
        // Not under the lock: a fact may ask for other facts. Two threads may compute the same one, to the same end.
        let answer = F::compute(self).map(Arc::new);
        self.facts().insert(TypeId::of::<F>(), Arc::new(answer.clone()));
        answer
    }

    fn facts(&self) -> MutexGuard<'_, BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner) // a map, whole at any moment
    }

    /// Length of the capture, ns.
    pub fn length_ns(&self) -> f64 {
        length_ns(&self.recording)
    }

    /// Length of the capture in seconds.
    pub fn seconds(&self) -> f64 {
        self.length_ns() / 1e9
    }

    /// Name of a system call number on the recorded machine.
    pub fn syscall(&self, number: i32) -> String {
        crate::syscall::name(&self.recording.meta.host.arch, number)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::facts::cpus::Cpus;
    use crate::ledger::threads::Threads;

    #[test]
    fn a_case_is_asked_by_several_threads() {
        let text = "meta length_ns=1e9\nthread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1e9";
        let recording = recording::text::parse(text).unwrap();
        let case = Case::new(&recording);
        let walls: Vec<f64> = thread::scope(|scope| {
            let ask = || case.fact::<Cpus>().and_then(|_| case.fact::<Threads>()).map(|t| t.total.wall_ns);
            let asking: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
        });
        assert_eq!(walls, [1e9; 4]);
    }

    #[test]
    fn a_part_is_a_case_of_its_own_and_made_once() {
        let text = "meta length_ns=2e9\nthread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1e9
            thread t_ns=2e9 pid=1 tid=1 wall_ns=1e9 blocked_ns=1e9";
        let recording = recording::text::parse(text).unwrap();
        let case = Case::new(&recording);
        let part = Part { from_ns: 1_000_000_000, to_ns: 2_000_000_000 };
        let cpu = |case: &Case| case.fact::<Threads>().unwrap().total.cpu_ns;
        assert_eq!((cpu(&case), cpu(&case.part(part).unwrap())), (1e9, 0.0));
        assert!(Arc::ptr_eq(&case.part(part).unwrap(), &case.part(part).unwrap()));
        assert!(case.part(Part { from_ns: 5_000_000_000, to_ns: 6_000_000_000 }).is_none());
    }
}
