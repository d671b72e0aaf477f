// SPDX-License-Identifier: Apache-2.0
//! Which processes of the target can take what clients ask.

use recording::tables::Process;

use crate::case::Case;

/// Whether a process may: it runs the program of one that listens, or none of the target does. A program that was started for a
/// request is waited for, and serves nobody.
pub(crate) fn may_serve(case: &Case, pid: u32) -> bool {
    let processes = case.recording.rows::<Process>();
    let exe = |pid: u32| processes.iter().find(|row| row.pid == pid).map(|row| row.exe.as_str());
    let mut listening = processes.iter().filter(|row| !row.listen.is_empty()).peekable();
    listening.peek().is_none() || listening.any(|row| row.pid == pid || exe(pid) == Some(&row.exe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_do_and_what_they_start_does_not() {
        let text = "process pid=1 exe=/usr/bin/svc listen=[\"tcp 0.0.0.0:80\"]
            process pid=2 ppid=1 exe=/usr/bin/svc
            process pid=3 ppid=2 exe=/usr/bin/convert";
        let recording = recording::text::parse(text).unwrap();
        let case = Case::new(&recording);
        assert_eq!([1, 2, 3].map(|pid| may_serve(&case, pid)), [true, true, false]);
        let recording = recording::text::parse("process pid=3 exe=/usr/bin/convert").unwrap();
        assert!(may_serve(&Case::new(&recording), 3), "a service that is asked in another way");
    }
}
