// SPDX-License-Identifier: Apache-2.0
//! Mail: Exim, which forks for each connection.

use anyhow::Result;

use crate::bench::client::Address;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by_port, configure, folder};

/// Exim.
pub static EXIM: Animal = Animal {
    name: "exim",
    about: "Exim, a process for each connection: sender and recipient checked",
    needs: &["exim4"],
    builds: &[],
    stage: exim,
};

fn exim(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    folder(cell, "exim", Some("Debian-exim"))?;
    let conf = configure(cell, "exim.conf", include_str!("../../../zoo/exim/exim.conf"))?;
    let exim = Program::installed("exim4").args(["-bdf", "-oX", "127.0.0.1.8080", "-C"]).args([conf]);
    cell.start(exim)?;
    cell.wait_for_port(PORT)?;
    let request = "MAIL FROM:<ape@zoo.test>\r\nRCPT TO:<bear@zoo.test>\r\nRSET\r\n";
    let hello = [Vec::new(), b"EHLO visitor\r\n".to_vec()];
    by_port(Visitors::plain(Address::Tcp(PORT), request).greeting(hello))
}
