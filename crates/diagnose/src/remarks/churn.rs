// SPDX-License-Identifier: Apache-2.0
//! A connection for each request: making and closing them is a cost that no function shows.

use super::Remark;
use crate::case::Case;
use crate::judgement::churn::{self, Side};
use crate::wording::percent;

/// Of its CPU time: less is not where the time goes.
const WORTH: f64 = 0.1;

/// What there is to say about connections that live for one request.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let churn = churn::look(case).filter(|churn| churn.is_churn() && churn.part >= WORTH)?;
    Some(Remark {
        headline: String::new(),
        advice: None,
        detail: format!(
            "{}: {} and closing them is {} of its CPU time, which connections that are kept open would save.",
            churn.words(),
            if churn.side == Side::Own { "making" } else { "taking" },
            percent(churn.part)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(taken: u32, first: u32, in_close: u32) -> Option<String> {
        let text = format!(
            "meta host.arch=x86_64 length_ns=2e9
             counter source=proc/net/snmp entity=Tcp name=PassiveOpens value=0
             counter t_ns=9 source=proc/net/snmp entity=Tcp name=PassiveOpens value={taken}
             exchange_window t_ns=1e9 length_ns=1e9
             exchange t_ns=1e9 role=accepted port=80 stage=response count=450 sum_ns=9e8 length_ns=[1000000] counts=[450]
             exchange t_ns=1e9 role=accepted port=80 stage=first_read count={first}
             sample pid=1 tid=1 kernel=true syscall=3 weight={in_close}
             sample pid=1 tid=1 kernel=true syscall=1 weight=100"
        );
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.detail)
    }

    #[test]
    fn a_connection_for_each_request() {
        let said = of(900, 440, 100).unwrap();
        assert!(
            said.contains("880 connections were taken for 900 requests: taking and closing them is 50 % of its CPU"),
            "{said}"
        );
        assert_eq!((of(900, 300, 100), of(900, 440, 5)), (None, None));
        assert_eq!((of(1000, 30, 100), of(1000, 0, 100)), (None, None), "kept; others of the namespace take more");
    }
}
