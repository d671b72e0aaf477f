// SPDX-License-Identifier: Apache-2.0
//! What holds the threads that should take requests, in words.

use super::AT_ITS_LIMIT;
use crate::walk::Who;

/// By what they are held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Held {
    /// What the work in hand waits for.
    Work,
    /// Clients, of whose questions the rest is still to come.
    Senders,
    /// Clients' connections, on which nobody asks.
    Keepers,
}

impl Held {
    /// The threads are taken, …
    pub(super) fn words(self, who: &Who) -> String {
        match self {
            Self::Work => format!("in {}", who.call_words()),
            Self::Senders => "by clients that are slow to send".into(),
            Self::Keepers => "by connections on which nobody asks".into(),
        }
    }

    /// Each of the threads …
    pub(super) fn of_each(self, who: &Who) -> String {
        match self {
            Self::Work => format!("has another one in hand and waits in {}", who.call_words()),
            Self::Senders => "has another one in hand and waits until its client has sent the rest".into(),
            Self::Keepers => "keeps to another client's connection and waits until that one asks again".into(),
        }
    }

    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::Work => "see what they wait for: a larger pool helps only if that has room for more at once",
            Self::Senders => {
                "have a proxy take questions whole before it hands them on, or limit how long one may take to come"
            }
            Self::Keepers => "have it close connections sooner on which nobody asks, or a proxy keep them",
        }
    }

    pub(super) fn remedy(self) -> String {
        match self {
            Self::Work => {
                format!("If what the threads wait for can do more at once, make the pool larger; {AT_ITS_LIMIT}")
            }
            Self::Senders => "Have a proxy take questions whole before it hands them on, as nginx does by default, or read them in an \
                              event loop; limit how long one may take to come. More threads only hold more such clients."
                .into(),
            Self::Keepers => "A thread that keeps to its client's connection is taken for as long as that stays open. Close connections \
                              sooner on which nobody asks (the keep-alive timeout), let a proxy keep them, or wait for the next request in an event \
                              loop. More threads only keep more such connections."
                .into(),
        }
    }
}
