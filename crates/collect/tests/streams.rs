// SPDX-License-Identifier: Apache-2.0
//! What is written beyond the first part of an answer, against streams of this process. Needs root; see `kernel_allows`.

#![allow(clippy::unwrap_used)]

mod exchange;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread::sleep;
use std::time::Duration;

use exchange::{MS, ask, kernel_allows, pair, seen};
use testing::need;

/// What is written in a rhythm of its own, and what is asked meanwhile; and an answer in several parts.
#[test]
fn what_goes_on_whoever_asks() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [streamed, _] = seen(&listener, || {
        let (mut asking, mut accepted) = pair(&listener);
        for part in 0..40 {
            if part % 10 == 9 {
                asking.write_all(b"question").unwrap();
                accepted.read_exact(&mut [0; 8]).unwrap();
            }
            sleep(Duration::from_millis(4));
            accepted.write_all(b"one part").unwrap();
            asking.read_exact(&mut [0; 8]).unwrap();
        }
    });
    assert_eq!((streamed.response.count, streamed.pushed), (4, 36), "{streamed:?}");
    // The very first has none before it.
    assert_eq!((streamed.continued, streamed.apart), (4, 35), "{streamed:?}");
    let each = |ns: u64, count: u64| ns / count;
    assert!(each(streamed.continued_ns, 4) >= 4 * MS && each(streamed.apart_ns, 35) >= 4 * MS, "{streamed:?}");

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [answered, _] = seen(&listener, || ask(&listener, 5, (1, 1)));
    assert_eq!((answered.response.count, answered.continued, answered.apart), (5, 0, 0), "{answered:?}");
}

/// Of late answers, those that a stream follows; the connection is closed before anything else is asked.
#[test]
fn late_answers_that_begin_streams() {
    need!(kernel_allows());
    let told = |(late, writes, pause): (u64, u64, u64)| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let [accepted, _] = seen(&listener, || {
            let (mut asking, mut accepted) = pair(&listener);
            asking.write_all(b"question").unwrap();
            accepted.read_exact(&mut [0; 8]).unwrap();
            sleep(Duration::from_millis(late));
            for _ in 0..writes {
                accepted.write_all(b"one part").unwrap();
                asking.read_exact(&mut [0; 8]).unwrap();
                sleep(Duration::from_millis(pause));
            }
        });
        (accepted.streams, accepted.streams_ns / MS)
    };
    let (streams, streams_ms) = told((20, 5, 15));
    assert!(streams == 1 && streams_ms >= 30, "{streams}, {streams_ms} ms");
    assert_eq!(told((20, 2, 15)), (0, 0), "an answer and its rest");
    assert_eq!(told((1, 5, 15)), (0, 0), "nobody waited for its beginning");
}
