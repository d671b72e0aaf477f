// SPDX-License-Identifier: Apache-2.0
//! Processes of the target that a signal ended: a worker that crashes takes its clients' requests with it, and its parent starts
//! another one, so that all looks well.

use std::collections::BTreeMap;

use anyhow::Result;
use recording::Tables;
use recording::tables::Death;

use crate::collector::{Collector, Kind, Shared, SliceEnd};
use crate::probes::ledger::ThreadRow;

/// It reads what the ledger has seen.
pub const KIND: Kind = Kind {
    gap: "death",
    facility: None,
    tables: |tables| tables.extend::<Death>([]),
    start: |_, _| Ok(Box::new(Deaths)),
};

struct Deaths;

impl Collector for Deaths {
    fn slice(&mut self, _: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        tables.extend(deaths(end.t_ns, &end.ended));
        Ok(())
    }
}

/// By name and signal. The main thread of a process tells for all of it.
fn deaths(t_ns: u64, ended: &[ThreadRow]) -> Vec<Death> {
    let mut deaths: BTreeMap<(&str, u32), Death> = BTreeMap::new();
    for row in ended.iter().filter(|row| row.tid == row.tgid && row.signal > 0) {
        let death = deaths.entry((&row.comm, row.signal)).or_insert_with(|| Death {
            t_ns,
            pid: row.tgid,
            ppid: row.ppid,
            comm: row.comm.clone(),
            signal: row.signal,
            count: 0,
        });
        death.count += 1;
    }
    deaths.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_and_signal() {
        let row = |tgid, tid, signal| ThreadRow { tgid, tid, ppid: 1, comm: "w".into(), signal, ..ThreadRow::default() };
        let ended = [row(7, 7, 11), row(7, 8, 11), row(9, 9, 11), row(10, 10, 0), row(11, 11, 6)];
        let told: Vec<_> = deaths(5, &ended).iter().map(|d| (d.pid, d.signal, d.count)).collect();
        assert_eq!(told, [(11, 6, 1), (7, 11, 2)]);
    }
}
