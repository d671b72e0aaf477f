// SPDX-License-Identifier: Apache-2.0
//! Threads of which clients ended waits: they take requests. One that nobody but a peer or a timer wakes does something else.

use std::collections::HashSet;

use recording::tables::Wakeup;

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::walk::clients::Clients;

/// Their ids.
pub struct WokenByClients(pub HashSet<u32>);

impl Fact for WokenByClients {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let clients = case.fact::<Clients>()?;
        let rows = case.recording.rows::<Wakeup>().iter().filter(|row| clients.ended(case, row));
        Ok(Self(rows.map(|row| row.tid).collect()))
    }
}
