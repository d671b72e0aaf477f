// SPDX-License-Identifier: Apache-2.0
//! The collectors of one capture, together.

use std::collections::BTreeMap;
use std::mem::{MaybeUninit, take};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use anyhow::Result;
use libbpf_rs::OpenObject;
use recording::Tables;
use recording::tables::{Cost, Gap, Loss, Process};

use super::{ALL, threads, waits};
use crate::account::Account;
use crate::clock;
use crate::collector::{Collector, Kind, Shared, SliceEnd, Slot, Start};
use crate::probes::Kept;

/// Those that read the ledger, without which there is nothing to judge.
const LEDGER: [&str; 2] = [threads::KIND.gap, waits::KIND.gap];

/// Room for the objects of the ledger and of each collector.
pub fn slots() -> Vec<MaybeUninit<OpenObject>> {
    (0..=ALL.len()).map(|_| MaybeUninit::uninit()).collect()
}

/// CPU time that a collector took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    /// The name of its gap.
    pub gap: &'static str,
    /// In this process, ns.
    pub user_ns: u64,
    /// In the kernel, by program.
    pub programs: Vec<Cost>,
}

impl Spent {
    /// In the kernel, by all its programs, ns.
    pub fn kernel_ns(&self) -> u64 {
        self.programs.iter().map(|program| program.cpu_ns).sum()
    }
}

/// One collector, and what it took.
struct Member<'o> {
    kind: &'static Kind,
    collector: Box<dyn Collector + 'o>,
    /// CPU time since it was last told.
    user_ns: u64,
}

/// Those that the kernel let start, in the order of the list. One that fails later is a gap from then on: only those that read
/// the ledger end the capture, and this is what each error below is about.
pub struct Team<'o> {
    members: Vec<Member<'o>>,
    /// What was told of losses so far: kept and lost, by what.
    told: BTreeMap<&'static str, (u64, u64)>,
    /// Gaps that were told.
    told_gaps: Vec<Gap>,
    /// Of those that were stopped or failed, to be told.
    stopped: Vec<Gap>,
}

impl<'o> Team<'o> {
    /// Starts all. One that the kernel refuses is a gap in the recording, not a failure of the capture.
    pub fn start(start: &mut Start<'_, 'o>, slots: impl Iterator<Item = Slot<'o>>) -> (Self, Vec<Gap>) {
        let (mut members, mut gaps) = (Vec::new(), Vec::new());
        for (kind, slot) in ALL.iter().zip(slots) {
            match (kind.start)(start, slot) {
                Ok(collector) => members.push(Member { kind, collector, user_ns: 0 }),
                Err(why) => gaps.push(Gap::refused(kind.gap, format!("{why:#}"))),
            }
        }
        (Self { members, told: BTreeMap::new(), told_gaps: Vec::new(), stopped: Vec::new() }, gaps)
    }

    /// The watch begins: what is known then.
    ///
    /// # Errors
    /// A map fails.
    pub fn begin(&mut self, shared: &mut Shared<'_>, tables: &mut Tables) -> Result<()> {
        ALL.iter().for_each(|kind| (kind.tables)(tables));
        self.all(shared, |collector, shared| collector.begin(shared, tables))
    }

    /// What each does of its own accord, and then what has come.
    ///
    /// # Errors
    /// A map, a ring or a hook fails.
    pub fn tick(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        self.all(shared, |collector, shared| collector.tick(shared))?;
        self.drain(shared)?;
        let loaded = self.each(|collector| collector.load(shared));
        if loaded.contains(&true) { self.drain(shared) } else { Ok(()) }
    }

    /// Takes what rings hold.
    ///
    /// # Errors
    /// A ring fails.
    pub fn drain(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        self.all(shared, |collector, shared| collector.drain(shared))
    }

    /// In what time the first thing ends that is under way.
    pub fn busy_for(&self) -> Option<Duration> {
        self.members.iter().filter_map(|member| member.collector.busy_for()).min()
    }

    /// Reads what must be as of this moment.
    pub fn read(&mut self, shared: &Shared<'_>, end: &SliceEnd) {
        self.each(|collector| collector.read(shared, end));
    }

    /// The rows of a slice, and what was lost in it.
    ///
    /// # Errors
    /// A map fails.
    pub fn slice(&mut self, shared: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        self.all(shared, |collector, shared| collector.slice(shared, end, tables))?;
        let sums = self.of_all(shared, |collector, shared| collector.losses(shared))?;
        tables.extend(fresh(&mut self.told, end.t_ns, sums.concat()));
        Ok(())
    }

    /// Tells all of processes that were born, became another program, or began to listen.
    pub fn come(&mut self, processes: &[Process]) {
        self.each(|collector| collector.come(processes));
    }

