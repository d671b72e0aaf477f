// SPDX-License-Identifier: Apache-2.0
//! Connections that the kernel refused while the service was away: its process ended, and another one came.

use std::collections::BTreeSet;

use recording::tables::{Death, Process, Thread};

use super::Above;
use crate::case::{Case, SLICE_NS};
use crate::facts::deaths::signal_name;
use crate::facts::errors::{Error, Kind};
use crate::facts::nobody_there::NobodyThere;
use crate::wording::{count, percent};

/// What is said of them, where a process that listened was seen to end by a signal, or another one to come.
pub(super) fn told(case: &Case, error: &Error) -> Option<Above> {
    if error.kind != Kind::NobodyThere {
        return None;
    }
    let at = format!(":{}", case.fact::<NobodyThere>().ok()?.port);
    let listens = |row: &&Process| row.pid != 0 && row.listen.iter().any(|s| s.starts_with("tcp ") && s.ends_with(&at));
    let servers: Vec<&Process> = case.recording.rows::<Process>().iter().filter(listens).collect();
    if one_stayed(case, &servers) {
        return None;
    }
    let deaths = case.recording.rows::<Death>().iter();
    let died = deaths.rev().find(|death| servers.iter().any(|server| server.pid == death.pid));
    // A death is told at the end of its slice.
    let is_later = |server: &&&Process| died.is_none_or(|death| server.started_ns + SLICE_NS >= death.t_ns);
    let came = servers.iter().filter(|server| server.started_ns > 0).find(is_later);
    let why = match (died, came) {
        (None, None) => return None,
        (Some(death), None) => ended(death),
        (Some(death), Some(came)) => format!("{}, and pid {} came after it", ended(death), came.pid),
        (None, Some(came)) => format!("{} (pid {}) was started in this time", came.comm, came.pid),
    };
    Some(Above {
        what: format!(
            "{} of {} connections to its port ({}) were refused while nobody listened: {why}",
            count(error.at_most()),
            count(error.of),
            percent(error.share())
        ),
        share: error.share(),
        advice:
            "look in its log for why it ended (`journalctl -e`, `dmesg`), and how long it takes until it listens again"
                .into(),
        about: "From the end of a process that listens until the next one does, the kernel refuses whoever asks.",
    })
}

/// Whether any of these was there from the begin to the end: then somebody listened all the time, at an address of his own.
fn one_stayed(case: &Case, servers: &[&Process]) -> bool {
    let threads = case.recording.rows::<Thread>();
    let until = threads.iter().map(|row| row.t_ns).max();
    let last: BTreeSet<u32> = threads.iter().filter(|row| Some(row.t_ns) == until).map(|row| row.pid).collect();
    servers.iter().any(|server| server.started_ns == 0 && last.contains(&server.pid))
}

fn ended(death: &Death) -> String {
    format!("{} (pid {}) was ended by {}", death.comm, death.pid, signal_name(death.signal))
}

#[cfg(test)]
mod tests {
    use super::super::above;
    use crate::case::Case;
    use recording::text::parse;

    #[test]
    fn who_ended_and_who_came() {
        let with = |more: &str| {
            let text = format!(
                "meta length_ns=3e9 target.pids=[7] target.listen=[\"tcp 0.0.0.0:80\"]
                 process pid=7 comm=web listen=[\"tcp 0.0.0.0:80\"]
                 counter source=proc/net/snmp entity=Tcp name=PassiveOpens value=0
                 counter t_ns=9 source=proc/net/snmp entity=Tcp name=PassiveOpens value=60
                 exchange_window t_ns=1e9 length_ns=1e9\nexchange_window t_ns=2e9 length_ns=1e9
                 exchange t_ns=1e9 role=accepted port=80 stage=first_read count=60 sum_ns=1 length_ns=[1000] counts=[60]
                 exchange t_ns=1e9 role=accepted port=80 stage=response count=60 sum_ns=1 length_ns=[1000] counts=[60]
                 retransmit t_ns=2e9 kind=reset_sent role=none port=80 reason=NO_SOCKET count=40
                 {more}"
            );
            above(&Case::new(&parse(&text).unwrap())).remove(0).what
        };
        let (death, came) = (
            "death t_ns=1e9 pid=7 comm=web signal=9 count=1",
            "process pid=9 comm=web started_ns=2e9 listen=[\"tcp 0.0.0.0:80\"]",
        );
        let head = "40 of 100 connections to its port (40 %) were refused while nobody listened: web (pid ";
        assert_eq!(with(death), format!("{head}7) was ended by SIGKILL"));
        assert_eq!(
            with(&format!("{death}\n{came}")),
            format!("{head}7) was ended by SIGKILL, and pid 9 came after it")
        );
        assert_eq!(with(came), format!("{head}9) was started in this time"));
        assert!(with("").starts_with("40 connections to its port were refused, where nobody listens"));
        let stays = "thread t_ns=3e9 pid=7 tid=7 wall_ns=3e9";
        assert!(with(&format!("{stays}\n{came}")).starts_with("40 connections to its port were"), "a worker more");
        let before = came.replace("started_ns=2e9", "started_ns=1");
        let late = death.replace("t_ns=1e9", "t_ns=2e9");
        assert_eq!(with(&format!("{late}\n{before}")), format!("{head}7) was ended by SIGKILL"));
        assert!(with("death t_ns=1e9 pid=8 comm=job signal=9 count=1").starts_with("40 connections to its port were"));
    }
}
