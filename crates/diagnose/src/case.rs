// SPDX-License-Identifier: Apache-2.0
//! One question: a recording, and the facts computed from it, each at most once.
//!
//! A fact that cannot be computed is a [`Gap`], which ends the rule that asked for it.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use recording::Recording;

use crate::comparison::result::Comparison;
use crate::verdict::Gap;

/// Typed numbers computed from a case: no thresholds, no opinion.
pub trait Fact: Sized + 'static {
    /// Computes the fact.
    ///
    /// # Errors
    /// The gap: which table is missing and what would fill it.
    fn compute(case: &Case) -> Result<Self, Gap>;
}

/// One question about one recording.
pub struct Case<'r> {
    /// The evidence.
    pub recording: &'r Recording,
    /// How it differs from a baseline, where there is one.
    pub comparison: Option<Comparison>,
    facts: RefCell<BTreeMap<TypeId, Rc<dyn Any>>>,
}

impl<'r> Case<'r> {
    /// A case about the whole recording.
    pub fn new(recording: &'r Recording) -> Self {
        Case { recording, comparison: None, facts: RefCell::default() }
    }

    /// The same with a comparison to a baseline.
    pub fn against(recording: &'r Recording, comparison: Comparison) -> Self {
        Case { comparison: Some(comparison), ..Self::new(recording) }
    }

    /// The fact of this type, computed on the first call.
    ///
    /// # Errors
    /// The gap that keeps it from being computed; the same one each time.
    pub fn fact<F: Fact>(&self) -> Result<Rc<F>, Gap> {
        let known = self.facts.borrow().get(&TypeId::of::<F>()).cloned();
        if let Some(Ok(answer)) = known.map(Rc::downcast::<Result<Rc<F>, Gap>>) {
            return (*answer).clone();
        }
        // Not under the borrow: a fact may ask for other facts.
        let answer = F::compute(self).map(Rc::new);
        self.facts.borrow_mut().insert(TypeId::of::<F>(), Rc::new(answer.clone()));
        answer
    }

    /// Length of the capture, ns. A capture that was killed has no length in its description: then
    /// the last slice of the thread ledger ends it.
    pub fn length_ns(&self) -> f64 {
        if self.recording.meta.length_ns > 0 {
            return self.recording.meta.length_ns as f64;
        }
        self.recording.rows::<recording::tables::Thread>().iter().map(|t| t.t_ns).max().unwrap_or(0) as f64
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

/// A gap, in the words of the caller.
pub(crate) fn gap(what: &str, why: impl Into<String>) -> Gap {
    Gap { what: what.to_string(), why: why.into() }
}
