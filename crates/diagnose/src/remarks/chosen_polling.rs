// SPDX-License-Identifier: Apache-2.0
//! A full thread that polls by choice: a poll-mode driver is always at 100 %, with or without work.

use super::Remark;
use crate::case::Case;
use crate::judgement::poller::poller;

/// What there is to say about it.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let poller = poller(case, None)?;
    Some(Remark {
        headline: "but it may poll by choice, and be idle".to_string(),
        advice: Some("a poll-mode driver is always full: see its own counters of empty polls".to_string()),
        detail: format!(
            "The time is that of {}, which asks its device for ever by choice: it is full with or without work, so this says \
             nothing about its load. That is in {}.",
            poller.name, poller.load
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn a_poll_mode_driver_may_be_idle() {
        let of = |polls: u32| {
            let text = format!(
                "frame id=1 symbol=ixgbe_recv_pkts_vec module=svc kind=native\nframe id=2 symbol=work module=svc kind=native
                 stack id=1 frames=[1]\nstack id=2 frames=[2]
                 sample pid=1 tid=1 stack=1 weight={polls}\nsample pid=1 tid=1 stack=2 weight={}",
                100 - polls
            );
            remark(&Case::new(&parse(&text).unwrap()))
        };
        assert!(of(80).unwrap().headline.contains("by choice"));
        assert!(of(5).is_none(), "it works");
    }
}
