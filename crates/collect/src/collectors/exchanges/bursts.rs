// SPDX-License-Identifier: Apache-2.0
//! Bursts of full detail, one a slice: all waits and all exchanges, until so many events are used up. From them single requests
//! are told from end to end.

use std::mem::replace;

use anyhow::Result;
use recording::{role, tables};

use crate::clock;
use crate::probes::exchanges::Request;
use crate::probes::wakeups;

/// The bursts of a capture.
pub struct Bursts {
    probe: wakeups::Bursts,
    /// When the one that is on began, CLOCK_MONOTONIC ns; none = none is.
    began_ns: Option<u64>,
}

impl Bursts {
    pub fn new(probe: wakeups::Bursts) -> Self {
        Self { probe, began_ns: None }
    }

    /// Ends the burst of the slice that ends now, and begins the next one if exchanges are followed.
    pub fn slice(&mut self, start_ns: u64, follows: bool) -> Result<Option<tables::Burst>> {
        let used_up = self.probe.ended_ns()?;
        self.probe.begin(if follows { self.probe.events() } else { 0 })?;
        let now = clock::monotonic_ns();
        let began = replace(&mut self.began_ns, follows.then_some(now));
        let burst = began.map(|began| {
            let ended = used_up.unwrap_or(now);
            tables::Burst { t_ns: ended.saturating_sub(start_ns), length_ns: ended.saturating_sub(began) }
        });
        Ok(burst)
    }
}

/// The row of a request.
pub fn row(start_ns: u64, request: Request, label: String) -> tables::Request {
    let after_start = |ns: u64| ns.saturating_sub(start_ns);
    tables::Request {
        t_ns: after_start(request.ended_ns),
        role: if request.accepted { role::ACCEPTED } else { role::MADE }.into(),
        handshake: request.handshake,
        port: request.port.into(),
        peer: request.peer.to_string(),
        pid: request.tgid,
        began_ns: after_start(request.began_ns),
        began_tid: request.began_tid,
        read_ns: after_start(request.read_ns),
        rest_ns: after_start(request.rest_ns),
        ended_tid: request.ended_tid,
        label,
    }
}
