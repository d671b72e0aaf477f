// SPDX-License-Identifier: Apache-2.0
//! Sweeps over services whose limit is known.

use super::*;
use crate::lengths::Percentiles;
use crate::verdict::Word;

/// A service that answers so many a second, and how long its answers take at a rate.
fn swept(limit: f64, p50: impl Fn(f64) -> f64, past: impl Fn(f64) -> f64) -> Sweep {
    let mut load = |rate: f64| {
        let answered = if rate <= limit { rate } else { past(rate) };
        let mut verdict = crate::judge(&crate::Run::default(), None);
        (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
            (Word::Valid, answered, 5.0, (rate * 5.0) as u64);
        verdict.corrected = Percentiles { p50: Some(p50(rate)), ..Percentiles::default() };
        Ok(Some(Tried { verdict, service: None }))
    };
    sweep(5.0, 40_000.0, &mut load).unwrap()
}

fn codes(sweep: &Sweep) -> Vec<&str> {
    sweep.findings.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn a_limit_is_found_within_a_twentieth() {
    for limit in [77.0, 333.0, 1000.0, 12_345.0, 30_000.0] {
        let sweep = swept(limit, |_| 0.001, |_| limit);
        let knee = sweep.knee.unwrap();
        assert!(knee.sustained <= limit / (KEPT - 0.01) && limit < knee.not_sustained, "{limit}: {knee:?}");
        assert!(knee.not_sustained <= NEAR * knee.sustained, "{knee:?}");
        assert!((knee.answered / limit - 1.0).abs() < 0.05, "{limit}: {knee:?}");
        assert!(codes(&sweep).is_empty() && sweep.steps.len() < 50, "{:?}", sweep.findings);
    }
    assert_eq!(codes(&swept(50_000.0, |_| 0.001, |_| 0.0)), ["not-reached"]);
    assert_eq!(codes(&swept(2.0, |_| 0.001, |_| 2.0)), ["over-from-the-start"]);
}

#[test]
fn a_cold_start_is_no_limit() {
    let mut tries = 0;
    let mut load = |rate: f64| {
        tries += 1;
        let mut verdict = crate::judge(&crate::Run::default(), None);
        let answered = if tries == 1 { 1.0 } else { rate.min(1000.0) };
        (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
            (Word::Valid, answered, 5.0, (rate * 5.0) as u64);
        Ok(Some(Tried { verdict, service: None }))
    };
    let sweep = sweep(5.0, 40_000.0, &mut load).unwrap();
    assert!(sweep.knee.is_some() && codes(&sweep).is_empty(), "{:?}", sweep.findings);
}

/// One question in twenty is held at low load, so that half of them say nothing.
#[test]
fn a_paradox_of_the_slowest_alone() {
    let of = |slow: f64| {
        let mut load = |rate: f64| {
            let mut verdict = crate::judge(&crate::Run::default(), None);
            (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
                (Word::Valid, rate.min(1000.0), 5.0, (rate * 5.0) as u64);
            let p99 = if rate < 100.0 { slow } else { 0.003 };
            verdict.corrected = Percentiles { p50: Some(0.001), p99: Some(p99), ..Percentiles::default() };
            Ok(Some(Tried { verdict, service: None }))
        };
        sweep(5.0, 40_000.0, &mut load).unwrap()
    };
    let held = of(0.042);
    assert_eq!(codes(&held), ["latency-falls"], "{:?}", held.findings);
    assert!(held.findings[0].sentence.contains("p99 42 ms at"), "{:?}", held.findings);
    assert!(codes(&of(0.007)).is_empty(), "what nobody feels");
}

#[test]
fn paradoxes_are_named() {
    let held = swept(1000.0, |rate| if rate < 50.0 { 0.040 } else { 0.002 }, |_| 1000.0);
    assert_eq!(codes(&held), ["latency-falls"], "{:?}", held.findings);
    let falls = swept(1000.0, |_| 0.002, |_| 300.0);
    assert_eq!(codes(&falls), ["throughput-falls"]);
    let warmer = swept(1000.0, |rate| if rate < 10.0 { 0.0011 } else { 0.001 }, |_| 1000.0);
    assert!(codes(&warmer).is_empty(), "a tenth is no paradox");
}

/// A chain of services on CPUs that sleep between requests, by which the client's own timers are late too; and one that holds them.
#[test]
fn cpus_that_have_to_wake_are_no_paradox() {
    let at = |slow: f64| {
        let mut load = |rate: f64| {
            let mut verdict = crate::judge(&crate::Run::default(), None);
            (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
                (Word::Valid, rate.min(1000.0), 5.0, (rate * 5.0) as u64);
            let is_idle = rate < 50.0;
            verdict.corrected.p50 = Some(if is_idle { slow } else { 0.58e-3 });
            verdict.client.lag.p50 = Some(if is_idle { 0.15e-3 } else { 0.05e-3 });
            Ok(Some(Tried { verdict, service: None }))
        };
        sweep(5.0, 40_000.0, &mut load).unwrap()
    };
    assert!(codes(&at(1.9e-3)).is_empty());
    assert_eq!(codes(&at(40e-3)), ["latency-falls"]);
}

/// A first load that is much too high has its answers too late, or is told so; else something is wrong.
#[test]
fn a_sweep_that_begins_with_failures() {
    let of = |failure: Failure, status: u16| {
        let mut load = |rate: f64| {
            let mut verdict = crate::judge(&crate::Run::default(), None);
            (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
                (Word::Misleading, 100.0, 5.0, (rate * 5.0) as u64);
            verdict.errors = [(failure, verdict.due - 500)].into();
            verdict.statuses = [(200, 500), (status, verdict.due - 500)].into();
            verdict.reasons = vec![Reason { code: "errors".into(), sentence: "90 % of requests failed".into() }];
            Ok(Some(Tried { verdict, service: None }))
        };
        codes(&sweep(1_000.0, 40_000.0, &mut load).unwrap())[0].to_string()
    };
    assert_eq!(of(Failure::Timeout, 200), "over-from-the-start");
    assert_eq!(of(Failure::Status, 503), "over-from-the-start");
    assert_eq!(of(Failure::Status, 404), "fails-from-the-start");
    assert_eq!(of(Failure::Closed, 200), "fails-from-the-start");
}

/// Each request takes less CPU time the more there are, as of one that batches.
#[test]
fn cpu_time_that_is_no_line_has_no_floor() {
    let mut load = |rate: f64| {
        let mut verdict = crate::judge(&crate::Run::default(), None);
        (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
            (Word::Valid, rate.min(2000.0), 5.0, (rate * 5.0) as u64);
        let [verdict_of_it, headline, advice] = [(); 3].map(|()| String::new());
        let cpus = 0.01 * rate.min(2000.0).sqrt();
        Ok(Some(Tried { verdict, service: Some(Meanwhile { verdict: verdict_of_it, headline, advice, cpus }) }))
    };
    assert_eq!(sweep(5.0, 40_000.0, &mut load).unwrap().cpu, None);
}

#[test]
fn cpu_time_that_does_not_follow_the_load_is_named() {
    for (floor, expected) in [(0.8, ["cpu-floor"].as_slice()), (0.01, &[])] {
        let mut load = |rate: f64| {
            let mut verdict = crate::judge(&crate::Run::default(), None);
            (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
                (Word::Valid, rate.min(900.0), 5.0, (rate * 5.0) as u64);
            let [verdict_of_it, headline, advice] = [(); 3].map(|()| String::new());
            let cpus = floor + 1e-3 * rate.min(900.0);
            Ok(Some(Tried { verdict, service: Some(Meanwhile { verdict: verdict_of_it, headline, advice, cpus }) }))
        };
        let sweep = sweep(5.0, 40_000.0, &mut load).unwrap();
        let line = sweep.cpu.unwrap();
        assert!((line.floor - floor).abs() < 1e-6 && (line.seconds_per_request - 1e-3).abs() < 1e-9, "{line:?}");
        let found: Vec<&str> = codes(&sweep).into_iter().filter(|code| *code != "service").collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn the_client_s_own_limit_is_none_of_the_service() {
    let mut load = |rate: f64| {
        let mut verdict = crate::judge(&crate::Run::default(), None);
        (verdict.rate, verdict.length, verdict.due) = (rate, 5.0, (rate * 5.0) as u64);
        verdict.verdict = Word::ClientLimited;
        let code = if rate > 100.0 { "client-cpu" } else { "late" };
        verdict.reasons = vec![Reason { code: code.into(), sentence: String::new() }];
        Ok(Some(Tried { verdict, service: None }))
    };
    let sweep = sweep(5.0, 1000.0, &mut load).unwrap();
    assert!(sweep.knee.is_none() && codes(&sweep) == ["client-limited"], "{:?}", sweep.findings);
}

/// The loads of a sweep are wide apart: the limit lies between one that was answered and one that the client cannot send.
#[test]
fn a_limit_just_below_the_client_s_own_is_found() {
    for (limit, is_found) in [(100_000.0, true), (120_000.0, true), (135_000.0, false), (1e6, false)] {
        let mut load = |rate: f64| {
            let mut verdict = crate::judge(&crate::Run::default(), None);
            (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
                (Word::Valid, rate.min(limit), 5.0, (rate * 5.0) as u64);
            if rate > 140_000.0 {
                verdict.verdict = Word::ClientLimited;
                verdict.reasons = vec![Reason { code: "client-cpu".into(), sentence: "full".into() }];
            }
            Ok(Some(Tried { verdict, service: None }))
        };
        let sweep = sweep(6000.0, 250_000.0, &mut load).unwrap();
        match sweep.knee {
            Some(knee) => assert!(knee.sustained < 1.04 * limit && knee.not_sustained > limit, "{limit}: {knee:?}"),
            None => assert!(sweep.findings[0].sentence.contains("full; 13"), "{:?}", sweep.findings),
        }
        let found: &[&str] = if is_found { &[] } else { &["client-limited"] };
        assert_eq!((sweep.knee.is_some(), codes(&sweep)), (is_found, found.to_vec()), "{limit}");
    }
}

/// Answers vary around four seconds, in loads of five: nobody can tell whether it keeps up.
#[test]
fn loads_that_are_too_short_for_their_answers_are_no_limit() {
    let mut load = |rate: f64| {
        let mut verdict = crate::judge(&crate::Run::default(), None);
        (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
            (Word::Valid, 0.2 * rate, 5.0, (rate * 5.0) as u64);
        verdict.seconds = Percentiles { p50: Some(4.0), ..Percentiles::default() };
        Ok(Some(Tried { verdict, service: None }))
    };
    let sweep = sweep(5.0, 400.0, &mut load).unwrap();
    assert!(codes(&sweep) == ["too-short"] && sweep.findings[0].sentence.contains("--for 40s"), "{:?}", sweep.findings);
}

/// A sweep over a service of a limit, with a promise that so many in a hundred break at a rate.
fn promised(limit: f64, broken: impl Fn(f64) -> f64) -> Sweep {
    let mut load = |rate: f64| {
        let mut verdict = crate::judge(&crate::Run::default(), None);
        (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
            (Word::Valid, rate.min(limit), 5.0, (rate * 5.0) as u64);
        verdict.slo = Some(crate::Promise { seconds: 0.05, broken: broken(rate) });
        Ok(Some(Tried { verdict, service: None }))
    };
    sweep(5.0, 40_000.0, &mut load).unwrap()
}

/// Answers are held back at low load: that is no limit, and what it can answer is found all the same.
#[test]
fn a_promise_that_is_broken_at_low_load_does_not_end_the_sweep() {
    let sweep = promised(1000.0, |rate| if !(50.0..=600.0).contains(&rate) { 0.4 } else { 0.0 });
    let knee = sweep.knee.unwrap();
    assert!((950.0..1050.0).contains(&knee.sustained), "{knee:?}");
    assert_eq!(codes(&sweep), ["promise-broken-at-low-load"]);
    assert!(sweep.findings[0].sentence.contains("kept from 80 to"), "{:?}", sweep.findings);

    let middle = promised(1000.0, |rate| if (30.0..=100.0).contains(&rate) { 0.4 } else { 0.0 });
    assert_eq!(codes(&middle), ["promise-broken-at-low-load"]);
    let said = &middle.findings[0].sentence;
    assert!(said.contains("broken at 40 a second") && said.contains("kept from 5 to 20 and from 160 to "), "{said}");
    let sweep = promised(1000.0, |rate| if rate > 600.0 { 0.4 } else { 0.0 });
    let (promise, knee) = (sweep.sides_of_promise().unwrap(), sweep.knee.unwrap());
    assert!((950.0..1050.0).contains(&knee.sustained) && codes(&sweep) == ["promise"], "{:?}", sweep.findings);
    assert!(promise.sustained <= 600.0 && promise.not_sustained <= NEAR * promise.sustained, "{promise:?}");
    assert!(sweep.steps.len() < 60, "{}", sweep.steps.len());
}

#[test]
fn one_of_a_few_is_no_share() {
    for (failed, of, more) in [(1, 25, false), (3, 25, true), (1, 10, false), (60, 5000, false), (90, 5000, true)] {
        assert_eq!(is_more_than_a_few(f64::from(failed) / f64::from(of), f64::from(of)), more, "{failed} of {of}");
    }
    let once = promised(1000.0, |rate| if rate < 6.0 { 0.04 } else { 0.0 });
    assert_eq!(codes(&once), ["promise"], "{:?}", once.findings);
}

/// One bad moment of the client between the two sides, and somebody who ends it there.
#[test]
fn a_limit_that_was_found_is_not_lost() {
    for (is_ended, is_again) in [(true, false), (false, false), (false, true)] {
        let mut tries = 0;
        let mut load = |rate: f64| {
            let mut verdict = crate::judge(&crate::Run::default(), None);
            (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
                (Word::Valid, rate.min(1000.0), 5.0, (rate * 5.0) as u64);
            tries += usize::from(rate > 640.0 && rate < 1280.0);
            if rate > 640.0 && rate < 1280.0 && (tries == 1 || is_again) {
                verdict.verdict = Word::ClientLimited;
                verdict.reasons = vec![Reason { code: "client-starved".into(), sentence: String::new() }];
            }
            Ok((!is_ended || tries < 2).then_some(Tried { verdict, service: None }))
        };
        let sweep = sweep(5.0, 40_000.0, &mut load).unwrap();
        let knee = sweep.knee.unwrap();
        assert!(knee.sustained < 1000.0 / (KEPT - 0.01) && knee.not_sustained > 1000.0, "{knee:?}");
        let is_wide = (knee.sustained, knee.not_sustained) == (640.0, 1280.0);
        let found = if is_again {
            vec!["client-limited"]
        } else if is_ended {
            vec!["ended-early", "client-limited"]
        } else {
            vec![]
        };
        assert_eq!((is_wide, codes(&sweep)), (is_ended || is_again, found), "{knee:?}");
    }
}

/// A service that is gone after so many loads, by an error or by connections that are refused.
fn gone(after: usize, error: bool) -> Sweep {
    let mut tries = 0;
    let mut load = |rate: f64| {
        tries += 1;
        anyhow::ensure!(tries <= after || !error, "nobody listens on port 80");
        let mut verdict = crate::judge(&crate::Run::default(), None);
        (verdict.verdict, verdict.length, verdict.due) = (Word::Valid, 5.0, (rate * 5.0) as u64);
        match tries {
            n if n <= after => (verdict.rate, verdict.answered) = (rate, verdict.due),
            _ => verdict.errors = [(Failure::Refused, verdict.due)].into(),
        }
        Ok(Some(Tried { verdict, service: None }))
    };
    sweep(5.0, 40_000.0, &mut load).unwrap()
}

#[test]
fn a_service_that_ends_has_no_limit() {
    for (error, loads) in [(true, 4), (false, 5)] {
        let sweep = gone(4, error);
        let code = if error { "broken-off" } else { "service-gone" };
        assert_eq!((sweep.knee, codes(&sweep), sweep.steps.len()), (None, vec![code], loads), "{error}");
        let said = &sweep.findings[0].sentence;
        assert!(said.contains("80 a second") && said.contains("; up to 40 a second were answered before"), "{said}");
    }
}

/// A service that answers what is beyond its limit with a status.
#[test]
fn a_limit_that_somebody_has_set_is_named() {
    let mut load = |rate: f64| {
        let answered = rate.min(200.0);
        let mut verdict = crate::judge(&crate::Run::default(), None);
        (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
            (Word::Valid, answered, 5.0, (rate * 5.0) as u64);
        let refused = ((rate - answered) * 5.0) as u64;
        if refused > 0 {
            verdict.errors = [(Failure::Status, refused)].into();
            verdict.statuses = [(200, verdict.due - refused), (429, refused)].into();
        }
        Ok(Some(Tried { verdict, service: None }))
    };
    let sweep = sweep(5.0, 40_000.0, &mut load).unwrap();
    assert_eq!(codes(&sweep), ["refuses"]);
    assert!(sweep.findings[0].sentence.contains("with status 429: it limits the rate"), "{:?}", sweep.findings);
}

/// A bucket of tokens, full at the beginning: what it holds carries one load beyond the rate at which it fills.
#[test]
fn what_is_sustained_on_credit_is_no_limit() {
    let mut credit = 500.0_f64;
    let mut load = |rate: f64| {
        let answered = rate.min(100.0 + credit / 5.0);
        credit = (credit - (answered - 100.0) * 5.0).min(500.0);
        let mut verdict = crate::judge(&crate::Run::default(), None);
        (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
            (Word::Valid, answered, 5.0, (rate * 5.0) as u64);
        Ok(Some(Tried { verdict, service: None }))
    };
    let knee = sweep(5.0, 40_000.0, &mut load).unwrap().knee.unwrap();
    assert!((90.0..=125.0).contains(&knee.sustained), "{knee:?}");
}

/// What is answered leads elsewhere.
#[test]
fn a_limit_of_redirects_is_told_as_such() {
    let mut load = |rate: f64| {
        let mut verdict = crate::judge(&crate::Run::default(), None);
        (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
            (Word::Misleading, rate.min(1000.0), 5.0, (rate * 5.0) as u64);
        verdict.reasons = vec![Reason { code: "redirects".into(), sentence: "all answers were redirects".into() }];
        Ok(Some(Tried { verdict, service: None }))
    };
    assert_eq!(codes(&sweep(5.0, 40_000.0, &mut load).unwrap()), ["redirects"]);
}

/// Over few connections from some load on: each time, or in one moment in which nobody could be reached.
#[test]
fn connections_are_as_few_as_are_taken_only_if_that_happens_again() {
    let few = |moments: usize| {
        let (mut met, mut most) = (0, 0);
        let mut load = |rate: f64, connections: usize| {
            let mut verdict = crate::judge(&crate::Run::default(), None);
            (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
                (Word::Valid, rate.min(1000.0), 5.0, (rate * 5.0) as u64);
            if rate > 50.0 && connections > 3 && met < moments {
                met += 1;
                verdict.takes = Some(3);
                verdict.errors = [(Failure::Timeout, verdict.due / 2)].into();
            }
            most = most.max(if rate > 500.0 { connections } else { 0 });
            Ok(Some(Tried { verdict, service: None }))
        };
        let sweep = sweep_over(5.0, 4000.0, Pool { connections: 16, most: 16 }, &mut load).unwrap();
        assert!(sweep.knee.is_some_and(|knee| (950.0..1050.0).contains(&knee.sustained)), "{sweep:?}");
        (codes(&sweep).contains(&"few-connections"), most)
    };
    assert_eq!(few(usize::MAX), (true, 3));
    assert_eq!(few(1), (false, 16));
}
