// SPDX-License-Identifier: Apache-2.0
//! What a request is called, told from the first bytes of it: method and path, command, verb and table. Never what follows a
//! `?`, no value, no key, no header; what looks like an id is left out. Bytes that are none of the protocols that are known
//! get no label.

mod http;
mod redis;
mod sql;

/// Characters of a label, at most.
pub const MOST: usize = 64;

/// What stands for an id in a label.
const ANY: char = '*';

/// What stands for what was cut off.
const CUT: char = '…';

/// What the first bytes of a request tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// `http`, `http2`, `redis`, `postgresql`, `mysql`, `tls`, `unknown`, or `unread`: its bytes could not be read.
    pub protocol: &'static str,
    /// `GET /items/*`, `HGETALL`, `SELECT orders`; empty where there is none.
    pub label: String,
}

/// What the beginning of an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Nothing: it could not be read, is too short, or of a protocol that is not known.
    Unknown,
    /// It is one.
    Ok,
    /// It says where else to ask: HTTP 3xx but for 304, `-MOVED` and `-ASK` of Redis.
    Elsewhere,
    /// Whoever asks is to blame: HTTP 4xx.
    Refused,
    /// The service has failed: HTTP 5xx, an error of Redis, PostgreSQL or MySQL.
    Failed,
}

impl Outcome {
    /// As table `label` has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Ok => "ok",
            Self::Elsewhere => "elsewhere",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// What an answer to a request of this protocol says by its first bytes.
pub fn outcome(protocol: &str, answer: &[u8]) -> Outcome {
    match (protocol, answer) {
        (_, answer @ [b'H', b'T', b'T', b'P', b'/', b'1', b'.', _, b' ', class, ..]) => match class {
            b'1' | b'2' => Outcome::Ok,
            b'3' if answer.get(10..12).is_none_or(|rest| rest != b"04") => Outcome::Elsewhere,
            b'3' => Outcome::Ok,
            b'4' => Outcome::Refused,
            b'5' => Outcome::Failed,
            _ => Outcome::Unknown,
        },
        ("redis", answer) => redis::outcome(answer),
        ("postgresql", [b'E', ..]) | ("mysql", [_, _, _, _, 0xff, ..]) => Outcome::Failed,
        ("postgresql" | "mysql", [_, ..]) => Outcome::Ok,
        _ => Outcome::Unknown,
    }
}

/// Whether another request follows the first one in the same bytes: a pipeline. Where the first one is not there to its end, none
/// is seen.
pub fn is_pipeline(protocol: &str, opening: &[u8]) -> bool {
    match protocol {
        "http" => http::rest(opening).is_some_and(|rest| http::label(rest).is_some()),
        "redis" => redis::rest(opening).is_some_and(|rest| redis::array(rest).or_else(|| redis::line(rest)).is_some()),
        _ => false,
    }
}

/// Names a request by its first bytes.
pub fn of(opening: &[u8]) -> Named {
    let named = |protocol, label: String| Named { protocol, label };
    let readers: [(&str, Reader); 5] = [
        ("http", http::label),
        ("redis", redis::array),
        ("postgresql", sql::postgresql),
        ("mysql", sql::mysql),
        ("redis", redis::line),
    ];
    let found = readers.into_iter().find_map(|(protocol, read)| Some(named(protocol, shortened(&read(opening)?))));
    found.unwrap_or_else(|| named(nameless(opening), String::new()))
}

/// The protocol of what has no label.
fn nameless(opening: &[u8]) -> &'static str {
    match opening {
        [] => "unread",
        // A handshake, or what is said after one.
        [0x14..=0x17, 3, 0..=4, ..] => "tls",
        _ if opening.starts_with(b"PRI * HTTP/2.0") => "http2",
        _ => "unknown",
    }
}

/// Reads a label out of a request of one protocol; none = it is not of that one.
type Reader = fn(&[u8]) -> Option<String>;

/// The label, cut to [`MOST`] characters.
fn shortened(label: &str) -> String {
    if label.chars().count() <= MOST {
        return label.to_owned();
    }
    label.chars().take(MOST - 1).chain([CUT]).collect()
}

/// A word in which runs of three digits and more are left out: years, numbers, parts of names that count up.
fn without_numbers(word: &str) -> String {
    const LONG: usize = 3;
    let mut all = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let others = rest[digits..].bytes().take_while(|byte| !byte.is_ascii_digit()).count();
        if digits >= LONG {
            all.push(ANY);
        } else {
            all.push_str(&rest[..digits]);
        }
        all.push_str(&rest[digits..digits + others]);
        rest = &rest[digits + others..];
    }
    all
}

