// SPDX-License-Identifier: Apache-2.0
//! Who answered a question, where no wait of the asking thread ended with the answer: it was at something else when it came.
//!
//! Other answers of the same peer tell who writes them. Whoever wrote this one was awake at the moment in which it came; if
//! only one of them was, it was that one.

use std::collections::BTreeMap;

use recording::tables::Wakeup;

use crate::walk::Kind;
use crate::walk::context::Context;
use crate::walk::timelines::AT_ONCE_NS;
use crate::walk::waits::Wait;

/// Threads that answer, by peer: of each a wait that it ended.
pub struct Answerers<'a> {
    by_peer: BTreeMap<String, BTreeMap<u32, &'a Wakeup>>,
}

impl<'a> Answerers<'a> {
    pub fn new(context: &Context<'a, '_>) -> Self {
        let mut by_peer: BTreeMap<String, BTreeMap<u32, &Wakeup>> = BTreeMap::new();
        for wait in context.timelines.waits() {
            let row = wait.row;
            if row.context != "thread" || !context.target.contains(&row.pid) || context.target.contains(&row.waker_pid)
            {
                continue;
            }
            let peer = context.who(row).peer;
            if !peer.is_empty() {
                by_peer.entry(peer).or_default().insert(row.waker_tid, row);
            }
        }
        Self { by_peer }
    }

    /// A wait that the thread ended which wrote what came from a peer at some time.
    pub fn of(&self, context: &Context<'_, '_>, peer: &str, came: f64) -> Option<&'a Wakeup> {
        let known = self.by_peer.get(peer)?;
        let mut awake = known.iter().filter(|(tid, _)| context.timelines.is_awake(**tid, came));
        let (_, row) = awake.next()?;
        awake.next().is_none().then_some(*row)
    }
}

/// Of the time that a question takes: its answer is there within so much of it, from its first segment to its last.
const AT_ONCE: f64 = 0.05;

/// The wait of a thread that the answer to a question ended; none where the thread was awake when it came. It comes in several
/// segments, of which the first ends the wait and the last says when; what a client sent meanwhile ends one for itself.
pub fn awaited<'a>(context: &Context<'a, '_>, tid: u32, (began, came): (f64, f64)) -> Option<&'a Wait<'a>> {
    let since = came - ((came - began) * AT_ONCE).max(AT_ONCE_NS);
    let waits = context.timelines.waits_of(tid);
    let before = &waits[..waits.partition_point(|wait| wait.begin() < came)];
    let mut near = before.iter().rev().take_while(|wait| wait.end() >= since);
    near.find(|wait| context.ends.of(wait.row).is_none_or(|end| end.kind != Kind::Client))
}
