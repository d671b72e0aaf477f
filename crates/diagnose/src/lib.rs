//! From a recording to a verdict: facts, ledgers, rules. Pure functions.
//!
//! Nothing here reads a clock, a file or the kernel: the same recording gives the same verdict.

pub mod verdict;
