// SPDX-License-Identifier: Apache-2.0
//! All collectors together, at work on this process: what each took, and that each gives up what it can. Needs root; see
//! `kernel_allows`.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::process::id;
use std::thread::sleep;
use std::time::{Duration, Instant};

use testing::need;
use wakewalk_collect::capture::{Account, CallCounting, Plan, Role};
use wakewalk_collect::clock;
use wakewalk_collect::collector::{Shared, Start};
use wakewalk_collect::collectors::{Spent, Team, slots};
use wakewalk_collect::probes::Room;
use wakewalk_collect::probes::ledger::Ledger;
use wakewalk_collect::target::Target;

fn kernel_allows() -> anyhow::Result<()> {
    Ledger::load(&mut MaybeUninit::uninit()).map(drop)
}

fn plan() -> Plan {
    let root = std::path::PathBuf::from("/");
    Plan {
        target: Target::Pid(id()).resolve(&root).unwrap(),
        length: Duration::from_secs(5),
        calls: CallCounting::Auto,
        labels: false,
        role: Role::Service,
        slo: None,
        root,
        tool: "test".into(),
        room: Room::Whole,
    }
}

#[test]
fn everybody_tells_what_it_took_and_gives_up_what_it_can() {
    need!(kernel_allows());
    let plan = plan();
    let mut slots = slots();
    let mut slots = slots.iter_mut();
    let ledger = Ledger::load(slots.next().unwrap()).unwrap();
    let (plan, began) = (&plan, clock::since_boot());
    let mut start = Start { plan, ledger: &ledger, began, stack_bytes: 4096, sample_hz: 0, bursts: None };
    let (mut team, gaps) = Team::start(&mut start, slots);
    let mut shared = Shared::new(plan, ledger, clock::monotonic_ns());
    shared.ledger.seed(&[id()]).unwrap();

    let (mut account, from) = (Account::start(), Instant::now());
    let (mut spent, mut priced) = (HashMap::<&str, (u64, u64)>::new(), false);
    let most = Duration::from_secs(10);
    // The kernel's run statistics come a slice at a time, which a loaded host closes late.
    while from.elapsed() < Duration::from_millis(400) || !priced && from.elapsed() < most {
        team.tick(&mut shared).unwrap();
        account.tick(from.elapsed(), || team.programs(&shared));
        for told in team.spent(&shared, &mut account, 1).unwrap() {
            let sum = spent.entry(told.gap).or_default();
            *sum = (sum.0 + told.user_ns, sum.1 + told.kernel_ns());
        }
        priced = spent.values().any(|(_, kernel_ns)| *kernel_ns > 0);
        sleep(Duration::from_millis(10));
    }
    assert!(spent["speed"].0 > 0 && spent["thread"].1 > 0, "{spent:?}, {gaps:?}");
    let again: Vec<Spent> = team.spent(&shared, &mut account, 1).unwrap();
    assert!(again.iter().all(|again| again.gap != "speed" || again.user_ns == 0), "each is told once: {again:?}");

    for (what, steps) in [("sample", 3), ("call", 1), ("connection", 3), ("exchange", 4), ("thread", 0)] {
        if !gaps.iter().any(|gap| gap.what == what) {
            let given = (0..9).take_while(|_| team.shed(what)).count();
            assert_eq!(given, steps, "{what}");
        }
    }
}
