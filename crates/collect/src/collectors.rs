// SPDX-License-Identifier: Apache-2.0
//! All collectors. To add one: its file here (with the program beside it, `x.bpf.c`, where it has one) and its line in the
//! list. They are started, asked and written in the order of the list: one that takes what another has left in
//! [`Shared`](crate::collector::Shared) stands behind it, and the names of functions come behind all that keep stacks.

mod team;

use crate::collector::Kind;

pub use profile::stack_bytes;
pub use team::{Spent, Team, slots};

/// Declares the modules and makes the list of what each says of itself.
macro_rules! collectors {
    ($($module:ident,)*) => {
        $(pub mod $module;)*
        /// What each of them says of itself, in the order of the list.
        pub const ALL: &[&Kind] = &[$(&$module::KIND,)*];
    };
}

collectors! {
    threads,
    waits,
    profile,
    calls,
    wakeups,
    counters,
    speed,
    connections,
    exchanges,
    retransmits,
    drops,
    standing,
    neighbours,
    naming,
    settings,
    socket_states,
    file_locks,
    deaths,
}