/// That a label keeps what this module promises, for tests.
#[cfg(any(test, fuzzing))]
pub(crate) fn check(opening: &[u8]) {
    let Named { protocol, label } = of(opening);
    assert!(label.chars().count() <= MOST && !label.chars().any(char::is_control), "{label:?}");
    assert!(label.is_empty() || label.is_ascii() || label.replace(CUT, "").is_ascii(), "{label:?}");
    // What follows the question mark has no say in it.
    if let Some(mark) = opening.iter().position(|byte| *byte == b'?').filter(|_| protocol == "http") {
        assert!(!label.contains('?') && of(&opening[..=mark]).label == label, "{label:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_answers_say_by_their_protocol() {
        let of = |protocol, answer: &str| outcome(protocol, answer.as_bytes());
        assert_eq!(of("http", "HTTP/1.1 503"), Outcome::Failed);
        assert_eq!((of("http", "HTTP/1.0 404"), of("http", "HTTP/1.1 304")), (Outcome::Refused, Outcome::Ok));
        assert_eq!((of("redis", "-OOM command"), of("redis", "-MOVED 3999 ")), (Outcome::Failed, Outcome::Elsewhere));
        assert_eq!((of("http", "HTTP/1.1 301"), of("redis", "-NOSCRIPT No ")), (Outcome::Elsewhere, Outcome::Ok));
        assert_eq!((of("redis", "$5\r\nHTTP/\r\n"), of("unknown", "whatever it ")), (Outcome::Ok, Outcome::Unknown));
        assert_eq!(
            (of("postgresql", "E\0\0\0gSERROR"), of("postgresql", "T\0\0\0!\0\u{1}id")),
            (Outcome::Failed, Outcome::Ok)
        );
        assert_eq!(outcome("mysql", b"\x17\0\0\x01\xff\x48\x04#HY00"), Outcome::Failed);
    }

    #[test]
    fn what_has_no_label() {
        let of = |bytes: &[u8]| {
            let Named { protocol, label } = of(bytes);
            assert_eq!(label, "");
            protocol
        };
        assert_eq!((of(b""), of(b"\x16\x03\x01\x02\x00\x01"), of(b"\x17\x03\x03\x00\x20")), ("unread", "tls", "tls"));
        assert_eq!(of(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "http2");
        for other in [&b"\0\0\0\x10question"[..], b"question", b"HELO there\r\n", b"GET", b"\xff\xfe\xfd", b"Q", b"*"] {
            assert_eq!(of(other), "unknown", "{other:?}");
        }
    }

    #[test]
    fn pipelines() {
        let set = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
        let get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
        let several = |text: &str| is_pipeline(of(text.as_bytes()).protocol, text.as_bytes());
        for one in [set, get, "PING\r\n", &set[..20], &get[..20], "*1\r\n$4\r\nPING\r\n"] {
            assert!(!several(one) && several(&format!("{one}{one}")) == (one.len() != 20), "{one:?}");
        }
        assert!(!several(&format!("{}{get}", get.replace("GET", "POST"))), "a body may look like anything");
        assert!(!several("*2\r\n$3\r\nGET\r\n$99\r\n*1\r\n$4\r\nPING\r\n"), "a value is no command");
        assert!(!several("*99999999\r\n$3\r\nDEL\r\n$1\r\nk\r\n"));
    }

    /// Beginnings of every protocol, with bytes exchanged, cut off and put in: no panic, no long label, nothing after a `?`.
    #[test]
    fn any_bytes_give_a_label_within_bounds() {
        let seeds: [&[u8]; 8] = [
            b"GET /a/b/4711/c?secret=1 HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST http://host/path/00000000-0000-0000-0000-000000000000?x HTTP/1.0\r\n",
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
            b"HGETALL key\r\n",
            b"Q\0\0\0\x40select * from \"a\".b where c = 'it''s ? from d' and e in (select 1 from f)\0",
            b"P\0\0\0\x40name\0update only shop.items_2024 set a = $1\0\0\x01",
            b"\x30\0\0\0\x03insert into `orders` values (1, \"x\")",
            b"\x12\0\0\0\x17\x01\0\0\0\0\x01\0\0\0\0\x01\x03\x00",
        ];
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..50_000 {
            let mut bytes = random.choice(seeds).unwrap().to_vec();
            for _ in 0..random.usize(0..6) {
                let at = random.usize(0..=bytes.len());
                match random.u8(0..4) {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at, *random.choice(b"?/*'\"`\\ \r\n\0.$(;-").unwrap()),
                    2 => bytes.splice(at..at, random.choice(seeds).unwrap().iter().copied()).for_each(drop),
                    _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.u8(..)),
                }
            }
            check(&bytes[..bytes.len().min(128)]);
        }
    }

    #[test]
    fn numbers_are_left_out_of_words() {
        let words = ["v2", "item-4711.json", "2024", "a12b345", ""].map(without_numbers);
        assert_eq!(words, ["v2", "item-*.json", "*", "a12b*", ""]);
    }
}
