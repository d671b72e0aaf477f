// SPDX-License-Identifier: Apache-2.0
//! sshd as a tunnel: one process of it decrypts all that visitors ask of a Redis behind it.

use std::fs;

use anyhow::{Context, Result};

use crate::bench::client::Address;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Aim;
use crate::zoo::animal::{Animal, BACK, PORT, Staged, Visitors, by, configure, prepare};

/// Where sshd listens.
const SSH: u16 = 8022;

/// The tunnel.
pub static TUNNEL: Animal =
    Animal { name: "sshd", about: "sshd, a tunnel to Redis", needs: &["/usr/sbin/sshd", "ssh"], builds: &[], stage };

fn stage(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    let redis = Program::installed("redis-server").args(["--port", &BACK.to_string(), "--bind", "127.0.0.1"]);
    cell.start(redis.args(["--save", "", "--daemonize", "no"]).in_group("redis"))?;
    for key in ["host", "visitor"] {
        prepare(cell, Program::installed("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", key]))?;
    }
    let conf = configure(cell, "sshd.conf", include_str!("../../../zoo/sshd/sshd.conf"))?;
    // It insists on this folder, which the system makes when it starts the service.
    fs::create_dir_all("/run/sshd").context("failed to make `/run/sshd`")?;
    let sshd = cell.start(Program::installed("/usr/sbin/sshd").named("sshd").args(["-D", "-e", "-f"]).args([conf]))?;
    cell.wait_for_port(SSH)?;
    let forward = format!("127.0.0.1:{PORT}:127.0.0.1:{BACK}");
    let ssh = Program::installed("ssh").args(["-N", "-i", "visitor", "-p", &SSH.to_string(), "-L", &forward]);
    let ssh = ssh.args(["-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]);
    cell.start(ssh.args(["root@127.0.0.1"]).in_group("load"))?;
    cell.wait_for_port(PORT)?;
    by(Aim::Pid(sshd), Visitors::plain(Address::Tcp(PORT), "PING\r\n").over(8))
}
