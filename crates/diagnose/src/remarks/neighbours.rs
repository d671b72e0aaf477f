// SPDX-License-Identifier: Apache-2.0
//! Connections that others of the network namespace could not make: an error of a neighbour's is none of the target's, but
//! whoever reads the counters wonders.

use super::Remark;
use crate::case::Case;
use crate::facts::errors::{Errors, Kind};
use crate::facts::refused::Refused;
use crate::judgement::errors::MIN_COUNT;
use crate::wording::count;

/// What there is to say about them.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let errors = case.fact::<Errors>().ok()?;
    let failed = errors.all.iter().find(|error| error.kind == Kind::NotMade)?;
    let of_others = failed.count - failed.at_most();
    if of_others < MIN_COUNT {
        return None;
    }
    let refused = case.fact::<Refused>().ok();
    let by = refused.map(|refused| refused.other.clone()).filter(|peer| !peer.is_empty());
    let by = by.map_or(String::new(), |peer| format!(", most of them to {peer}"));
    Some(Remark {
        headline: String::new(),
        advice: None,
        detail: format!(
            "{} attempts to connect failed in its network namespace{by}: those of other processes, or half-open ones that a client \
             reset, as health checks do. None of these calls was seen of the target.",
            count(of_others)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// A target that asks a database, and counts calls for a tenth of the time.
    fn of(refused: &str, call: &str) -> Option<String> {
        let text = format!(
            "meta host.arch=x86_64 length_ns=1e9 target.listen=[\"tcp 0.0.0.0:80\"]
             counter source=proc/net/snmp entity=Tcp name=AttemptFails value=0
             counter t_ns=9 source=proc/net/snmp entity=Tcp name=AttemptFails value=400
             connection t_ns=1 role=made peer=10.0.0.9:5432 looks=10 open=20
             call_window length_ns=1e8
             call pid=1 tid=1 syscall=0 result=64 count=300
             {call}
             retransmit t_ns=1e9 kind=reset_received state=SYN_SENT role=made peer={refused} count=400"
        );
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.detail)
    }

    #[test]
    fn whose_calls_were_not_seen() {
        let said = of("127.0.0.1:9", "").unwrap();
        assert!(
            said.contains("400 attempts to connect failed in its network namespace, most of them to 127.0.0.1:9"),
            "{said}"
        );
    }

    #[test]
    fn whose_they_may_be() {
        assert_eq!(of("10.0.0.9:5432", ""), None, "the target asks there");
        assert_eq!(of("127.0.0.1:9", "call pid=1 tid=1 syscall=42 result=-111 count=40"), None, "it was refused");
    }
}
