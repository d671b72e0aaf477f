// SPDX-License-Identifier: Apache-2.0
//! Connections that the kernel refused while the service was away: its process ended, and another one came.

use recording::tables::{Death, Process};

use super::Above;
use crate::case::Case;
use crate::facts::errors::{Error, Kind};
use crate::wording::{count, percent};

/// What is said of them, where a process that listened was seen to end by a signal, or another one to come.
pub(super) fn told(case: &Case, error: &Error) -> Option<Above> {
    if error.kind != Kind::NobodyThere {
        return None;
    }
    let listens = |row: &&Process| row.pid != 0 && row.listen.iter().any(|socket| socket.starts_with("tcp "));
    let servers: Vec<&Process> = case.recording.rows::<Process>().iter().filter(listens).collect();
    let deaths = case.recording.rows::<Death>().iter();
    let died = deaths.rev().find(|death| servers.iter().any(|server| server.pid == death.pid));
    let came = servers.iter().rfind(|server| server.started_ns > 0);
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

fn ended(death: &Death) -> String {
    format!("{} (pid {}) was ended by {}", death.comm, death.pid, signal(death.signal))
}

/// Its name, Linux on x86-64 and arm64.
fn signal(number: u32) -> String {
    const NAMES: [(u32, &str); 11] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (15, "SIGTERM"),
        (31, "SIGSYS"),
    ];
    NAMES.iter().find(|(n, _)| *n == number).map_or(format!("signal {number}"), |(_, name)| (*name).to_string())
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
        assert!(with("death t_ns=1e9 pid=8 comm=job signal=9 count=1").starts_with("40 connections to its port were"));
    }
}
