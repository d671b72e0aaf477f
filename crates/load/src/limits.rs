// SPDX-License-Identifier: Apache-2.0
//! What this host allows a load.

use std::fs;
use std::num::NonZeroU64;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;

use crate::address::is_here;
use crate::plan::Plan;
use crate::run::{Failure, Run};

/// Descriptors beside those of connections, and beside those that are open by now.
const OTHERS: u64 = 64;

/// What this process has open: beside a capture that is on, programs, maps and rings.
fn open_now() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64)
}

/// How long anything lasts or waits at most.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);

/// A wait that is longer is a slip of the pen, or a number of milliseconds.
pub(crate) fn bound(option: &str, wait: Duration) -> Result<()> {
    ensure!(
        wait <= LONGEST,
        "{option} is an hour at most, and not {} s; a number without a unit is seconds",
        wait.as_secs()
    );
    Ok(())
}

/// Makes room for a plan, or says what is missing.
pub(crate) fn allow(plan: &Plan) -> Result<()> {
    bound("--timeout", plan.timeout)?;
    bound("--think", plan.request.think)?;
    let need = plan.connections as u64 + open_now() + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < need) {
        if let Some(most) = limit.maximum.filter(|most| *most < need) {
            let fewer = match most.saturating_sub(open_now() + OTHERS) {
                0 => String::new(),
                fewer => format!(", or --connections {fewer}"),
            };
            bail!(
                "{} connections need {need} open files, and this process may have {most}; `ulimit -Hn {need}` as root allows \
                 more{fewer}",
                plan.connections
            );
        }
        let raised = Rlimit { current: Some(need), maximum: limit.maximum };
        setrlimit(Resource::Nofile, raised).with_context(|| format!("failed to allow {need} open files"))?;
    }
    if let Some(source) = plan.sources.iter().find(|source| !is_here(**source)) {
        bail!("{source} is no address of this host; `ip address add {source}/32 dev lo` makes it one");
    }
    be_punctual();
    Ok(())
}

/// A wakeup is not to be put off to save power: 50 us by default. Without it the lag says so.
fn be_punctual() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Makes room for so many connections that others open, or for as many as this process may have: how many.
pub(crate) fn room(most: u64) -> u64 {
    be_punctual();
    let limit = getrlimit(Resource::Nofile);
    // Twice: a load asks again, and a capture beside it opens files of its own.
    let others = 2 * (open_now() + OTHERS);
    let wanted = limit.maximum.map_or(most + others, |allowed| allowed.min(most + others));
    let has = limit.current.unwrap_or(u64::MAX);
    if has < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).is_err() {
        return has.saturating_sub(others).clamp(1, most);
    }
    has.max(wanted).saturating_sub(others).clamp(1, most)
}

/// A load that nobody answered measures nothing.
pub(crate) fn somebody_answered(plan: &Plan, run: &Run) -> Result<()> {
    if run.answered() > 0 || !run.statuses.is_empty() || run.sent == 0 {
        return Ok(());
    }
    let to = format!("{}:{}", plan.to.host, plan.to.port);
    let worst = run.failures.iter().max_by_key(|entry| entry.1).map(|entry| *entry.0);
    let why = match worst {
        Some(Failure::Refused) => "nobody listens there; `ss -ltn` shows who does".into(),
        Some(Failure::Reset | Failure::Closed) => "connections were closed before an answer was whole".into(),
        Some(Failure::Unsent) => {
            "this program was behind its plan by more than the timeout; ask for less (--rate)".into()
        }
        Some(Failure::Timeout) => format!(
            "no answer was whole within {:?}; a stream never is, for others --timeout gives more time",
            plan.timeout
        ),
        Some(Failure::Garbage) if plan.is_http() => {
            "what came is no answer of HTTP/1.1, by its head, its length or what followed it; tcp:// sends plain bytes"
                .into()
        }
        Some(Failure::Garbage) => {
            "the answer was longer than --reply says, or came before all of the message was sent".into()
        }
        Some(Failure::NoPort) => "no local port was left; --source-addresses has more of them".into(),
        Some(Failure::NoDescriptor) => "no file descriptor was left".into(),
        Some(Failure::Unreachable) => "there is no route to it".into(),
        Some(Failure::Status | Failure::Other) => "the kernel refused the connection".into(),
        None => "it was ended before an answer came".into(),
    };
    ensure!(run.answered() > 0, "{to} did not answer any of {} requests: {why}", run.sent);
    Ok(())
}
