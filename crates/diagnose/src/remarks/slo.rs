// SPDX-License-Identifier: Apache-2.0
//! Whether the response time is kept that the owner of the service promises. Only who made a promise can say what is slow.

use std::time::Duration;

use super::in_parts;
use crate::answer::{Gap, Unseen};
use crate::case::Case;
use crate::facts::requests::{Endpoint, Requests};
use crate::facts::sending::Sending;
use crate::statement::Statement;
use crate::statistics::share;
use crate::verdict::Slo;
use crate::walk::paths::RequestPaths;
use crate::wording::{percent, seconds};

/// Answers that may take longer than promised: a promise without a share is meant for 99 of a hundred.
const MAY_MISS: f64 = 0.01;

/// Of all answers: with fewer, it is something else that clients wait for there, as with a few long polls.
const A_GOOD_PART: f64 = 0.01;

/// How the promise was kept, at the endpoint at which the largest share of answers misses it; if at none, at the one at which
/// clients wait most. Where several requests share a connection, how long each takes is not seen.
pub(crate) fn held(case: &Case) -> Option<Slo> {
    told(case, case.slo?).ok()
}

fn told(case: &Case, slo: Duration) -> Result<Slo, &'static str> {
    let (slo, requests) = (slo.as_secs_f64(), case.fact::<Requests>().map_err(|_| UNANSWERED)?);
    let accepted = || requests.endpoints.iter().filter(|e| e.accepted);
    let answers: f64 = accepted().map(|e| e.response.count).sum();
    let answered = || accepted().filter(|e| e.response.count > 0.0 && e.response.count >= answers * A_GOOD_PART);
    let missed = |e: &Endpoint| share(e.response.count_from(slo * 1e9), e.response.count);
    let misses = answered().filter(|e| !e.is_mixed() && missed(e) > MAY_MISS);
    let most_missed = misses.max_by(|a, b| missed(a).total_cmp(&missed(b)));
    let endpoint = most_missed.or_else(|| requests.main()).ok_or(UNANSWERED)?;
    if endpoint.is_mixed() {
        return Err(MIXED);
    }
    let (response, missed) = (&endpoint.response, missed(endpoint));
    let kept = missed <= MAY_MISS;
    if kept && response.mean_ns() / 1e9 + rest_held(case, &requests, endpoint) > slo {
        return Err(HELD);
    }
    Ok(Slo { seconds: slo, missed, kept })
}

/// Why it cannot be told.
const UNANSWERED: &str = "no answer to a client was seen on a TCP connection";
const MIXED: &str = "requests are not told apart on their connections";
const HELD: &str = "answers begin in time, but their rest stands in the send queue for longer";

/// For how long the rest of each answer stands in the send queue, on average, s: that is in no response time, which ends where the
/// answer begins.
fn rest_held(case: &Case, requests: &Requests, endpoint: &Endpoint) -> f64 {
    let sending = case.fact::<Sending>().ok();
    sending.and_then(|sending| sending.per_exchange(requests, true, &endpoint.name)).map_or(0.0, |each| each.held)
}

/// The promise, where it was missed.
pub(crate) fn missed(case: &Case) -> Option<Slo> {
    held(case).filter(|slo| !slo.kept)
}

/// That it cannot be told.
pub(crate) fn unseen(case: &Case) -> Option<Gap> {
    let why = told(case, case.slo?).err()?;
    Some(Gap::new("slo", Unseen::Undecided, format!("{why}, so whether the response time is kept is not known")))
}

/// Says that the promise was missed; a service that misses it is not healthy. Returns the verdict's cause.
pub(crate) fn tell(case: &Case, slo: Slo, verdict: String, statement: &mut Statement) -> String {
    let slow = format!("{} of the answers take longer than {}", percent(slo.missed), seconds(slo.seconds));
    if verdict != "healthy" {
        statement.headline = format!("{}; {slow}", statement.headline);
        return verdict;
    }
    if let Some(of_clients) = in_parts::remark(case) {
        statement.headline = format!("{slow}; {}", of_clients.headline);
        statement.advice = of_clients.advice.unwrap_or_default();
        return "not-determined".to_string();
    }
    let most = most(case);
    statement.headline = format!("{slow}, and nothing that was measured explains it");
    statement.advice = match &most {
        Some(words) => format!("look at what the slowest requests waited for: {words}"),
        None => "observe for longer, so that some of the slow ones are followed from end to end".to_string(),
    };
    "not-determined".to_string()
}

