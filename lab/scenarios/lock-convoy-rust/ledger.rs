// SPDX-License-Identifier: Apache-2.0
//! Books each request in a ledger that one mutex guards, and asks an auditor: while it holds the mutex, or before it.
//! Arguments: port, `locked` or `unlocked`.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, thread};

struct Ledger {
    balances: Mutex<Vec<u64>>,
    audit_locked: bool,
}

/// The auditor takes its time.
fn audit() {
    thread::sleep(Duration::from_millis(2));
}

impl Ledger {
    fn book(&self, account: usize) -> u64 {
        if !self.audit_locked {
            audit();
        }
        let mut balances = self.balances.lock().expect("nobody panics with the mutex held");
        let account = account % balances.len();
        balances[account] += 1;
        if self.audit_locked {
            audit();
        }
        balances[account]
    }
}

fn serve(connection: &TcpStream, ledger: &Ledger) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut account = usize::from(connection.peer_addr()?.port());
    for line in BufReader::new(connection).lines() {
        if !line?.is_empty() {
            continue; // the request ends with an empty line
        }
        account += 1;
        let body = ledger.book(account).to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        { connection }.write_all(answer.as_bytes())?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    let ledger = Arc::new(Ledger { balances: Mutex::new(vec![0; 4096]), audit_locked: args[2] == "locked" });
    for connection in TcpListener::bind(format!("127.0.0.1:{}", args[1]))?.incoming() {
        let (connection, ledger) = (connection?, Arc::clone(&ledger));
        thread::Builder::new().name("client".into()).spawn(move || serve(&connection, &ledger))?;
    }
    Ok(())
}
