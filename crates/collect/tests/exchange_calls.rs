// SPDX-License-Identifier: Apache-2.0
//! What is one read or write of an exchange, by which call it is made. Needs root; see `kernel_allows`.

#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "a part of it is enough here")]
mod exchange;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread::sleep;
use std::time::Duration;

use exchange::{MS, kernel_allows, pair, seen};
use testing::need;

/// A server that looks at what came before it reads it, as a proxy does that tells protocols apart.
#[test]
fn a_look_is_no_read() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [accepted, _] = seen(&listener, || {
        for _ in 0..4 {
            let (mut asking, mut accepted) = pair(&listener);
            asking.write_all(b"question").unwrap();
            accepted.peek(&mut [0; 8]).unwrap();
            sleep(Duration::from_millis(30));
            accepted.read_exact(&mut [0; 8]).unwrap();
            accepted.write_all(b"answered").unwrap();
            asking.read_exact(&mut [0; 8]).unwrap();
        }
    });
    assert_eq!((accepted.response.count, accepted.more), (4, 0), "{accepted:?}");
    assert!(accepted.first_read.sum_ns >= 4 * 29 * MS && accepted.service.sum_ns < 4 * 20 * MS, "{accepted:?}");
}

/// A question of a megabyte, for parts of which the write has to wait.
#[test]
fn a_long_write_is_one() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let question = vec![7; 1 << 20];
    let [_, made] = seen(&listener, || {
        let (mut asking, mut accepted) = pair(&listener);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..4 {
                    sleep(Duration::from_millis(10));
                    accepted.read_exact(&mut vec![0; 1 << 20]).unwrap();
                    accepted.write_all(b"answered").unwrap();
                }
            });
            for _ in 0..4 {
                asking.write_all(&question).unwrap();
                asking.read_exact(&mut [0; 8]).unwrap();
            }
        });
    });
    assert_eq!((made.response.count, made.began, made.more), (4, 4, 0), "{made:?}");
}
