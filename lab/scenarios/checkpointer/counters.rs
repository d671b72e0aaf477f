// SPDX-License-Identifier: Apache-2.0
//! Counts requests in memory, and writes all counters to a file now and then, in a thread of its own that no request waits
//! for. Arguments: port, megabytes of counters, pause between two checkpoints in ms.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{env, thread};

fn checkpoint(counters: &[AtomicU64], pause: Duration) -> io::Result<()> {
    let mut file = File::create("checkpoint")?;
    loop {
        let image: Vec<u8> = counters.iter().flat_map(|counter| counter.load(Relaxed).to_le_bytes()).collect();
        file.seek(SeekFrom::Start(0))?;
        for part in image.chunks(64 << 10) {
            file.write_all(part)?;
            file.sync_data()?;
        }
        thread::sleep(pause);
    }
}

fn serve(connection: &TcpStream, counters: &[AtomicU64]) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut at = usize::from(connection.peer_addr()?.port());
    for line in BufReader::new(connection).lines() {
        if !line?.is_empty() {
            continue; // the request ends with an empty line
        }
        at = (at * 7919 + 1) % counters.len();
        let body = (counters[at].fetch_add(1, Relaxed) + 1).to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        { connection }.write_all(answer.as_bytes())?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let args: Vec<u64> = env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let counters: Arc<Vec<AtomicU64>> = Arc::new((0..args[1] << 17).map(|_| AtomicU64::new(0)).collect());
    let (own, pause) = (Arc::clone(&counters), Duration::from_millis(args[2]));
    thread::Builder::new().name("checkpointer".into()).spawn(move || checkpoint(&own, pause))?;
    for connection in TcpListener::bind(format!("127.0.0.1:{}", args[0]))?.incoming() {
        let (connection, counters) = (connection?, Arc::clone(&counters));
        thread::Builder::new().name("client".into()).spawn(move || serve(&connection, &counters))?;
    }
    Ok(())
}
