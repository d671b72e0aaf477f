// SPDX-License-Identifier: Apache-2.0
//! memcached: a few threads, each with an event loop.

use anyhow::Result;

use crate::bench::client::Address;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by_port};

/// memcached.
pub static MEMCACHED: Animal = Animal {
    name: "memcached",
    about: "memcached with four threads, values of 100 bytes",
    needs: &["memcached"],
    builds: &[],
    stage,
};

fn stage(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    let memcached = Program::installed("memcached").args(["-u", "root", "-l", "127.0.0.1", "-p", "8080", "-t", "4"]);
    cell.start(memcached)?;
    cell.wait_for_port(PORT)?;
    let set = format!("set key 0 0 100\r\n{}\r\n", "x".repeat(100));
    by_port(Visitors::plain(Address::Tcp(PORT), "get key\r\n").greeting([set.into_bytes()]))
}
