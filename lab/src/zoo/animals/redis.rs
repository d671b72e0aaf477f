// SPDX-License-Identifier: Apache-2.0
//! Redis: one thread of commands, subscribers who wait for news, and a socket in the file system.

use anyhow::Result;

use crate::bench::client::Address;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Aim;
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by, by_port};

/// Redis and its lists.
pub static REDIS: Animal = Animal {
    name: "redis",
    about: "Redis, lists of 100 elements read",
    needs: &[],
    builds: &[],
    stage: |cell, _| {
        start(cell, &["--port", "8080", "--bind", "127.0.0.1"])?;
        cell.wait_for_port(PORT)?;
        let to = Address::Tcp(PORT);
        by_port(Visitors::plain(to, "LRANGE list 0 -1\r\n").greeting([fill()]))
    },
};

/// Redis with subscribers.
pub static PUBSUB: Animal = Animal {
    name: "redis-pubsub",
    about: "Redis with four subscribers of a channel, to which visitors publish",
    needs: &[],
    builds: &[],
    stage: pubsub,
};

/// Redis on a Unix socket.
pub static UNIX: Animal = Animal {
    name: "redis-unix",
    about: "Redis on a Unix socket alone, lists of 100 elements read",
    needs: &[],
    builds: &[],
    stage: unix,
};

fn start(cell: &mut Cell, args: &[&str]) -> Result<u32> {
    let redis = Program::installed("redis-server").args(args.iter().copied());
    cell.start(redis.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]))
}

/// Makes the list, once.
fn fill() -> Vec<u8> {
    let script =
        "if redis.call('EXISTS','list')==0 then for i=1,100 do redis.call('RPUSH','list','element '..i) end end";
    format!("EVAL \"{script}\" 0\r\n").into_bytes()
}

fn pubsub(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    start(cell, &["--port", "8080", "--bind", "127.0.0.1"])?;
    cell.wait_for_port(PORT)?;
    for number in 0..4 {
        // What they hear is not for the log.
        let script = "exec redis-cli -p 8080 SUBSCRIBE news >/dev/null";
        let subscriber = Program::installed("sh").named(&format!("subscriber-{number}")).args(["-c", script]);
        cell.start(subscriber.in_group("load"))?;
    }
    let cli = Program::installed("redis-cli").args(["-p", "8080", "PUBSUB", "NUMSUB", "news"]);
    let stop = cell.stop.clone();
    stop.poll(std::time::Duration::from_secs(10), || {
        let said = crate::zoo::animal::prepare(cell, cli.clone())?;
        Ok(said.trim().ends_with('4'))
    })?;
    by_port(Visitors::plain(Address::Tcp(PORT), "PUBLISH news something-happened\r\n"))
}

fn unix(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    let path = cell.dir().join("redis.sock");
    let pid = start(cell, &["--port", "0", "--unixsocket", &path.display().to_string()])?;
    let stop = cell.stop.clone();
    stop.poll(std::time::Duration::from_secs(10), || Ok(path.exists()))?;
    by(Aim::Pid(pid), Visitors::plain(Address::Unix(path), "LRANGE list 0 -1\r\n").greeting([fill()]))
}