    /// Ends what is under way.
    ///
    /// # Errors
    /// A map fails.
    pub fn conclude(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        self.all(shared, |collector, shared| collector.conclude(shared))
    }

    /// Takes all hooks off; maps and rings stay readable.
    pub fn detach(&mut self, shared: &mut Shared<'_>) {
        self.each(|collector| collector.detach(shared));
    }

    /// What only the end can tell.
    ///
    /// # Errors
    /// A map fails.
    pub fn finish(&mut self, shared: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        self.all(shared, |collector, shared| collector.finish(shared, end, tables))
    }

    /// Programs that run all the time, for their run statistics.
    pub fn programs<'a>(&'a self, shared: &'a Shared<'_>) -> Vec<(&'static str, BorrowedFd<'a>)> {
        self.members.iter().flat_map(|member| member.collector.programs(shared)).collect()
    }

    /// Kernel memory of all maps, bytes.
    pub fn map_bytes(&mut self, shared: &Shared<'_>) -> u64 {
        self.each(|collector| collector.map_bytes(shared)).into_iter().sum()
    }

    /// What could not be seen and was not told yet. How much was not seen of what was looked at in part, only the `is_end` tells:
    /// before, it still grows.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn gaps(&mut self, shared: &mut Shared<'_>, is_end: bool) -> Result<Vec<Gap>> {
        let all = self.of_all(shared, |collector, shared| collector.gaps(shared))?;
        let mut fresh: Vec<Gap> = all.into_iter().flatten().filter(|gap| is_end || gap.is_refused()).collect();
        fresh.append(&mut self.stopped);
        fresh.retain(|gap| !self.told_gaps.contains(gap));
        self.told_gaps.extend(fresh.iter().cloned());
        Ok(fresh)
    }

    /// What each took since the last call, as of the slice that ends at `t_ns`: for the recording, and for whoever decides who is
    /// to [`Team::shed`].
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn spent(&mut self, shared: &mut Shared<'_>, account: &mut Account, t_ns: u64) -> Result<Vec<Spent>> {
        let sums = self.of_all(shared, |collector, shared| collector.costs(shared, account))?;
        let spent = |(member, sums): (&mut Member<'_>, _)| Spent {
            gap: member.kind.gap,
            user_ns: take(&mut member.user_ns),
            programs: account.fresh(t_ns, sums),
        };
        Ok(self.members.iter_mut().zip(sums).map(spent).collect())
    }

    /// Has one collector, by the name of its gap, give up one step of what it costs; false = it has nothing more to give.
    pub fn shed(&mut self, gap: &str) -> bool {
        let member = self.members.iter_mut().find(|member| member.kind.gap == gap);
        member.is_some_and(|member| member.collector.shed())
    }

    /// Stops one collector, by the name of its gap, for the rest of the capture, which is a gap from now on; false = it goes on.
    /// The end of a slice is the time for it: what one that is followed as a whole has of the next is lost.
    pub fn stop(&mut self, gap: &str, shared: &mut Shared<'_>) -> bool {
        let Some(member) = self.members.iter_mut().find(|member| member.kind.gap == gap) else { return false };
        if !member.collector.stop(shared) {
            return false;
        }
        self.stopped.push(from_now_on(member.kind, shared, "because it took more than it may"));
        true
    }

    /// Lets all do something that may fail.
    fn all(
        &mut self,
        shared: &mut Shared<'_>,
        work: impl FnMut(&mut dyn Collector, &mut Shared<'_>) -> Result<()>,
    ) -> Result<()> {
        self.of_all(shared, work).map(drop)
    }

    /// The same, and what each made of it. Who fails is of the team no more.
    fn of_all<T>(
        &mut self,
        shared: &mut Shared<'_>,
        mut work: impl FnMut(&mut dyn Collector, &mut Shared<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let done = self.each(|collector| work(collector, shared));
        let mut made = Vec::with_capacity(done.len());
        for (mut member, done) in take(&mut self.members).into_iter().zip(done) {
            match done {
                Ok(done) => {
                    made.push(done);
                    self.members.push(member);
                }
                Err(why) if LEDGER.contains(&member.kind.gap) => return Err(why),
                Err(why) => {
                    member.collector.stop(shared); // others may have to know; its hooks go with it
                    self.stopped.push(from_now_on(member.kind, shared, &format!("because it failed: {why:#}")));
                }
            }
        }
        Ok(made)
    }

    /// Lets each do something, and notes how long it computed.
    fn each<T>(&mut self, mut work: impl FnMut(&mut dyn Collector) -> T) -> Vec<T> {
        let mut before = clock::thread_cpu_ns();
        let mut done = Vec::with_capacity(self.members.len());
        for member in &mut self.members {
            done.push(work(member.collector.as_mut()));
            let after = clock::thread_cpu_ns();
            member.user_ns += after.saturating_sub(before);
            before = after;
        }
        done
    }
}

/// That a collector was stopped at this moment.
fn from_now_on(kind: &Kind, shared: &Shared<'_>, why: &str) -> Gap {
    let (at, length) = (shared.elapsed().as_secs_f64(), shared.plan.length.as_secs_f64());
    let part = if length > 0.0 { (1.0 - at / length).max(0.0) } else { 0.0 };
    Gap::partial(kind.gap, part, format!("it was stopped {at:.1} s after the start, {why}"))
}

/// What was kept and lost in the slice that ends at `t_ns`; of what nothing is new, only the first time.
fn fresh(told: &mut BTreeMap<&'static str, (u64, u64)>, t_ns: u64, sums: Vec<Kept>) -> Vec<Loss> {
    let mut rows = Vec::new();
    for Kept { what, kept, lost } in sums {
        let before = told.insert(what, (kept, lost));
        let (told_kept, told_lost) = before.unwrap_or_default();
        let (kept, count) = (kept.saturating_sub(told_kept), lost.saturating_sub(told_lost));
        if before.is_none() || kept + count > 0 {
            rows.push(Loss { t_ns, what: what.into(), count, kept });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::id;

    use anyhow::bail;
    use testing::need;

    use super::*;
    use crate::plan::Plan;
    use crate::probes::ledger::Ledger;
    use crate::target::Target;

    #[test]
    fn each_slice_tells_what_is_new_in_it() {
        let mut before = BTreeMap::new();
        let mut told = |t_ns, sums: &[(&'static str, u64, u64)]| -> Vec<(String, u64, u64)> {
            let sums = sums.iter().map(|(what, kept, lost)| Kept { what, kept: *kept, lost: *lost });
            let rows = fresh(&mut before, t_ns, sums.collect());
            rows.into_iter().map(|row| (row.what, row.kept, row.count)).collect()
        };
        assert_eq!(told(1, &[("a", 0, 0), ("b", 5, 1)]), [("a".into(), 0, 0), ("b".into(), 5, 1)]);
        assert_eq!(told(2, &[("a", 0, 0), ("b", 7, 4)]), [("b".into(), 2, 3)]);
        assert_eq!(told(3, &[("a", 0, 0), ("b", 7, 4)]), []);
    }

    #[test]
    fn every_collector_has_a_name_of_its_own() {
        let mut names: Vec<_> = ALL.iter().map(|kind| kind.gap).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }

    /// Fails once it is asked for its rows.
    struct Failing;

    impl Collector for Failing {
        fn slice(&mut self, _: &mut Shared<'_>, _: &SliceEnd, _: &mut Tables) -> Result<()> {
            bail!("no memory")
        }
    }

    const FAILING: Kind = Kind { gap: "sample", facility: None, tables: |_| (), start: |_, _| Ok(Box::new(Failing)) };
    const LEDGER_FAILS: Kind = Kind { gap: threads::KIND.gap, ..FAILING };

    fn team(kinds: &[&'static Kind]) -> Team<'static> {
        let members = kinds.iter().map(|kind| Member { kind, collector: Box::new(Failing), user_ns: 0 }).collect();
        Team { members, told: BTreeMap::new(), told_gaps: Vec::new(), stopped: Vec::new() }
    }

    #[test]
    fn only_the_ledger_ends_a_capture_that_fails() {
        let mut slot = MaybeUninit::uninit();
        let ledger = need!(Ledger::load(&mut slot));
        let target = Target::Pid(id()).resolve(Path::new("/")).unwrap();
        let plan = Plan { target, length: Duration::from_secs(3600), ..Plan::of_nobody() };
        let mut shared = Shared::new(&plan, ledger, clock::monotonic_ns());
        let (end, mut tables) = (SliceEnd { t_ns: 1, last: false, living: vec![], ended: vec![] }, Tables::default());
        let mut optional = team(&[&FAILING]);
        optional.slice(&mut shared, &end, &mut tables).unwrap();
        let gaps = optional.gaps(&mut shared, false).unwrap();
        assert!(
            gaps[0].what == "sample" && gaps[0].unseen_share > 0.9 && gaps[0].why.ends_with("no memory"),
            "{gaps:?}"
        );
        optional.slice(&mut shared, &end, &mut tables).unwrap();
        assert_eq!(optional.gaps(&mut shared, true).unwrap(), [], "it is told once, and asked for nothing more");
        assert!(team(&[&FAILING, &LEDGER_FAILS]).slice(&mut shared, &end, &mut tables).is_err());
    }
}
