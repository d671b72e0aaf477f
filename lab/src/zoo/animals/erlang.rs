// SPDX-License-Identifier: Apache-2.0
//! Erlang's own web server: a process of its runtime for each connection.

use anyhow::Result;

use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by_port, configure};

/// inets.
pub static INETS: Animal =
    Animal { name: "erlang-inets", about: "Erlang's inets, a small page", needs: &["erl"], builds: &[], stage };

fn stage(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    super::web::write_page(cell)?;
    configure(cell, "inets.conf", include_str!("../../../zoo/erlang/inets.conf"))?;
    let start = "ok = inets:start(), {ok, [Conf]} = file:consult(\"inets.conf\"), {ok, _} = inets:start(httpd, Conf).";
    // It writes head and body apart, which would wait for each other's acknowledgement by default.
    let nodelay = ["-kernel", "inet_default_listen_options", "[{nodelay,true}]"];
    let erl = Program::installed("erl").args(["-noshell", "-noinput"]).args(nodelay);
    cell.start(erl.args(["-eval", start]))?;
    cell.wait_for_port(PORT)?;
    by_port(Visitors::web("/index.html"))
}
