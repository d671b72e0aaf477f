// SPDX-License-Identifier: Apache-2.0
//! Brokers of messages, both by MQTT: RabbitMQ's actors, and mosquitto's one event loop with subscribers.

use std::time::Duration;

use anyhow::Result;

use crate::bench::client::Address;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by_port, configure, folder};

/// RabbitMQ.
pub static RABBITMQ: Animal = Animal {
    name: "rabbitmq",
    about: "RabbitMQ, messages published by MQTT, each acknowledged, with two subscribers",
    needs: &["/usr/lib/rabbitmq/bin/rabbitmq-server", "mosquitto_sub"],
    builds: &[],
    stage: rabbitmq,
};

/// mosquitto.
pub static MOSQUITTO: Animal = Animal {
    name: "mosquitto",
    about: "mosquitto, messages published, each acknowledged, with four subscribers",
    needs: &["mosquitto", "mosquitto_sub"],
    builds: &[],
    stage: |cell, _| {
        let conf = configure(cell, "mosquitto.conf", include_str!("../../../zoo/mosquitto/mosquitto.conf"))?;
        cell.start(Program::installed("mosquitto").args(["-c"]).args([conf]))?;
        cell.wait_for_port(PORT)?;
        subscribers(cell, 4)?;
        by_port(publishers())
    },
};

fn rabbitmq(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    let conf = configure(cell, "rabbitmq.conf", include_str!("../../../zoo/rabbitmq/rabbitmq.conf"))?;
    let plugins = cell.write("plugins", "[rabbitmq_mqtt].\n")?;
    let home = folder(cell, "rabbit", None)?;
    let environment = [
        ("HOME", home.clone()),
        ("RABBITMQ_NODENAME", "zoo@localhost".into()),
        ("RABBITMQ_CONFIG_FILE", conf.to_string_lossy().into_owned()),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", plugins.display().to_string()),
        ("RABBITMQ_MNESIA_BASE", format!("{home}/mnesia")),
        ("RABBITMQ_LOG_BASE", format!("{home}/log")),
    ];
    let environment = environment.into_iter().map(|(name, value)| format!("{name}={value}"));
    let server = Program::installed("env").named("rabbitmq").args(environment);
    cell.start(server.args(["/usr/lib/rabbitmq/bin/rabbitmq-server"]))?;
    cell.wait_for_port(PORT)?;
    // The listener of MQTT is there before the rest of it is.
    cell.stop.sleep(Duration::from_secs(3))?;
    subscribers(cell, 2)?;
    by_port(publishers())
}

fn subscribers(cell: &mut Cell, number: usize) -> Result<()> {
    for number in 0..number {
        let script = "exec mosquitto_sub -h 127.0.0.1 -p 8080 -t news >/dev/null";
        let subscriber = Program::installed("sh").named(&format!("subscriber-{number}")).args(["-c", script]);
        cell.start(subscriber.in_group("load"))?;
    }
    cell.stop.sleep(Duration::from_millis(500))
}

/// Each connects without a name of its own, and publishes with a quality of service of one.
fn publishers() -> Visitors {
    const CONNECT: u8 = 0x10;
    const CLEAN_SESSION: u8 = 0x02;
    const PUBLISH_AT_LEAST_ONCE: u8 = 0x32;
    let connect = [&[CONNECT, 12, 0, 4], &b"MQTT"[..], &[4, CLEAN_SESSION, 0, 0, 0, 0]].concat();
    let publish = [&[PUBLISH_AT_LEAST_ONCE, 30, 0, 4], &b"news"[..], &[0, 1], &b"something happened!!!!"[..]].concat();
    Visitors::plain(Address::Tcp(PORT), publish).greeting([connect])
}
