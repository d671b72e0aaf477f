// SPDX-License-Identifier: Apache-2.0
//! Books each request in a ledger that one mutex guards, and asks an auditor: while it holds the mutex, or before it. Handlers are tasks
//! of tokio, and both block the worker that runs them.
//! Arguments: port, workers, `locked` or `unlocked`.

use std::env;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

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

async fn serve(mut stream: TcpStream, ledger: Arc<Ledger>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut account = usize::from(stream.peer_addr()?.port());
    let mut request = [0; 4096];
    while stream.read(&mut request).await? > 0 {
        account += 1;
        let body = ledger.book(account).to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

async fn listen(port: &str, ledger: Arc<Ledger>) -> io::Result<()> {
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream, Arc::clone(&ledger)));
    }
}

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    let workers = args[2].parse().expect("a number of workers");
    let ledger = Arc::new(Ledger { balances: Mutex::new(vec![0; 4096]), audit_locked: args[3] == "locked" });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_io().build()?;
    runtime.block_on(listen(&args[1], ledger))
}
