// SPDX-License-Identifier: Apache-2.0
//! Clients send what they ask in parts, and a good part of the response time passes until the last one has come.

use super::Remark;
use crate::case::Case;
use crate::judgement::in_parts::look;
use crate::wording::{count, percent, seconds};

/// Shorter than clients wait, of which that is known, before they send a body without leave, ns (`InParts::expects`).
const EXPECTS_NS: f64 = 3e8;

/// That the time is the clients'.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let asked = look(case)?;
    let usual_ns = asked.endpoint.rest.quantile_ns(0.5);
    let (part, each) = (percent(asked.part), seconds(usual_ns / 1e9));
    let expects = if usual_ns >= EXPECTS_NS { "; or whether they wait for `100 Continue`, and get none" } else { "" };
    Some(Remark {
        headline: format!("{part} of the response time passes until its clients have sent all of what they ask"),
        advice: Some(format!(
            "look at the clients: they send each question in parts, some time apart{expects}; and whether they may send more at once: \
             a receive buffer that the service has fixed (SO_RCVBUF) is `rb` in `ss -tmn`"
        )),
        detail: format!(
            "{} questions at {} came in parts, the last one half of the time {each} or longer after the first had been read: \
             {part} of the response time there, in which the service had nothing to do for them but to take what came.",
            count(asked.count),
            asked.endpoint.name.trim_start_matches("tcp "),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::in_parts::tests::text;
    use recording::text::parse;

    #[test]
    fn slow_clients() {
        let said = |text: String| remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.headline);
        assert!(said(text(20, 0, "")).unwrap().starts_with("48 % of the response time passes until"));
        assert_eq!(said(text(2, 0, "")), None);
    }
}
