// SPDX-License-Identifier: Apache-2.0
//! Mail: Exim, which forks for each connection, and Dovecot, whose services are processes that talk to each other.

use anyhow::Result;

use crate::bench::client::Address;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Aim;
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by, by_port, configure, folder};

/// Exim.
pub static EXIM: Animal = Animal {
    name: "exim",
    about: "Exim, a process for each connection: sender and recipient checked",
    needs: &["exim4"],
    builds: &[],
    stage: exim,
};

/// Dovecot.
pub static DOVECOT: Animal = Animal {
    name: "dovecot",
    about: "Dovecot, IMAP: how many messages there are",
    needs: &["dovecot"],
    builds: &[],
    stage: dovecot,
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

fn dovecot(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    folder(cell, "dovecot", None)?;
    folder(cell, "mail", Some("nobody"))?;
    let conf = configure(cell, "dovecot.conf", include_str!("../../../zoo/dovecot/dovecot.conf"))?;
    let pid = cell.start(Program::installed("dovecot").args(["-F", "-c"]).args([conf]))?;
    cell.wait_for_port(PORT)?;
    let hello = [Vec::new(), b"a LOGIN ape secret\r\n".to_vec(), b"b SELECT INBOX\r\n".to_vec()];
    let visitors = Visitors::plain(Address::Tcp(PORT), "c STATUS INBOX (MESSAGES UNSEEN)\r\n").greeting(hello).over(8);
    by(Aim::Pid(pid), visitors)
}
