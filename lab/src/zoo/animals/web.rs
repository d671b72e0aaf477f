// SPDX-License-Identifier: Apache-2.0
//! Web servers with an event loop a process: nginx, which is also what proxies of the zoo ask, and lighttpd.

use std::fs;

use anyhow::{Context, Result};

use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::zoo::animal::{Animal, BACK, PORT, Staged, Visitors, by_port, configure, folder};

/// nginx with its log.
pub static NGINX: Animal = Animal {
    name: "nginx",
    about: "nginx, two workers, a small page, with an access log",
    needs: &[],
    builds: &[],
    stage: nginx,
};

/// lighttpd.
pub static LIGHTTPD: Animal =
    Animal { name: "lighttpd", about: "lighttpd, a small page", needs: &["lighttpd"], builds: &[], stage: lighttpd };

fn nginx(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    start_nginx(cell, PORT, "", "service")?;
    by_port(Visitors::web("/index.html"))
}

/// nginx behind a proxy.
pub fn pages(cell: &mut Cell) -> Result<()> {
    start_nginx(cell, BACK, "", "pages")
}

/// The same behind TLS, with the certificate that is in the cell's folder.
pub fn pages_behind_tls(cell: &mut Cell) -> Result<()> {
    start_nginx(cell, BACK, " ssl; ssl_certificate @DIR@/cert.pem; ssl_certificate_key @DIR@/key.pem", "pages")
}

fn start_nginx(cell: &mut Cell, port: u16, more: &str, group: &str) -> Result<()> {
    write_page(cell)?;
    let conf = include_str!("../../../zoo/nginx/nginx.conf").replace("@PORT@", &format!("{port}{more}"));
    let conf = configure(cell, "nginx.conf", &conf)?;
    cell.start(Program::installed("nginx").args(["-p", ".", "-c"]).args([conf]).in_group(group))?;
    cell.wait_for_port(port)
}

/// A small page in a folder that every server may read.
pub fn write_page(cell: &mut Cell) -> Result<()> {
    let page = folder(cell, "pages", None)? + "/index.html";
    fs::write(page, "<p>A small page.</p>\n".repeat(50)).context("failed to write a page")
}

fn lighttpd(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    write_page(cell)?;
    let conf = configure(cell, "lighttpd.conf", include_str!("../../../zoo/lighttpd/lighttpd.conf"))?;
    cell.start(Program::installed("lighttpd").args(["-D", "-f"]).args([conf]))?;
    cell.wait_for_port(PORT)?;
    by_port(Visitors::web("/index.html"))
}
