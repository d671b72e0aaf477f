// SPDX-License-Identifier: Apache-2.0
//! Servers behind TLS, each asked by an nginx over a connection for each request, and that nginx itself: visitors speak to it in the
//! clear.

use anyhow::Result;

use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::certificate;
use crate::scenario::Aim;
use crate::zoo::animal::{Animal, BACK, PORT, Visitors, by, by_port, configure};

/// nginx behind TLS.
pub static NGINX: Animal = Animal {
    name: "nginx-tls",
    about: "nginx behind TLS, a whole handshake before each small page",
    needs: &[],
    builds: &[],
    stage: |cell, _| {
        pages(cell, "off")?;
        by(Aim::Port(BACK), Visitors::web("/index.html"))
    },
};

/// Who asks it.
pub static FRONT: Animal = Animal {
    name: "nginx-to-tls",
    about: "nginx before nginx behind TLS, a resumed handshake for each small page",
    needs: &[],
    builds: &[],
    stage: |cell, _| {
        pages(cell, "on")?;
        by_port(Visitors::web("/index.html"))
    },
};

/// Node.js behind TLS.
pub static NODE: Animal = Animal {
    name: "node-tls",
    about: "Node.js behind TLS, a handshake before each JSON of forty dishes",
    needs: &[],
    builds: &[Build::Script("lab/zoo/node/menu.js", "menu.js")],
    stage: |cell, _| {
        certificate::write(cell)?;
        cell.bring("menu.js")?;
        let args = ["menu.js", "1", &BACK.to_string(), "cert.pem", "key.pem"];
        cell.start(Program::installed("node").named("service").args(args))?;
        cell.wait_for_port(BACK)?;
        front(cell, "on")?;
        by(Aim::Port(BACK), Visitors::web("/"))
    },
};

fn pages(cell: &mut Cell, resume: &str) -> Result<()> {
    certificate::write(cell)?;
    super::web::pages_behind_tls(cell)?;
    front(cell, resume)
}

/// Who asks over TLS, and resumes sessions or does not.
fn front(cell: &mut Cell, resume: &str) -> Result<()> {
    let conf = include_str!("../../../zoo/nginx/front.conf").replace("@RESUME@", resume);
    let conf = configure(cell, "front.conf", &conf)?;
    cell.start(Program::installed("nginx").named("front").args(["-p", ".", "-c"]).args([conf]).in_group("front"))?;
    cell.wait_for_port(PORT)
}
