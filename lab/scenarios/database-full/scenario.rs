// SPDX-License-Identifier: Apache-2.0
//! A MariaDB whose connections are taken by a program that never closes any: whoever connects after that is told so and sent away,
//! and the queries of the others are answered as quickly as ever. The twin has room for all.

use std::time::Duration;

use anyhow::Result;

use super::three_tiers::start_database;
use super::{LOAD_CPU, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const DATABASE: u16 = 19522;
const SHOP: u16 = 19523;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "database-full",
    about: "MariaDB, of which all connections are taken, and who comes later is told so",
    expected: Expected {
        says: Some("closed by the service before it had answered anything"),
        ..Expected::cause(&["not-determined"])
    },
    twin: Some(NEUTRAL),
    builds: &[
        Build::Go("lab", "./scenarios/three-tiers", "shop"),
        Build::Script("lab/scenarios/database-full/clients.sh", "clients.sh"),
        WEBLOAD,
    ],
    folders: &["lab/webload", "lab/scenarios/three-tiers"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("clients.sh")?;
    let most = if side == Side::Fault { 16 } else { 1_000 };
    let settings = [&*format!("--max-connections={most}"), "--connect-timeout=600", "--max-connect-errors=1000000"];
    start_database(cell, (DATABASE, 1_000), true, &settings)?;
    let source = format!("root@tcp(127.0.0.1:{DATABASE})/shop");
    let shop = Program::built("shop").args(["-listen", &format!("127.0.0.1:{SHOP}"), "-database", &source]);
    cell.start(shop.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(SHOP)?;
    let (rate, pause) = (cell.draw.number("rate", 50, 20..=100), cell.draw.number("pause_ms", 50, 20..=100));
    steady_load(cell, SHOP, "/orders", rate, 2)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    let clients = Program::installed("bash").named("clients");
    let clients = clients.args(["clients.sh", &DATABASE.to_string(), "20", &format!("0.{pause:03}")]);
    cell.start(clients.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Port(DATABASE))
}
