// SPDX-License-Identifier: Apache-2.0
//! Draws a tile for each request. Threads of a pool fetch what it shows, and the thread that has the request waits for them; or there
//! is one brush, handed on through a condition variable, and each thread fetches with it in its hand.
//! Arguments: port, `pool` or `brush`, milliseconds for a fetch.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use std::{env, thread};

const WORKERS: usize = 24;

struct Tiles {
    jobs: Mutex<VecDeque<Sender<u64>>>,
    some: Condvar,
    brush: Mutex<bool>,
    free: Condvar,
    pool: bool,
    fetch: Duration,
}

impl Tiles {
    /// Whoever keeps what a tile shows takes its time.
    fn fetch(&self) -> u64 {
        thread::sleep(self.fetch);
        42
    }

    fn work(&self) {
        loop {
            let jobs = self.jobs.lock().expect("nobody panics with it held");
            let mut jobs = self.some.wait_while(jobs, |jobs| jobs.is_empty()).expect("likewise");
            let job = jobs.pop_front();
            drop(jobs);
            // Who asked may be gone.
            job.map(|job| job.send(self.fetch()));
        }
    }

    fn draw(&self) -> u64 {
        if self.pool {
            let (job, done) = channel();
            self.jobs.lock().expect("nobody panics with it held").push_back(job);
            self.some.notify_one();
            return done.recv().unwrap_or_default();
        }
        let taken = self.brush.lock().expect("likewise");
        *self.free.wait_while(taken, |taken| *taken).expect("likewise") = true;
        let tile = self.fetch();
        *self.brush.lock().expect("likewise") = false;
        self.free.notify_one();
        tile
    }
}

fn serve(connection: &TcpStream, tiles: &Tiles) -> io::Result<()> {
    connection.set_nodelay(true)?;
    for line in BufReader::new(connection).lines() {
        if !line?.is_empty() {
            continue; // the request ends with an empty line
        }
        let body = tiles.draw().to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        { connection }.write_all(answer.as_bytes())?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    let fetch = Duration::from_millis(args[3].parse().expect("milliseconds"));
    let (jobs, brush) = (Mutex::default(), Mutex::default());
    let (some, free) = (Condvar::new(), Condvar::new());
    let tiles = Arc::new(Tiles { jobs, some, brush, free, pool: args[2] == "pool", fetch });
    for _ in 0..WORKERS {
        let tiles = Arc::clone(&tiles);
        thread::spawn(move || tiles.work());
    }
    for connection in TcpListener::bind(format!("127.0.0.1:{}", args[1]))?.incoming() {
        let (connection, tiles) = (connection?, Arc::clone(&tiles));
        thread::spawn(move || serve(&connection, &tiles));
    }
    Ok(())
}
