// SPDX-License-Identifier: Apache-2.0
//! Proxies before nginx: HAProxy's threads, squid's one event loop, Varnish's pools of threads with a cache.

use anyhow::Result;

use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by_port, configure, folder};

/// HAProxy.
pub static HAPROXY: Animal = Animal {
    name: "haproxy",
    about: "HAProxy with two threads before nginx",
    needs: &["haproxy"],
    builds: &[],
    stage: |cell, _| {
        super::web::pages(cell)?;
        let conf = configure(cell, "haproxy.cfg", include_str!("../../../zoo/haproxy/haproxy.cfg"))?;
        cell.start(Program::installed("haproxy").args(["-db", "-f"]).args([conf]))?;
        cell.wait_for_port(PORT)?;
        by_port(Visitors::web("/index.html"))
    },
};

/// squid.
pub static SQUID: Animal =
    Animal { name: "squid", about: "squid before nginx, nothing cached", needs: &["squid"], builds: &[], stage: squid };

/// Varnish.
pub static VARNISH: Animal = Animal {
    name: "varnish",
    about: "Varnish before nginx, all from its cache",
    needs: &["varnishd"],
    builds: &[],
    stage: varnish,
};

fn squid(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    super::web::pages(cell)?;
    folder(cell, "squid", Some("proxy"))?;
    let conf = configure(cell, "squid.conf", include_str!("../../../zoo/squid/squid.conf"))?;
    cell.start(Program::installed("squid").args(["-N", "-f"]).args([conf]))?;
    cell.wait_for_port(PORT)?;
    by_port(Visitors::web("/index.html"))
}

fn varnish(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    super::web::pages(cell)?;
    let (conf, state) =
        (configure(cell, "zoo.vcl", include_str!("../../../zoo/varnish/zoo.vcl"))?, folder(cell, "v", None)?);
    let varnish = Program::installed("varnishd").args(["-F", "-j", "none", "-a", "127.0.0.1:8080", "-s", "malloc,64m"]);
    cell.start(varnish.args(["-n", &state, "-f"]).args([conf]))?;
    cell.wait_for_port(PORT)?;
    by_port(Visitors::web("/index.html"))
}
