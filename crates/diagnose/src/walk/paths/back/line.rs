// SPDX-License-Identifier: Apache-2.0
//! What a request stood behind: whoever was to start a thread for it, and whoever a thread that helps worked for before.

use super::{At, MAX_HOPS, OnePath};

impl OnePath<'_, '_, '_> {
    /// Explains the time before it was read: whoever read it was at something else, or was to be started by somebody who was.
    pub(super) fn lay_unread(&mut self) {
        let mut at = At { tid: self.request.began_tid, ns: self.read };
        let began = self.request.began_ns as f64;
        for _ in 0..MAX_HOPS {
            if at.ns <= began {
                break;
            }
            let next = self.started_by(at, began);
            self.is_at(at.tid, (next.ns, at.ns), true);
            at = next;
        }
        self.is_at(at.tid, (began, at.ns), true);
    }

    /// Who had at it before a thread was started for it alone, later than `from`; else the same thread, from then on. A worker that was
    /// started meanwhile takes what others have brought.
    pub(super) fn started_by(&self, at: At, from: f64) -> At {
        let before = self.context.timelines.births.before(at, from);
        let is_for_it = self.whole.serves_one_client(at.tid)
            && (before.tid == self.request.began_tid || !self.whole.serves(before.tid));
        if before.tid == at.tid || is_for_it { before } else { At { ns: from, ..at } }
    }

    /// The threads that read the request and answered it.
    pub(super) fn own(&self) -> [u32; 2] {
        [self.request.began_tid, self.request.ended_tid]
    }

    /// A thread that helps had done with another one only then: this one had stood in line since it was handed on.
    pub(super) fn stood_behind(&mut self, at: At, done: f64) -> At {
        let reader = self.request.began_tid;
        let waits = self.context.timelines.next_wait(reader, done).filter(|wait| wait.begin() < done);
        let handed_on = waits.map_or(self.read, |wait| wait.begin().max(self.read));
        self.was_helped(at.tid, done, (handed_on, at.ns));
        At { tid: reader, ns: handed_on }
    }

    /// A thread that helps was at this request since it had done with the one before; until then, that one was in its way.
    pub(super) fn was_helped(&mut self, helper: u32, since: f64, (from, until): (f64, f64)) {
        self.is_at(helper, (since, until), false);
        self.is_at(helper, (from, since), true);
    }
}
