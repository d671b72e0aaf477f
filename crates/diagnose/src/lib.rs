// SPDX-License-Identifier: Apache-2.0
//! From a recording to a verdict: facts, ledgers, rules. Pure functions.
//!
//! Nothing here reads a clock, a file or the kernel: the same recording gives the same verdict.
//! A [`case::Case`] is one question; a [`case::Fact`] is numbers computed from it, without opinion;
//! a rule is the opinion about one cause; [`diagnose()`] asks every rule and ranks the answers.
//! [`comparison`] sets one recording against another.

pub mod answer;
pub mod bisect;
pub mod case;
pub mod comparison;
pub mod facts;
pub mod glossary;
pub mod hops;
mod judge;
mod judgement;
pub mod ledger;
pub mod likeness;
pub mod phrases;
mod remarks;
pub mod rules;
mod runtimes;
mod statement;
mod statistics;
pub mod syscall;
pub mod timeline;
pub mod verdict;
pub mod walk;
mod wording;

pub use case::{Case, Fact, Question};
pub use glossary::glossary;
pub use judge::{add_cost, diagnose, judge};
pub use rules::{Explain, causes, explain};
