// SPDX-License-Identifier: Apache-2.0
//! One question: a recording, and the facts computed from it, each at most once.
//!
//! A fact that cannot be computed is a [`Gap`], which ends the rule that asked for it.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use recording::Recording;

use crate::answer::{Gap, Unseen, length_ns};
use crate::comparison::result::Comparison;
use crate::comparison::{Named, Per, compare};

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
pub struct Question<'a> {
    /// With which recording it is compared, so that rules know what grew.
    pub baseline: Option<Named<'a>>,
    /// The operation that makes both comparable.
    pub per: Per,
    /// The response time that the owner promises; none = what was promised when it was recorded.
    pub slo: Option<Duration>,
}

/// One question about one recording.
pub struct Case<'r> {
    /// The evidence.
    pub recording: &'r Recording,
    /// How it differs from a baseline, where there is one.
    pub comparison: Option<Comparison>,
    /// Why it cannot be compared with the baseline that was given.
    pub(crate) not_compared: Option<Gap>,
    /// The response time that its owner promises.
    pub slo: Option<Duration>,
    facts: Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl<'r> Case<'r> {
    /// A case about the whole recording.
    pub fn new(recording: &'r Recording) -> Self {
        Self::asked(recording, &Question::default())
    }

    /// A case about the whole recording, with more to be asked. A baseline that cannot be compared is a gap.
    pub fn asked(recording: &'r Recording, question: &Question<'_>) -> Self {
        let now = Named { recording, label: "this recording".into() };
        let compared = question.baseline.as_ref().map(|baseline| compare(baseline, &now, question.per));
        let (comparison, not_compared) = match compared.transpose() {
            Ok(comparison) => (comparison, None),
            Err(refused) => (None, Some(Gap::new("baseline", Unseen::NotComparable, refused.0))),
        };
        let kept = (recording.meta.slo_ns > 0).then(|| Duration::from_nanos(recording.meta.slo_ns));
        let slo = question.slo.or(kept);
        Case { recording, comparison, not_compared, slo, facts: Mutex::default() }
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
        length_ns(self.recording)
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
}
