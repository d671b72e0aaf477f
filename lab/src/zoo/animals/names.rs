// SPDX-License-Identifier: Apache-2.0
//! Servers of names. Two ask another one for every name, because nothing of it may be cached: whose work is to wait for
//! answers from port 53.

use std::time::Duration;

use anyhow::Result;

use crate::bench::client::Address;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Aim;
use crate::zoo::animal::{Animal, Staged, Visitors, by, configure, folder, prepare};

const DNS: u16 = 53;

/// dnsmasq.
pub static DNSMASQ: Animal = Animal {
    name: "dnsmasq",
    about: "dnsmasq, which forwards each question to a server of the zone",
    needs: &["dnsmasq", "named"],
    builds: &[],
    stage: |cell, _| {
        zone(cell, "127.0.0.2", "zone")?;
        let conf = configure(cell, "dnsmasq.conf", include_str!("../../../zoo/bind/dnsmasq.conf"))?;
        let pid = cell.start(Program::installed("dnsmasq").args(["-k", "-C"]).args([conf]))?;
        settle(cell, pid)
    },
};

/// unbound.
pub static UNBOUND: Animal = Animal {
    name: "unbound",
    about: "unbound with two threads, which asks the server of the zone for each question",
    needs: &["unbound", "named"],
    builds: &[],
    stage: |cell, _| {
        zone(cell, "127.0.0.2", "zone")?;
        let conf = configure(cell, "unbound.conf", include_str!("../../../zoo/unbound/unbound.conf"))?;
        let pid = cell.start(Program::installed("unbound").args(["-d", "-c"]).args([conf]))?;
        settle(cell, pid)
    },
};

/// BIND.
pub static BIND: Animal = Animal {
    name: "bind",
    about: "BIND, which has the zone",
    needs: &["named"],
    builds: &[],
    stage: |cell, _: &Paths| {
        let pid = zone(cell, "127.0.0.1", "service")?;
        settle(cell, pid)
    },
};

/// The server that has the zone.
fn zone(cell: &mut Cell, address: &str, group: &str) -> Result<u32> {
    folder(cell, "named", None)?;
    if address != "127.0.0.1" {
        // BIND listens on addresses that an interface has.
        prepare(cell, Program::installed("ip").args(["addr", "add", &format!("{address}/8"), "dev", "lo"]))?;
    }
    cell.write("zoo.zone", include_str!("../../../zoo/bind/zoo.zone"))?;
    let conf = include_str!("../../../zoo/bind/named.conf").replace("@ADDRESS@", address);
    let conf = configure(cell, "named.conf", &conf)?;
    let pid = cell.start(Program::installed("named").args(["-f", "-c"]).args([conf]).in_group(group))?;
    cell.wait_for(address.parse()?, DNS)?;
    Ok(pid)
}

fn settle(cell: &mut Cell, pid: u32) -> Result<Staged> {
    cell.wait_for_port(DNS)?;
    cell.stop.sleep(Duration::from_millis(500))?;
    by(Aim::Pid(pid), Visitors::plain(Address::Udp(DNS), question()))
}

/// The address of `ape-0001.zoo.test`, or another ape's: who asks for a name that is being asked for waits for that answer.
fn question() -> Vec<u8> {
    const RECURSION_DESIRED: u8 = 1;
    let head = [0x12, 0x34, RECURSION_DESIRED, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    [&head[..], b"\x08ape-~~~~\x03zoo\x04test\0", &[0, 1, 0, 1]].concat()
}
