// SPDX-License-Identifier: Apache-2.0
//! A connection for each request: making and closing them is a cost that no function shows.

use super::Remark;
use crate::case::Case;
use crate::facts::calls::Calls;
use crate::facts::handshakes::Handshakes;
use crate::facts::profile::Profile;
use crate::facts::requests::Requests;
use crate::statistics::share;
use crate::wording::{count, percent};

/// In the window: fewer are clients that come and go.
const MANY: f64 = 100.0;

/// Requests for each connection that was taken; not all of them may have been followed.
const ONE_EACH: std::ops::RangeInclusive<f64> = 0.3..=1.5;

/// Of its CPU time: less is not where the time goes.
const WORTH: f64 = 0.1;

/// Calls that make and close connections; of a service that does so for each request, most are of these.
const CALLS: &[&str] = &["accept", "accept4", "close", "connect", "shutdown", "socket"];

/// What there is to say about connections that live for one request.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let taken = case.fact::<Handshakes>().ok()?.taken;
    let endpoints = &case.fact::<Requests>().ok()?.endpoints;
    let requests: f64 = endpoints.iter().filter(|e| e.accepted).map(|e| e.response.count).sum();
    let calls = case.fact::<Calls>().ok()?;
    let in_calls = calls.sampled.values().filter(|call| CALLS.contains(&call.name.as_str()));
    let samples: u64 = in_calls.map(|call| call.samples).sum();
    let part = share(samples as f64, case.fact::<Profile>().ok()?.total.samples as f64);
    if taken < MANY || !ONE_EACH.contains(&(requests / taken)) || part < WORTH {
        return None;
    }
    Some(Remark {
        headline: String::new(),
        advice: None,
        detail: format!(
            "Its clients make a connection for each request, {} in all: taking and closing them is {} of its CPU time, which \
             connections that are kept open would save.",
            count(taken),
            percent(part)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(taken: u32, in_close: u32) -> Option<String> {
        let text = format!(
            "meta host.arch=x86_64 length_ns=1e9
             counter source=proc/net/snmp entity=Tcp name=PassiveOpens value=0
             counter t_ns=9 source=proc/net/snmp entity=Tcp name=PassiveOpens value={taken}
             exchange t_ns=1e9 role=accepted port=80 stage=response count=900 sum_ns=9e8 length_ns=[1000000] counts=[900]
             sample pid=1 tid=1 kernel=true syscall=3 weight={in_close}
             sample pid=1 tid=1 kernel=true syscall=1 weight=100"
        );
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.detail)
    }

    #[test]
    fn a_connection_for_each_request() {
        let said = of(1000, 100).unwrap();
        assert!(said.contains("1000 in all: taking and closing them is 50 % of its CPU time"), "{said}");
        assert_eq!((of(90, 100), of(300, 100), of(1000, 5)), (None, None, None));
    }
}
