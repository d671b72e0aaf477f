// SPDX-License-Identifier: Apache-2.0
//! Parts are the same of memory and of disk.

use super::*;
use crate::tables::*;
use crate::text::parse;

const TEXT: &str = "meta length_ns=4e9
    thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1
    thread t_ns=2e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=2
    thread t_ns=3e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=4
    thread t_ns=4e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=8
    sample t_ns=5e8 pid=1\nsample t_ns=25e8 pid=2
    counter t_ns=0 source=s name=n value=10
    counter t_ns=1e9 source=s name=n value=12
    counter t_ns=3e9 source=s name=n value=15
    counter t_ns=4e9 source=s name=n value=99
    call_window id=1 t_ns=5e8\ncall_window id=2 t_ns=21e8
    call window=1 count=1\ncall window=2 count=2
    wait t_ns=1e9 total_ns=5\nwait t_ns=3e9 total_ns=7
    neighbour t_ns=2e9 pid=3 samples=1\nneighbour t_ns=4e9 pid=3 samples=2
    wakeup t_ns=15e8 since_ns=5e8 wait_ns=1e9 blocked_ns=9e8\nwakeup t_ns=35e8 since_ns=34e8
    loss t_ns=2e9 what=waits count=3 kept=1\nloss t_ns=4e9 what=waits count=9
    cost t_ns=2e9 what=user cpu_ns=7\ncost t_ns=4e9 what=user cpu_ns=9\ncost what=verdict cpu_ns=1";

#[test]
fn no_table_is_forgotten() {
    let all = crate::markdown();
    let names: BTreeSet<&str> = all.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let text: String = names.iter().map(|name| format!("{name}\n")).collect();
    let whole = parse(&format!("{text}thread t_ns=1e9")).unwrap();
    let (part, _) = whole.part(Part { from_ns: 0, to_ns: 2_000_000_000 }).unwrap();
    let left: BTreeSet<&str> = part.tables.names().collect();
    assert_eq!(names.difference(&left).count(), 0);
}

#[test]
fn whole_slices_with_the_counters_as_they_stood() {
    let whole = parse(TEXT).unwrap();
    // 1.4 s is nearer to the slice that begins at 1 s than to the one at 2 s.
    let (part, from) = whole.part(Part { from_ns: 1_400_000_000, to_ns: 3_000_000_000 }).unwrap();
    assert_eq!(from, 1_000_000_000);
    assert_eq!(
        part.rows::<Thread>().iter().map(|t| (t.t_ns, t.cpu_ns)).collect::<Vec<_>>(),
        [(1_000_000_000, 2), (2_000_000_000, 4)]
    );
    assert_eq!(part.meta.length_ns, 2_000_000_000);
    assert_eq!(part.rows::<Sample>().iter().map(|s| (s.t_ns, s.pid)).collect::<Vec<_>>(), [(1_500_000_000, 2)]);
    let values: Vec<(u64, f64)> = part.rows::<Counter>().iter().map(|c| (c.t_ns, c.value)).collect();
    assert_eq!(values, [(0, 12.0), (2_000_000_000, 15.0)]);
    assert_eq!(part.rows::<Call>()[0].count, 2);
    assert_eq!(part.rows::<Wait>().iter().map(|w| (w.t_ns, w.total_ns)).collect::<Vec<_>>(), [(2_000_000_000, 7)]);
    assert_eq!(part.rows::<Neighbour>().iter().map(|n| n.samples).sum::<u64>(), 1);
    let wakeups: Vec<_> = part.rows::<Wakeup>().iter().map(|w| (w.t_ns, w.since_ns, w.wait_ns, w.blocked_ns)).collect();
    assert_eq!(wakeups, [(500_000_000, 0, 500_000_000, 400_000_000)], "of a wait, what lies in the part");
    assert_eq!(part.rows::<Loss>().len(), 1);
    assert_eq!(part.rows::<Cost>().iter().map(|c| c.cpu_ns).collect::<Vec<_>>(), [7], "not what came afterwards");
    assert!(!part.tables.has::<Connection>(), "what was not recorded is not there either");
}

#[test]
fn a_part_beyond_the_end_is_refused() {
    let whole = parse(TEXT).unwrap();
    let refused = whole.part(Part { from_ns: 9_000_000_000, to_ns: 12_000_000_000 }).err().unwrap();
    assert!(refused.0.contains("9.0 s and 12.0 s") && refused.0.contains("4.0 s long"), "{}", refused.0);
}

/// Everything of it, as text.
fn told(recording: &Recording) -> String {
    struct Told<'r>(&'r Recording, String);
    impl tables::Visit for Told<'_> {
        fn table<T: Table + Send + Sync>(&mut self) -> Result<()> {
            let rows = serde_json::to_string(self.0.rows::<T>())?;
            self.1 += &format!("{} {} {rows}\n", T::NAME, self.0.tables.has::<T>());
            Ok(())
        }
    }
    let mut told = Told(recording, String::new());
    tables::each(&mut told).unwrap();
    told.1
}

#[test]
fn a_part_of_what_is_on_disk_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let whole = parse(&format!("{TEXT}\nprocess pid=7 started_ns=35e8\nprocess pid=1\nstack id=1 frames=[1]")).unwrap();
    whole.save(&dir.path().join("r")).unwrap();
    for (from_ns, to_ns) in [(1_400_000_000, 3_000_000_000), (0, 9_000_000_000), (3_000_000_000, 4_000_000_000)] {
        let part = Part { from_ns, to_ns };
        let (memory, disk) = (whole.part(part).unwrap(), open_part(&dir.path().join("r"), part).unwrap());
        assert_eq!((told(&memory.0), memory.1), (told(&disk.0), disk.1));
    }
    let later = whole.part(Part { from_ns: 0, to_ns: 2_000_000_000 }).unwrap().0;
    assert_eq!(later.rows::<Process>().iter().map(|p| p.pid).collect::<Vec<_>>(), [1], "7 was born later");
    let refused = open_part(&dir.path().join("r"), Part { from_ns: 9_000_000_000, to_ns: u64::MAX }).err().unwrap();
    assert!(refused.to_string().contains("4.0 s long"), "{refused}");
}
