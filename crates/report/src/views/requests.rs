// SPDX-License-Identifier: Apache-2.0
//! How long clients waited for their answers, and the target for those of whom it asked.

use diagnose::answer::RequestTimes;
use diagnose::case::Case;
use diagnose::facts::requests::{Endpoint, Requests};
use diagnose::facts::sending::Sending;

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// Endpoints in the short form; the page has all.
const SHORT: usize = 3;

/// Of the window; the slice in which a capture ends may be a part of one.
const MOST_OF_IT: f64 = 0.8;

/// The response times, by endpoint.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let requests = material.case.fact::<Requests>().ok()?;
    let seconds = requests.followed_ns / 1e9;
    let (asked, asks): (Vec<&Endpoint>, Vec<&Endpoint>) =
        requests.endpoints.iter().filter(|e| e.response.count > 0.0).partition(|e| e.accepted);
    let table = |title: &str, heads: [&str; 2], endpoints: &[&Endpoint]| {
        let columns = [title, "a second", "p50", "p99", "p99.9", heads[0], heads[1]];
        let columns = columns.iter().enumerate().map(|(at, head)| match at {
            0 => Column::left(head),
            _ => Column::right(head),
        });
        let rows = endpoints.iter().map(|endpoint| row(endpoint, seconds)).collect();
        Block::Table { title: String::new(), columns: columns.collect(), rows }
    };
    let draw = |most: usize| {
        let mut blocks = Vec::new();
        if !asked.is_empty() {
            blocks.push(table("clients ask", ["unread p99", "service p99"], asked.get(..most).unwrap_or(&asked)));
        }
        if !asks.is_empty() {
            blocks.push(table("it asks", ["unread p99", ""], asks.get(..most).unwrap_or(&asks)));
        }
        blocks.extend(requests.streams.iter().map(|stream| streamed(stream, seconds)));
        blocks.extend(hanging(material));
        blocks.extend(notes(&asked, seconds, material.case.seconds()));
        blocks.extend(asked.iter().chain(&asks).filter(|e| e.is_behind_tls()).map(|e| handshakes(e, seconds)));
        blocks.extend(asked.iter().filter(|e| requests.stood_in_queue(e)).map(|e| queued(e)));
        blocks.extend(held(material.case, &requests));
        blocks
    };
    let blocks = draw(usize::MAX);
    (!asked.is_empty() || !asks.is_empty() || !requests.streams.is_empty())
        .then(|| Section::new("requests", "Response times", blocks, Terminal::All).kept_as(draw(SHORT)))
}

fn row(endpoint: &Endpoint, seconds: f64) -> Vec<String> {
    let time = |ns: f64| numbers::seconds(ns / 1e9);
    let response = &endpoint.response;
    let service = if endpoint.accepted { time(endpoint.service.quantile_ns(0.99)) } else { String::new() };
    vec![
        endpoint.name.trim_start_matches("tcp ").to_owned(),
        a_second(response.count, seconds),
        time(response.quantile_ns(0.5)),
        time(response.quantile_ns(0.99)),
        time(response.quantile_ns(0.999)),
        time(endpoint.read_wait.quantile_ns(0.99)),
        service,
    ]
}

/// That the target streams, where nobody waits for answers.
fn streamed(stream: &Endpoint, seconds: f64) -> Block {
    let text = format!(
        "At {} it streams: {} writes a second, {} apart on a connection, whether or not a client has sent something, which {} a \
         second did. That is no request, and has no response time.",
        stream.name.trim_start_matches("tcp "),
        a_second(stream.response.count + stream.pushed, seconds),
        numbers::seconds(stream.rhythm_ns() / 1e9),
        a_second(stream.response.count, seconds),
    );
    Block::Text { text, tone: Tone::Plain }
}

fn a_second(count: f64, seconds: f64) -> String {
    numbers::number((count / seconds.max(1e-9) * 10.0).round() / 10.0)
}

/// So many requests.
pub fn some(requests: f64) -> String {
    match numbers::number(requests).as_str() {
        "1" => "1 request".to_owned(),
        number => format!("{number} requests"),
    }
}

