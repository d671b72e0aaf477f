// SPDX-License-Identifier: Apache-2.0
//! Who is asked is far away: most of the time until its answer passes until it has acknowledged the question.

use crate::case::Case;
use crate::facts::stages::{Stage, Stages};
use crate::verdict::Finding;
use crate::walk::Kind;
use crate::walk::chains::Chain;
use crate::wording::{ping, seconds};

/// Of the time until the answer.
const MOST: f64 = 0.5;

/// Less is no way that anybody would shorten, s.
const FAR: f64 = 1e-3;

/// Says so, if it is.
pub(super) fn told(case: &Case, first: &Chain, finding: Finding, advised: String) -> (Finding, String) {
    let peer = &first.links[0].who.peer;
    let far = until_acknowledged(case, peer).filter(|_| first.end.kind == Kind::Packet);
    let Some(((way, all), ping)) = far.zip(ping(peer)) else {
        return (finding, advised);
    };
    let (way, all) = (seconds(way), seconds(all));
    // Whoever puts acknowledgements off for as long as a connection lasts looks the same.
    let remedy = format!(
        "Of {all} until it answers, {way} pass until it has acknowledged the question: that is the way there and back, unless it puts its \
         acknowledgements off; `{ping}` shows how long the way is. Ask for more at once, or side by side, keep what it said (a cache), or have \
         a copy of it nearer by. {}",
        finding.remedy
    );
    let advised = format!("`{ping}`: {way} of {all} are the way there and back, it seems; ask for more at once");
    (Finding { remedy, ..finding }, advised)
}

/// Until a question is acknowledged, and until it is answered, s, if the first is most of it.
fn until_acknowledged(case: &Case, peer: &str) -> Option<(f64, f64)> {
    let stages = case.fact::<Stages>().ok()?;
    let asked = stages.endpoints.iter().find(|endpoint| !endpoint.accepted && endpoint.name == peer)?;
    let (way, all) = (asked.of(Stage::Wire)?, asked.seconds());
    (way >= FAR && way >= all * MOST).then_some((way, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// A peer that answers after 30 ms, and acknowledges after so many.
    fn until(ms: u32) -> Option<(f64, f64)> {
        let text = format!(
            "meta length_ns=4e9\nexchange_window t_ns=4e9 length_ns=4e9
             connection t_ns=4e9 role=made peer=10.0.0.9:1 looks=40 open=40 on_its_way={ms} srtt_ns={ms}e6 min_rtt_ns={ms}e6
             exchange role=made peer=10.0.0.9:1 stage=response count=100 sum_ns=3e9"
        );
        until_acknowledged(&Case::new(&parse(&text).unwrap()), "10.0.0.9:1")
    }

    #[test]
    fn most_of_the_time_is_the_way() {
        let (way, all) = until(26).unwrap();
        assert!((way - 0.026).abs() < 1e-3 && (all - 0.03).abs() < 1e-3, "{way} of {all}");
        assert_eq!(until(6), None, "the peer takes its time");
    }
}
