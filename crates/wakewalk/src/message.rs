// SPDX-License-Identifier: Apache-2.0
//! From what was typed about a message to what is sent.

use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use load::{Address, Plan, Protocol, Rate, Request};

use crate::args::message::{Message, Sources};

/// The largest body that is sent.
const LARGEST_BODY: u64 = 16 << 20;

/// A load of this message.
///
/// # Errors
/// What the message needs is missing, or cannot be read.
pub fn plan(message: &Message, to: &Address, rate: Rate, length: Duration) -> Result<Plan> {
    Ok(Plan {
        request: request(message, to)?,
        sources: sources(message, to)?,
        to: to.clone(),
        rate,
        spread: message.arrivals.into(),
        length,
        connections: message.connections as usize,
        new_connections: message.new_connections,
        timeout: message.timeout,
        may_be_silent: false,
    })
}

fn request(message: &Message, to: &Address) -> Result<Request> {
    if to.protocol == Protocol::Tcp {
        let is_http = !message.header.is_empty() || message.method != "GET";
        ensure!(!is_http, "--method and --header are for http://");
        let bytes = tcp_body(message)?;
        let reply = message.reply.context("how long an answer is, is not known: --reply BYTES says it")?;
        return Ok(Request::tcp(bytes, message.think, reply));
    }
    let is_plain = !message.writes.is_empty() || message.reply.is_some() || !message.think.is_zero();
    ensure!(!is_plain, "--writes, --think and --reply are for tcp://");
    Ok(Request::http(to, &message.method, &message.header, &body(message)?, message.new_connections))
}

/// The writes of a message of plain bytes: those of `--body`, or any, in the sizes that are wanted.
fn tcp_body(message: &Message) -> Result<Vec<Vec<u8>>> {
    let body = body(message)?;
    let all: usize = message.writes.iter().sum();
    match (message.writes.as_slice(), body.len()) {
        ([], 0) => bail!("a tcp:// message has no bytes yet: --writes 100 is one of 100, --body FILE has them"),
        ([], _) => Ok(vec![body]),
        (sizes, 0) => Ok(sizes.iter().map(|size| vec![b'x'; *size]).collect()),
        (sizes, length) => {
            ensure!(all == length, "--writes are {all} bytes in all, and --body has {length}");
            let mut rest = body.as_slice();
            let cut = |size: &usize| {
                let (write, behind) = rest.split_at(*size);
                rest = behind;
                write.to_vec()
            };
            Ok(sizes.iter().map(cut).collect())
        }
    }
}

/// The content of `--body`; empty where it is not given.
///
/// # Errors
/// It cannot be read, or is too long.
pub fn body(message: &Message) -> Result<Vec<u8>> {
    let Some(file) = &message.body else { return Ok(Vec::new()) };
    // A pipe holds it once, and `bisect` sends it to two services.
    static READ: OnceLock<Vec<u8>> = OnceLock::new();
    if READ.get().is_none() {
        let _ = READ.set(read(file)?); // it is read by one thread
    }
    Ok(READ.get().cloned().unwrap_or_default())
}

/// All of a file, if that is not too much; devices and pipes do not say how much they have.
fn read(file: &Path) -> Result<Vec<u8>> {
    let why = || format!("failed to read `{}`", file.display());
    let mut content = Vec::new();
    File::open(file).and_then(|open| open.take(LARGEST_BODY + 1).read_to_end(&mut content)).with_context(why)?;
    ensure!(
        content.len() as u64 <= LARGEST_BODY,
        "`{}` is longer than {LARGEST_BODY} bytes, more than --body sends",
        file.display()
    );
    Ok(content)
}

/// Source addresses; those of loopback begin behind the one that everybody uses.
fn sources(message: &Message, to: &Address) -> Result<Vec<IpAddr>> {
    match &message.source_addresses {
        None => Ok(Vec::new()),
        Some(Sources::Named(addresses)) => {
            // A name may have addresses of both kinds: one that can be reached is taken.
            let all = to.all()?;
            let reaches = |from: &&IpAddr| all.iter().any(|to| to.is_ipv4() == from.is_ipv4());
            if let (Some(from), Some(to)) = (addresses.iter().find(|from| !reaches(from)), all.first()) {
                bail!("from {from} nobody can connect to {}: one is an address of IPv4, the other of IPv6", to.ip());
            }
            // The first one decides where they connect to.
            if let Some(other) = addresses.iter().find(|from| from.is_ipv4() != addresses[0].is_ipv4()) {
                bail!("{} and {other} are addresses of IPv4 and of IPv6: name such as are of one kind", addresses[0]);
            }
            Ok(addresses.clone())
        }
        Some(Sources::Loopback(count)) => {
            let to = to.resolve()?.ip();
            if !(to.is_ipv4() && to.is_loopback()) {
                bail!("{to} is not on loopback: name the addresses that connections shall come from");
            }
            let first = u32::from(Ipv4Addr::new(127, 0, 0, 2));
            Ok((0..*count).map(|nth| IpAddr::V4(Ipv4Addr::from(first + nth))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Write as _, pipe};
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_body_has_an_end_whatever_it_is_read_from() {
        let error = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("`/dev/zero` is longer than 16777216 bytes"), "{error}");
        assert!(read(Path::new("/nowhere")).is_err() && read(Path::new("/")).is_err());
        let (reader, mut writer) = pipe().unwrap();
        writer.write_all(b"ping").unwrap();
        drop(writer);
        assert_eq!(read(Path::new(&format!("/proc/self/fd/{}", reader.as_raw_fd()))).unwrap(), b"ping");
    }
}
