// SPDX-License-Identifier: Apache-2.0
//! A target that is a service and its clients at once, as where both have the name that was given: what each of them waits
//! for is then what the other one does, and no verdict is about the service.

use recording::tables::Wakeup;

use super::Remark;
use crate::case::Case;
use crate::statistics::share;
use crate::walk::Walk;
use crate::walk::clients::Clients;
use crate::wording::percent;

/// Requests by processes of the target, of all that were seen.
const MOST: f64 = 0.5;

/// So many are no accident.
const ENOUGH: usize = 10;

/// That most requests come from processes of the target itself.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let (walk, clients) = (case.fact::<Walk>().ok()?, case.fact::<Clients>().ok()?);
    let by_own =
        |row: &Wakeup| row.context == "thread" && row.waker_pid != row.pid && walk.target.contains(&row.waker_pid);
    // What comes from other hosts is brought by an interrupt.
    let of_target = case.recording.rows::<Wakeup>().iter().filter(|row| clients.is_own(row.pid));
    let all: Vec<&Wakeup> = of_target.filter(|row| clients.ended(case, row)).collect();
    let own = all.iter().filter(|row| by_own(row)).count();
    let part = share(own as f64, all.len() as f64);
    (own >= ENOUGH && part >= MOST).then(|| Remark {
        headline: "a service and its own clients were observed together".to_string(),
        advice: Some("name the service alone, by its --port or --pid".to_string()),
        detail: format!(
            "{} of the requests that were seen came from processes of the target itself: the verdict is about both ends.",
            percent(part)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn told(waker: u32, more: &str) -> bool {
        let mut text =
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1,2]\nprocess pid=1 listen=[\"tcp 0.0.0.0:80\"]\n"
                .to_string();
        for nth in 1..=12 {
            text += &format!(
                "wakeup t_ns={nth}e6 pid=1 tid=1 wait_ns=1e5 syscall=232 context=thread waker_pid={waker} waker_tid={waker} waker_remote_port=80\n"
            );
        }
        remark(&Case::new(&parse(&(text + more)).unwrap())).is_some()
    }

    #[test]
    fn clients_within_the_target() {
        assert!(told(2, "") && !told(9, ""));
        let remote = "wakeup t_ns=5e6 pid=2 tid=2 wait_ns=1e5 syscall=45 context=interrupt family=2 local_port=80 remote_port=9 peer=10.0.0.9\n";
        assert!(!told(2, &remote.repeat(40)), "a proxy and the workers behind it, in one unit");
    }
}
