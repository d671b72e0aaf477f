// SPDX-License-Identifier: Apache-2.0
//! Services of Go's net/http, one binary: JSON, with little to do as well, as a proxy, before a store that takes a
//! millisecond, and with long polls beside health checks.

use anyhow::Result;

use crate::bench::client::Address;
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::zoo::animal::{Animal, BACK, PORT, Staged, Visitors, by_port};
use crate::zoo::visitors;

const BUILDS: &[Build] = &[Build::Go("lab", "./zoo/go", "gopher")];

/// JSON.
pub static JSON: Animal = Animal {
    name: "go-json",
    about: "Go net/http, JSON in and out",
    needs: &[],
    builds: BUILDS,
    stage: |cell, _| {
        start(cell, "json")?;
        by_port(orders())
    },
};

/// The same with a hundredth of the visitors.
pub static QUIET: Animal = Animal {
    name: "go-quiet",
    about: "Go net/http, JSON in and out, at most 800 requests a second",
    needs: &[],
    builds: BUILDS,
    stage: |cell, _| {
        start(cell, "json")?;
        by_port(orders().at_most(800.0))
    },
};

/// A proxy.
pub static PROXY: Animal = Animal {
    name: "go-proxy",
    about: "Go's reverse proxy before nginx",
    needs: &[],
    builds: BUILDS,
    stage: |cell, _| {
        super::web::pages(cell)?;
        start(cell, "proxy")?;
        by_port(Visitors::web("/index.html"))
    },
};

/// A store that takes a millisecond.
pub static STORE: Animal = Animal {
    name: "go-store",
    about: "Go net/http before a store that answers any number at once, each after a millisecond",
    needs: &[],
    builds: &[BUILDS[0], Build::C("lab/threaded/threaded.c", "threaded")],
    stage: store,
};

/// Long polls.
pub static LONG_POLL: Animal = Animal {
    name: "go-long-poll",
    about: "Go net/http with forty long polls that news answer every 7 s, and health checks",
    needs: &[],
    builds: BUILDS,
    stage: |cell, _| {
        start(cell, "news")?;
        visitors::stay(cell, &Visitors::web("/news").over(40))?;
        by_port(Visitors::web("/health").at_most(400.0))
    },
};

fn start(cell: &mut Cell, mode: &str) -> Result<u32> {
    let pid = cell.start(Program::built("gopher").args([mode]))?;
    cell.wait_for_port(PORT)?;
    Ok(pid)
}

fn orders() -> Visitors {
    let items: Vec<String> =
        (0..20).map(|id| format!("{{\"id\":{id},\"name\":\"item {id}\",\"cents\":{}}}", id * 99)).collect();
    let body = format!("[{}]", items.join(","));
    let request = format!("POST /orders HTTP/1.1\r\nHost: zoo\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    Visitors { http: true, ..Visitors::plain(Address::Tcp(PORT), request) }
}

fn store(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    let args = [BACK.to_string(), "unlocked".into(), "1000".into()];
    cell.start(Program::built("threaded").args(args).in_group("store"))?;
    cell.wait_for_port(BACK)?;
    start(cell, "store")?;
    by_port(Visitors::web("/"))
}
