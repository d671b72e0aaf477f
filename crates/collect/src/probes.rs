// SPDX-License-Identifier: Apache-2.0
//! Probes: programs in the kernel that run during a capture only. Each is a pair, `x.bpf.c` with the
//! hooks and `x.rs` with what user space does with them; none knows what its numbers mean.
//!
//! Links are never pinned, so the kernel detaches everything when this process ends, however it ends.

#![allow(unsafe_code)] // reading C structs out of maps and rings; every use says why it is sound

pub mod calls;
pub mod connections;
pub mod exchanges;
pub mod kernel_map;
pub(crate) mod kernel_types;
pub mod ledger;
pub mod names;
pub mod perf_event;
pub mod profile;
pub mod refusal;
pub mod run_stats;
pub mod shapes;
mod user_stack;
pub mod wakeups;

use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use anyhow::Result;
use recording::role;
use recording::tables::Gap;

/// What all probes have in common that hang on hooks for the whole of a capture: how it accounts for them and lets go of
/// them.
pub trait Probe {
    /// Its programs that run often, for their run statistics.
    fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)>;

    /// How often each of them has run.
    ///
    /// # Errors
    /// A map cannot be read.
    fn runs(&self) -> Result<Vec<(&'static str, u64)>>;

    /// What was kept and lost.
    ///
    /// # Errors
    /// A map cannot be read.
    fn losses(&self) -> Result<Vec<Kept>>;

    /// What it could not see, but for losses.
    ///
    /// # Errors
    /// A map cannot be read.
    fn gaps(&self) -> Result<Vec<Gap>> {
        Ok(Vec::new())
    }

    /// Kernel memory of its own maps, bytes.
    fn map_bytes(&self) -> u64;

    /// Takes its hooks off; maps and rings stay readable.
    fn detach(&mut self);
}

/// What was kept and lost of one kind of events, since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The events, for people.
    pub what: &'static str,
    /// Those that were kept.
    pub kept: u64,
    /// Those that found no room, or that the kernel skipped.
    pub lost: u64,
}

impl Kept {
    /// Of so many events in all, so many were lost.
    pub fn of(what: &'static str, all: u64, lost: u64) -> Self {
        Self { what, kept: all.saturating_sub(lost), lost }
    }
}

/// The other end of a connection, as programs tell it: of IPv4 the first four bytes are the address.
pub(crate) fn address(family: u16, ip: [u8; 16], port: u16) -> SocketAddr {
    let [a, b, c, d, ..] = ip;
    let ip = match i32::from(family) {
        libc::AF_INET => IpAddr::from([a, b, c, d]),
        _ => IpAddr::from(ip).to_canonical(),
    };
    SocketAddr::new(ip, port)
}

/// The other end's address as people write it; empty = none.
pub(crate) fn ip_of(family: u16, peer: [u8; 16]) -> String {
    let ip = match i32::from(family) {
        libc::AF_INET | libc::AF_INET6 => address(family, peer, 0).ip(),
        _ => return String::new(),
    };
    if ip.is_unspecified() { String::new() } else { ip.to_string() }
}

/// Whose a group is that a program counts (`bpf/tally.bpf.h`), as tables have it: role, own port, peer.
pub(crate) fn whose(role: u8, family: u16, ip: [u8; 16], port: u16) -> (String, u32, String) {
    const ROLES: [&str; 4] = [role::MADE, role::ACCEPTED, "none", "others"];
    let role = ROLES.get(usize::from(role)).copied().unwrap_or_default();
    match role == role::MADE {
        true => (role.into(), 0, address(family, ip, port).to_string()),
        false => (role.into(), port.into(), String::new()),
    }
}

/// Says to a program (`bpf/listening.bpf.h`) at which more ports somebody listens.
pub(crate) fn mark_listening(listening: &mut [u64; 1024], ports: impl IntoIterator<Item = u16>) {
    for port in ports {
        listening[usize::from(port >> 6)] |= 1 << (port & 63);
    }
}

/// How much of a probe's maps is made: a whole one, or the given part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// As the probe's source says.
    #[default]
    Whole,
    /// One entry for each so many of the source, and one page of a ring at least.
    OneIn(u32),
}

impl Room {
    /// What is left of a bound.
    pub(crate) fn of(self, whole: u32) -> u32 {
        match self {
            Self::Whole => whole,
            Self::OneIn(part) => (whole / part).max(1),
        }
    }

    /// Makes the hash maps and rings of an open probe smaller; must come before it is loaded.
    ///
    /// # Errors
    /// The kernel's library refuses a size.
    pub(crate) fn apply(self, probe: &mut libbpf_rs::OpenObject) -> Result<()> {
        if matches!(self, Self::Whole) {
            return Ok(());
        }
        for mut map in probe.maps_mut() {
            let entries = match map.map_type() {
                libbpf_rs::MapType::Hash => self.of(map.max_entries()),
                libbpf_rs::MapType::RingBuf => self.of(map.max_entries()).max(4096).next_power_of_two(),
                _ => continue,
            };
            map.set_max_entries(entries)?;
        }
        Ok(())
    }
}

/// Reads an iterator to its end. The kernel breaks a walk off after a million threads or descriptors about none of which there
/// was anything to say (EAGAIN), and goes on from there when it is asked again: so often at most.
pub(crate) fn read_all(rows: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    const PARTS: u32 = 100;
    for _ in 0..PARTS {
        match rows.read_to_end(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            done => return done.map(drop),
        }
    }
    Err(ErrorKind::WouldBlock.into())
}

/// Text of a kernel command name, an array of C characters: up to the first NUL.
pub(crate) fn comm_of_chars(chars: &[i8]) -> String {
    let name: Vec<u8> = chars.iter().map(|&c| c.cast_unsigned()).take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks off so many times, and then has a byte.
    struct Broken(u32);

    impl Read for Broken {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let left = self.0;
            self.0 = left.saturating_sub(1);
            match left {
                1 => Ok(bytes.first_mut().map(|first| *first = 7).map_or(0, |()| 1)),
                0 => Ok(0),
                _ => Err(ErrorKind::WouldBlock.into()),
            }
        }
    }

    #[test]
    fn a_walk_that_is_broken_off_goes_on() {
        let mut bytes = vec![1];
        read_all(&mut Broken(9), &mut bytes).unwrap();
        assert_eq!(bytes, [1, 7]);
        assert_eq!(read_all(&mut Broken(1_000), &mut bytes).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