/// That the times know nothing of some.
fn hanging(material: &Material<'_>) -> Vec<Block> {
    let sentence = |times: &RequestTimes| {
        let hanging = times.hanging.as_ref()?;
        Some(format!(
            "At {}, {} at a time got no answer, for {} so far on average: they are in none of these times.",
            times.endpoint.trim_start_matches("tcp "),
            some(hanging.connections),
            numbers::seconds(hanging.seconds)
        ))
    };
    let sentences = material.verdict.requests.iter().filter_map(sentence);
    sentences.map(|text| Block::Text { text, tone: Tone::Bad }).collect()
}

/// What to keep in mind about them.
fn notes(asked: &[&Endpoint], followed: f64, of: f64) -> Vec<Block> {
    let mut notes = Vec::new();
    if followed < of * MOST_OF_IT {
        let (followed, of) = (numbers::seconds(followed), numbers::seconds(of));
        notes.push(format!("Followed for {followed} of {of}: on this host sockets are read and written so often that it would cost too much all the time."));
    }
    let names = |wanted: fn(&Endpoint) -> bool| -> Vec<&str> {
        asked.iter().filter(|e| wanted(e)).map(|e| e.name.as_str()).collect()
    };
    let (mixed, pipelined) = (names(|e| e.is_mixed() && !e.is_pipelined()), names(Endpoint::is_pipelined));
    if !pipelined.is_empty() {
        notes.push(format!(
            "At {}, several requests are often written at once (a pipeline): what is counted here are batches, and the times are \
             those until the first answer of each.",
            pipelined.join(", ")
        ));
    }
    if !mixed.is_empty() {
        notes.push(format!(
            "At {}, more bytes often came before the answer: several requests at once on one connection, or uploads; the \
             times are those of the whole of it.",
            mixed.join(", ")
        ));
    }
    let unanswered = (asked.iter().map(|e| e.unanswered).sum::<f64>() * of / followed.max(1e-9)).round();
    if unanswered > 0.0 {
        notes.push(format!("{} were closed before an answer.", numbers::number(unanswered)));
    }
    notes.into_iter().map(|text| Block::Text { text, tone: Tone::Plain }).collect()
}

/// What stands before requests behind TLS.
fn handshakes(endpoint: &Endpoint, seconds: f64) -> Block {
    let at = |part| numbers::seconds(endpoint.handshake.quantile_ns(part) / 1e9);
    let text = format!(
        "{} {}, {} TLS handshakes a second, {} (p50), {} (p99) from the hello to what was said to it: they are in none of these times.",
        if endpoint.accepted { "At" } else { "To" },
        endpoint.name.trim_start_matches("tcp "),
        a_second(endpoint.handshake.count, seconds),
        at(0.5),
        at(0.99),
    );
    Block::Text { text, tone: Tone::Plain }
}

/// That requests stood in the accept queue.
fn queued(endpoint: &Endpoint) -> Block {
    let at = |part| numbers::seconds(endpoint.first_read.quantile_ns(part) / 1e9);
    let text = format!(
        "At {}, {} of a connection lay unread for {} (p50), {} (p99): in the accept queue, until its connection was \
         taken.",
        endpoint.name.trim_start_matches("tcp "),
        if endpoint.is_behind_tls() { "the first bytes" } else { "the first request" },
        at(0.5),
        at(0.99),
    );
    Block::Text { text, tone: Tone::Plain }
}

/// Of an exchange, held in a send queue: less is a write that goes on at the look.
const WORTH_A_WORD: f64 = 0.001;

