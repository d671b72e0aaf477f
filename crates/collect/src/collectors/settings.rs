// SPDX-License-Identifier: Apache-2.0
//! The inventory, as a collector: it is read once.

use std::mem::take;

use anyhow::Result;
use recording::Tables;
use recording::tables::Setting;

use crate::collector::{Collector, Kind, Shared, SliceEnd};
use crate::inventory;

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "setting",
    facility: None,
    tables: |_| (),
    start: |start, _| Ok(Box::new(Settings { host: inventory::host(&start.plan.root, start.began), is_taken: false })),
};

/// What the host is set to, until it is written.
struct Settings {
    host: Vec<Setting>,
    is_taken: bool,
}

impl Collector for Settings {
    fn begin(&mut self, _: &mut Shared<'_>, tables: &mut Tables) -> Result<()> {
        tables.extend(take(&mut self.host));
        Ok(())
    }

    /// Notes how the target is set up, not at the start: a command that was started for the purpose has become itself by now.
    fn slice(&mut self, shared: &mut Shared<'_>, _: &SliceEnd, tables: &mut Tables) -> Result<()> {
        if std::mem::replace(&mut self.is_taken, true) {
            return Ok(());
        }
        let (root, pids) = (&shared.plan.root, &shared.plan.target.pids);
        tables.extend(inventory::processes(root, pids));
        tables.extend(pids.first().map(|main| inventory::sysctls(root, *main)).unwrap_or_default());
        Ok(())
    }
}
