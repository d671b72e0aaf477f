// SPDX-License-Identifier: Apache-2.0
//! `wakewalk load --serve`: an endpoint that does nothing, to stand where a hop stood.

use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use load::{Address, Answer, Endpoint, Protocol, Served};
use report::numbers;

use crate::args::load::Load;
use crate::args::serve::Switch;
use crate::{message, say, stop};

/// How long it is there, where nothing is said.
const LENGTH: Duration = Duration::from_secs(600);
/// The longest delay: who waits longer has gone.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);
/// The usual status.
const OK: u16 = 200;
/// The longest answer of which all bytes are alike.
const LARGEST_ANSWER: u64 = 16 << 20;

/// Answers until the time is up, or somebody ends it.
pub fn run(args: &Load, at: &Address) -> Result<()> {
    ensure!(matches!(at.path.as_str(), "" | "/"), "it answers alike at every path: name http://HOST:PORT alone");
    let delay = args.serve.delay.unwrap_or_default();
    ensure!(delay <= LONGEST_DELAY, "--delay is an hour at most");
    let endpoint = Endpoint {
        at: at.clone(),
        request: request(args, at)?,
        answer: answer(args, at)?,
        delay,
        nodelay: args.serve.nodelay != Some(Switch::Off),
        timeout: args.message.timeout,
        length: args.length.unwrap_or(LENGTH),
    };
    let stop = stop::on_signal()?;
    let ready = |address| {
        let length = humantime::format_duration(endpoint.length);
        say::sentence("serving", &format!("at {address} for {length}, or until Ctrl-C; it connects to nobody"));
    };
    let served = load::serve(&endpoint, &|| stop.load(Ordering::Relaxed), &mut { ready })?;
    let mut out = anstream::stdout().lock();
    writeln!(out, "{}", told(&served, &endpoint)).and_then(|()| out.flush()).context("failed to print the count")
}

/// What came of it, in a line.
fn told(served: &Served, endpoint: &Endpoint) -> String {
    let mut text = format!(
        "{} requests answered over {} connections in {}",
        numbers::number(served.answered as f64),
        numbers::number(served.connections as f64),
        numbers::seconds(served.length.as_secs_f64())
    );
    let (garbage, kind) = (served.garbage, if endpoint.is_http() { "HTTP/1.1" } else { "request" });
    for (count, what) in [(garbage, format!("sent what is no {kind}")), (served.halves, "stopped halfway".into())] {
        if count > 0 {
            text += &format!("; {} {what}", numbers::number(count as f64));
        }
    }
    match served.lag.quantile(0.99) {
        Some(lag) => format!("{text}; one in a hundred was answered {} late or more.", numbers::seconds(lag)),
        None => text + ".",
    }
}

/// How long a request is; none = HTTP says it.
fn request(args: &Load, at: &Address) -> Result<Option<u64>> {
    if at.protocol == Protocol::Tcp {
        let length =
            args.serve.request.context("how long a tcp:// request is, is not known: --request BYTES says it")?;
        return Ok(Some(length));
    }
    ensure!(args.serve.request.is_none(), "--request is for tcp://: an HTTP request says itself where it ends");
    Ok(None)
}

fn answer(args: &Load, at: &Address) -> Result<Answer> {
    let (message, body) = (&args.message, message::body(&args.message)?);
    if at.protocol == Protocol::Tcp {
        ensure!(message.reply.is_none(), "--reply is for http://: --writes says how long a tcp:// answer is");
        ensure!(
            message.writes.is_empty() != body.is_empty(),
            "a tcp:// answer is --writes 100 of 100 bytes, or --body FILE"
        );
        let writes = message.writes.iter().map(|size| vec![b'x'; *size]);
        return Ok(Answer::tcp(if body.is_empty() { writes.collect() } else { vec![body] }));
    }
    ensure!(message.writes.is_empty(), "--writes is for tcp://: --reply BYTES says how long an HTTP answer's body is");
    ensure!(
        message.reply.is_none() || message.body.is_none(),
        "--reply and --body both say what the answer is: name one"
    );
    let reply = message.reply.unwrap_or_default();
    ensure!(reply <= LARGEST_ANSWER, "an answer of {reply} bytes is longer than {LARGEST_ANSWER}");
    let body = if body.is_empty() { vec![b'x'; usize::try_from(reply)?] } else { body };
    let status = args.serve.status.unwrap_or(OK);
    ensure!(body.is_empty() || !load::has_no_body(status), "an answer of status {status} has no body");
    Ok(Answer::http(status, &message.header, &body))
}