/// Where the send queue held bytes, and why.
fn held(case: &Case, requests: &Requests) -> Vec<Block> {
    let Ok(sending) = case.fact::<Sending>() else { return Vec::new() };
    let sentence = |endpoint: &Endpoint| {
        let each = sending.per_exchange(requests, endpoint.accepted, &endpoint.name)?.held;
        let reasons = sending.of(endpoint.accepted, &endpoint.name)?.reasons();
        let (why, part) = reasons.first().filter(|_| each >= WORTH_A_WORD)?;
        let what = match endpoint.accepted {
            true => "Beyond that, bytes of an answer at",
            false => "Of that, bytes of a question to",
        };
        Some(format!(
            "{what} {} stood in its send queue for {} on average, {} of that because of {why}.",
            endpoint.name.trim_start_matches("tcp "),
            numbers::seconds(each),
            numbers::share(*part),
        ))
    };
    let sentences = requests.endpoints.iter().filter_map(sentence);
    sentences.map(|text| Block::Text { text, tone: Tone::Plain }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::tests::{section, tables};

    #[test]
    fn clients_and_those_who_are_asked() {
        let text = "meta length_ns=40e9 target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=10e9 length_ns=10e9
             exchange t_ns=1 role=accepted port=80 stage=response count=100 sum_ns=200e6 length_ns=[1000000,9000000] counts=[98,2] more=50 unanswered=3
             exchange t_ns=1 role=accepted port=80 stage=read_wait count=100 sum_ns=1e6 length_ns=[10000] counts=[100]
             exchange t_ns=1 role=accepted port=80 stage=service count=100 sum_ns=99e6 length_ns=[990000] counts=[100]
             exchange t_ns=1 role=made peer=10.0.0.9:1 stage=response count=5 sum_ns=5e6 length_ns=[1000000] counts=[5]";
        let section = section(view, text).unwrap();
        let tables = tables(&section);
        assert_eq!(tables[0][1], ["0.0.0.0:80", "10", "1.00 ms", "9.00 ms", "9.00 ms", "10.0 µs", "990 µs"]);
        assert_eq!(tables[1][1][..3], ["10.0.0.9:1", "0.50", "1.00 ms"]);
        let [.., Block::Text { text: followed, .. }, Block::Text { text: mixed, .. }, _] = &section.blocks[..] else {
            panic!("no notes")
        };
        assert!(followed.starts_with("Followed for 10.0 s of 40.0 s"), "{followed}");
        assert!(mixed.contains("several requests at once"), "{mixed}");
        assert!(super::super::tests::section(view, "").is_none());
    }

    #[test]
    fn a_stream_has_no_response_times() {
        let text = "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=4e9 length_ns=4e9
             exchange t_ns=1 role=accepted port=80 stage=response count=96 sum_ns=1.9e9 length_ns=[20000000] counts=[96] pushed=704 continued=92 continued_ns=1840000000 apart=704 apart_ns=14080000000";
        let section = section(view, text).unwrap();
        let [Block::Text { text, .. }] = &section.blocks[..] else { panic!("more than a sentence") };
        assert!(
            text.starts_with("At 0.0.0.0:80 it streams: 200 writes a second, 20.0 ms apart on a connection"),
            "{text}"
        );
    }

    #[test]
    fn what_stood_in_the_accept_queue() {
        let text = "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=4e9 length_ns=4e9
             connection t_ns=4e9 role=accepted port=80 looks=40 queued=80
             exchange t_ns=1 role=accepted port=80 stage=response count=100 sum_ns=9e9 length_ns=[90000000] counts=[100]
             exchange t_ns=1 role=accepted port=80 stage=first_read count=100 sum_ns=8e9 length_ns=[80000000] counts=[100]";
        let section = section(view, text).unwrap();
        let Some(Block::Text { text, .. }) = section.blocks.last() else { panic!("no note") };
        assert!(
            text.starts_with("At 0.0.0.0:80, the first request of a connection lay unread for 80.0 ms (p50)"),
            "{text}"
        );
    }

    #[test]
    fn what_stood_in_the_send_queue() {
        let text = "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=4e9 length_ns=4e9
             connection t_ns=4e9 role=accepted port=80 looks=40 unsent=20 nagle=15 other=5
             exchange t_ns=1 role=accepted port=80 stage=response count=100 sum_ns=200e6 length_ns=[2000000] counts=[100]";
        let section = section(view, text).unwrap();
        let Some(Block::Text { text, .. }) = section.blocks.last() else { panic!("no note") };
        assert_eq!(
            text,
            "Beyond that, bytes of an answer at 0.0.0.0:80 stood in its send queue for 20.0 ms on average, 75.0 % of that \
             because of Nagle's algorithm."
        );
    }
}
