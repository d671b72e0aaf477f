// SPDX-License-Identifier: Apache-2.0
//! Descriptors of clocks. Alone in its file: it looks at all of this process.

#![allow(clippy::unwrap_used)]

use std::mem::MaybeUninit;
use std::path::Path;

use testing::need;
use wakewalk_collect::host::online_cpus;
use wakewalk_collect::probes::Probe as _;
use wakewalk_collect::probes::ledger::Ledger;
use wakewalk_collect::probes::profile::Profile;

fn of_clocks() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.filter(|link| link.to_string_lossy() == "anon_inode:[perf_event]").count()
}

/// A link closes the descriptor that it was given. If that were ours too, whoever closed it second would close what another
/// thread has opened meanwhile.
#[test]
fn a_clock_and_its_link_have_one_each() {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = need!(Ledger::load(&mut a));
    let cpus = online_cpus(Path::new("/"));
    let mut profile = Profile::load(&mut b, &ledger, &cpus, 97, 4 << 10).unwrap();
    assert_eq!(of_clocks(), 2 * cpus.len());
    profile.detach();
    assert_eq!(of_clocks(), 0);
}
