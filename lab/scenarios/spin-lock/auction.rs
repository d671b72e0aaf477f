// SPDX-License-Identifier: Apache-2.0
//! Takes bids: each is checked while a lock is held, before which threads spin, or block.
//! Arguments: port, `spin` or `block`, how many times a bid is hashed.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::{env, thread};

/// As libraries have it: whoever comes first writes the flag, and all others look at it.
#[derive(Default)]
struct SpinLock(AtomicBool);

impl SpinLock {
    #[inline(never)]
    fn lock(&self) {
        while self.0.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while self.0.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        }
    }

    fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

struct Auction {
    spins: Option<SpinLock>,
    blocks: Mutex<()>,
    best: AtomicU64,
    rounds: u64,
}

#[inline(never)]
fn check(bid: u64, rounds: u64) -> u64 {
    (0..rounds).fold(bid, |hash, round| (hash ^ round).wrapping_mul(0x0100_0000_01b3).rotate_left(5))
}

impl Auction {
    fn bid(&self, bid: u64) -> u64 {
        let best = || self.best.fetch_max(check(bid, self.rounds), Ordering::Relaxed);
        let Some(lock) = &self.spins else {
            let _held = self.blocks.lock().expect("nobody panics with the mutex held");
            return best();
        };
        lock.lock();
        let best = best();
        lock.unlock();
        best
    }
}

fn serve(connection: &TcpStream, auction: &Auction) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut bid = u64::from(connection.peer_addr()?.port());
    for line in BufReader::new(connection).lines() {
        if !line?.is_empty() {
            continue; // the request ends with an empty line
        }
        bid += 1;
        let body = auction.bid(bid).to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        { connection }.write_all(answer.as_bytes())?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    let rounds = args[3].parse().expect("a number");
    let (spins, blocks, best) = ((args[2] == "spin").then(SpinLock::default), Mutex::default(), AtomicU64::default());
    let auction = Arc::new(Auction { spins, blocks, best, rounds });
    for connection in TcpListener::bind(format!("127.0.0.1:{}", args[1]))?.incoming() {
        let (connection, auction) = (connection?, Arc::clone(&auction));
        thread::Builder::new().name("bidder".into()).spawn(move || serve(&connection, &auction))?;
    }
    Ok(())
}
