// SPDX-License-Identifier: Apache-2.0
//! The ledger's largest line, where it is most of the time: whatever the verdict, a reader sees it on the page and must not
//! have to wonder about it.

use super::Remark;
use crate::case::Case;
use crate::judgement::hung;
use crate::ledger::largest::{Largest, largest};
use crate::phrases::ledger_lines;
use crate::statistics::ratio;
use crate::verdict::Finding;
use crate::wording::{percent, seconds};

/// Of the active time.
const MOST: f64 = 0.5;

/// Threads on that line on average: less is nobody's trouble.
const MIN_THREADS: f64 = 0.05;

/// Lines that verdicts speak of anyway.
const ON_CPU: &[&str] = &["user", "kernel", "kernel_in_wait_calls", "cpu_unsplit", "interrupted"];

/// What most of the active time went to, if that was no computing, and is not said already.
pub(crate) fn remark(case: &Case, said: &str) -> Option<Remark> {
    told(case, &largest(case)?, said)
}

fn told(case: &Case, line: &Largest, said: &str) -> Option<Remark> {
    let (time, part) = (seconds(line.ns / 1e9), percent(line.of_busy));
    let enough = line.of_busy >= MOST && ratio(line.ns, case.length_ns()) >= MIN_THREADS;
    let words = ledger_lines::words(case, line.line);
    // Of requests that hang it is said in what threads stand, and that is another reckoning of the same.
    let is_said = || said.contains(&words) || hung::look(case).is_some_and(|h| hung::telling(case, &h).is_some());
    (enough && !ON_CPU.contains(&line.line) && !is_said()).then(|| Remark {
        headline: format!("{part} of its active time was {words}"),
        advice: None,
        detail: format!("Most of its active time, {time} of thread time ({part}), was {words}."),
    })
}

/// Of what a finding explains, so many times as long: then that line is something else.
const TIMES: f64 = 2.0;

/// The same beside a finding that explains much less.
pub(crate) fn beside(case: &Case, finding: &Finding, said: &str) -> Option<Remark> {
    let line = largest(case).filter(|line| line.ns / 1e9 >= finding.explains.seconds * TIMES)?;
    told(case, &line, said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Explains;
    use recording::text::parse;

    #[test]
    fn the_largest_line_is_told_unless_it_is_work() {
        let text = |cpu: &str, queue: &str| {
            format!("meta length_ns=1e9\nthread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns={cpu} run_queue_ns={queue}")
        };
        let told = |text: &str| remark(&Case::new(&parse(text).unwrap()), "").map(|remark| remark.headline);
        assert!(told(&text("2e8", "8e8")).is_some_and(|headline| headline.starts_with("80 % of its active time was")));
        assert_eq!(told(&text("8e8", "2e8")), None);
        let recording = parse(&text("2e8", "8e8")).unwrap();
        let beside = |seconds| {
            let explains = Explains { seconds, ..Explains::default() };
            beside(&Case::new(&recording), &Finding { explains, ..Finding::default() }, "").is_some()
        };
        assert!(beside(0.3) && !beside(0.5), "what is found may be that line");
    }
}
