// SPDX-License-Identifier: Apache-2.0
//! What is left of a recording that did not come to its end.

use std::path::Path;

use anyhow::Error;
use recording::tables::Thread;

/// What becomes of a capture that failed with `error`: what it had seen is kept, if anything is, and that is said.
pub fn behind(error: Error, dir: &Path, is_kept: bool) -> Error {
    if is_kept && has_slice(dir) {
        return error.context(format!("the capture broke off; {}", kept(dir)));
    }
    remove(dir);
    error
}

/// Where what was seen is found.
pub fn kept(dir: &Path) -> String {
    format!("what was seen until then is kept in `{}`, and --from replays it as far as it goes", dir.display())
}

/// Removes a recording of which there is nothing to be told; it would only stand in the way of the next one. What somebody else has put
/// beside it, as the command that was started, stays.
pub fn remove(dir: &Path) {
    if recording::describe(dir).is_ok_and(|meta| !meta.sealed) {
        recording::remove(dir);
    }
}

/// Whether a slice was written: whoever is observed has a thread, and each thread has a row in it.
pub fn has_slice(dir: &Path) -> bool {
    let threads = recording::slices::<Thread>(dir, 0..u64::MAX);
    threads.is_ok_and(|mut pieces| pieces.any(|rows| rows.is_ok_and(|rows| !rows.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;
    use recording::tables::Process;
    use recording::{Meta, Tables, Writer};

    #[test]
    fn what_was_seen_is_kept_and_the_rest_is_no_recording() {
        let (mut begun, mut seen) = (Tables::default(), Tables::default());
        begun.extend([Process { pid: 7, ..Process::default() }]);
        seen.extend([Thread { t_ns: 1_000_000_000, tid: 7, ..Thread::default() }]);
        for (slices, is_wanted, stays) in
            [(vec![&begun], true, false), (vec![&begun, &seen], true, true), (vec![&seen], false, false)]
        {
            let place = tempfile::tempdir().unwrap();
            let dir = place.path().join("recording");
            let mut writer = Writer::create(&dir, &Meta::default()).unwrap();
            for tables in slices {
                writer.append_all(tables).unwrap();
            }
            let said = format!("{:#}", behind(anyhow!("the disk is full"), &dir, is_wanted));
            assert!(said.ends_with("the disk is full"), "{said}");
            let is_told = said.contains(&format!("kept in `{}`", dir.display()));
            assert_eq!((dir.exists(), is_told), (stays, stays), "{said}");
            assert!(!stays || recording::open(&dir).is_ok_and(|left| left.rows::<Thread>().len() == 1));
        }
    }
}
