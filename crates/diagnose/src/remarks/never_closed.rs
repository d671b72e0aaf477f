// SPDX-License-Identifier: Apache-2.0
//! Connections that the other end has closed and the target has not: each keeps a descriptor, until there is none left.

use super::Remark;
use crate::case::Case;
use crate::facts::socket_states::{InState, SocketStates};
use crate::wording::count;

/// Of fewer, each may be about to be closed.
const MANY: f64 = 50.0;

/// What there is to say about them, if there were many as the capture began and as it ended.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let states = case.fact::<SocketStates>().ok()?;
    let left = |of: &&InState| of.state == "CLOSE_WAIT" && of.held.0.min(of.held.1) >= MANY;
    let most = states.own.iter().filter(left).max_by(|a, b| a.held.1.total_cmp(&b.held.1))?;
    let (who, of) = if most.accepted { ("clients", "at") } else { ("the other end", "to") };
    let n = count(most.held.1);
    Some(Remark {
        headline: format!("{n} connections that {who} closed stay open"),
        advice: None,
        detail: format!(
            "{n} connections {of} {} were closed by {who} and are still open here (CLOSE_WAIT), {} when the capture began: unless \
             something is still sent on them, the program forgets to close them, and each keeps a descriptor (ss -tanp state \
             close-wait).",
            most.name.trim_start_matches("tcp "),
            count(most.held.0)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(begin: u32, end: u32, state: &str) -> Option<String> {
        let text = format!(
            "meta length_ns=5e9 target.listen=[\"tcp 0.0.0.0:80\"]
             socket_state state={state} role=accepted port=80 held=true count={begin}
             socket_state t_ns=5e9 state={state} role=accepted port=80 held=true count={end}"
        );
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.detail)
    }

    #[test]
    fn those_that_stay() {
        let said = of(100, 350, "CLOSE_WAIT").unwrap();
        assert!(said.starts_with("350 connections at 0.0.0.0:80 were closed by clients and are still open"), "{said}");
        assert!(said.contains("100 when the capture began"), "{said}");
        assert_eq!(
            (of(100, 0, "CLOSE_WAIT"), of(3, 350, "CLOSE_WAIT"), of(100, 350, "ESTABLISHED")),
            (None, None, None)
        );
    }
}
