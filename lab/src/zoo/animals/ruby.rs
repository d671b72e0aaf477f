// SPDX-License-Identifier: Apache-2.0
//! Puma: Ruby's threads under one lock, behind a reactor.

use anyhow::Result;

use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by_port};

/// Puma.
pub static PUMA: Animal = Animal {
    name: "puma",
    about: "Puma with five threads, JSON of twenty birds",
    needs: &["puma"],
    builds: &[],
    stage,
};

fn stage(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    cell.write("birds.ru", include_str!("../../../zoo/ruby/birds.ru"))?;
    let puma = Program::installed("puma").args(["-q", "-t", "5:5", "-b", "tcp://127.0.0.1:8080", "-e", "production"]);
    cell.start(puma.args(["birds.ru"]))?;
    cell.wait_for_port(PORT)?;
    // A thread has one connection until its client closes it: of more than five, as many stand in the accept queue.
    by_port(Visitors::web("/").over(5))
}