/// What the slowest that were followed spent most of their time on.
fn most(case: &Case) -> Option<String> {
    let paths = case.fact::<RequestPaths>().ok()?;
    Some(paths.main()?.slow.parts.first()?.words())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use recording::text::parse;

    use super::tell;
    use crate::statement::Statement;
    use crate::verdict::Slo;
    use crate::{Case, Question, judge};

    fn judged(slo_ms: u64, text: &str) -> crate::verdict::Verdict {
        let question = Question { slo: Some(Duration::from_millis(slo_ms)), ..Question::default() };
        judge(&Case::asked(&parse(text).unwrap(), question))
    }

    const TEXT: &str = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
        exchange role=accepted port=80 stage=response count=100 sum_ns=400e6 length_ns=[2000000,90000000] counts=[97,3]";

    #[test]
    fn a_promise_that_is_missed_is_said() {
        let missed = judged(50, TEXT);
        assert!(missed.headline.contains("3.0 % of the answers take longer than 50 ms"), "{}", missed.headline);
        let slo = missed.slo.unwrap();
        assert_eq!((slo.kept, slo.missed, slo.seconds), (false, 0.03, 0.05));
        assert_ne!(missed.verdict, "healthy");
    }

    #[test]
    fn a_recording_keeps_the_promise_that_it_was_made_for() {
        let text = TEXT.replace("length_ns=1e9", "length_ns=1e9 slo_ns=50000000");
        let recording = parse(&text).unwrap();
        assert!(crate::diagnose(&recording).headline.contains("take longer than 50 ms"));
        assert!(judged(200, &text).slo.unwrap().kept, "another one was asked");
    }

    /// All of the time passes until the last part of the question has come.
    #[test]
    fn clients_that_send_slowly_miss_it_themselves() {
        let recording = parse(&crate::judgement::in_parts::tests::text(41, 0, "")).unwrap();
        let (slo, mut said) = (Slo { seconds: 0.02, missed: 1.0, kept: false }, Statement::default());
        assert_eq!(tell(&Case::new(&recording), slo, "healthy".into(), &mut said), "not-determined");
        assert!(
            said.headline.contains("take longer than 20 ms; 98 % of the response time passes until"),
            "{}",
            said.headline
        );
        assert!(said.advice.contains("look at the clients"), "{}", said.advice);
    }

    #[test]
    fn health_checks_beside_what_clients_wait_for() {
        let checks =
            "exchange role=accepted port=81 stage=response count=9000 sum_ns=9e6 length_ns=[1000] counts=[9000]";
        assert_eq!(judged(50, &format!("{TEXT}\n{checks}")).slo.unwrap().missed, 0.03);
        let longer =
            "exchange role=accepted port=81 stage=response count=9000 sum_ns=9e10 length_ns=[10000000] counts=[9000]";
        let both = TEXT.replace("count=100 sum_ns=400e6", "count=1000 sum_ns=400e7").replace("[97,3]", "[970,30]");
        assert_eq!(
            judged(50, &format!("{both}\n{longer}")).slo.unwrap().missed,
            0.03,
            "at another port clients wait longer"
        );
    }

    /// Answers begin within 2 ms, and their rest is held for 40 ms.
    #[test]
    fn the_rest_of_answers_keeps_no_promise() {
        let held = TEXT.replace("[97,3]", "[100,0]")
            + "\nexchange_window t_ns=1e9 length_ns=1e9
               connection t_ns=1e9 role=accepted port=80 looks=10 open=50 unsent=40 nagle=40 nagle_ns=8e8";
        let of = |ms| judged(ms, &held).slo.map(|slo| slo.kept);
        assert_eq!((of(20), of(100)), (None, Some(true)));
    }

    #[test]
    fn one_that_is_kept_or_cannot_be_told() {
        let shared = judged(50, &TEXT.replace("counts=[97,3]", "counts=[97,3] more=60"));
        assert!(shared.slo.is_none() && shared.gaps.iter().any(|gap| gap.why.contains("not told apart")));
        let kept = judged(100, TEXT);
        assert!(kept.slo.unwrap().kept && !kept.headline.contains("take longer"), "{}", kept.headline);
        let unseen = judged(50, "meta length_ns=1e9");
        assert!(unseen.slo.is_none() && unseen.gaps.iter().any(|gap| gap.what == "slo"));
    }
}
