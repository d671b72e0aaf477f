// SPDX-License-Identifier: Apache-2.0
//! A web service on tokio: words counted for whoever asks, and books kept by a timer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

static SERVED: AtomicU64 = AtomicU64::new(0);

#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 8080)).await?;
    tokio::spawn(keep_books());
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream));
    }
}

async fn keep_books() {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        tick.tick().await;
        println!("{} served", SERVED.load(Ordering::Relaxed));
    }
}

async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; 4096];
    while stream.read(&mut request).await? > 0 {
        let body = tokio::spawn(async { count() }).await.unwrap_or_default();
        let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(reply.as_bytes()).await?;
        SERVED.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn count() -> String {
    let mut words = BTreeMap::new();
    for i in 0..60 {
        *words.entry(format!("word {}", i * 7919 % 40)).or_insert(0) += i;
    }
    words.iter().fold(String::new(), |mut text, (word, count)| {
        let _ = writeln!(text, "{word}: {count}");
        text
    })
}
