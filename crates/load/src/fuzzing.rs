// SPDX-License-Identifier: Apache-2.0
//! One call for all that is ever done with bytes of a service that is loaded, and one for those of who asks an endpoint, for
//! fuzzing and for the tests that keep what fuzzing found. Not part of the program.

use crate::reply::{Progress, Reply};
use crate::requests::{Asked, Requests};

/// A reply in one piece, and cut where its first byte says: both come to the same, and neither keeps a body.
pub fn reply(bytes: &[u8]) {
    let Some((cut, text)) = bytes.split_first() else { return };
    let whole = read(text.chunks(text.len().max(1)));
    let pieces = read(text.chunks(usize::from(*cut).max(1)));
    // In one piece, what comes after a reply is seen with it.
    if whole.0 != Progress::Garbage {
        assert_eq!(whole, pieces, "a reply depends on how it is cut");
    }
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Progress, u16, u64) {
    let mut reply = Reply::default();
    reply.begin(None);
    let mut progress = Progress::Partial;
    for piece in pieces {
        progress = reply.add(piece);
        if progress != Progress::Partial {
            break;
        }
    }
    let _ = reply.close();
    (progress, reply.status, reply.bytes)
}

/// Requests in one piece, and cut where the first byte says: both come to the same.
pub fn requests(bytes: &[u8]) {
    let Some((cut, text)) = bytes.split_first() else { return };
    let whole = asked(text.chunks(text.len().max(1)));
    let pieces = asked(text.chunks(usize::from(*cut).max(1)));
    // Cut, garbage may not have ended yet.
    if whole.last() != Some(&Asked::Garbage) {
        assert_eq!(whole, pieces, "requests depend on how they are cut");
    }
}

/// What is answered.
fn asked<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Asked> {
    let (mut requests, mut all) = (Requests::new(None), Vec::new());
    for mut piece in pieces {
        while let Some(asked) = requests.next(&mut piece) {
            if asked != Asked::Pending {
                all.push(asked);
            }
            if asked == Asked::Garbage {
                return all;
            }
        }
        assert!(piece.is_empty(), "what is no request yet is kept");
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fuzzing found, and then words in any order.
    fn stays_mended(folder: &str, words: &[&str], read: fn(&[u8])) {
        let dir = format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/regressions/{}"), folder);
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            read(&std::fs::read(entry.path()).unwrap());
        }
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let mut bytes = vec![random.u8(..)];
            for _ in 0..random.usize(..40) {
                bytes.extend_from_slice(words[random.usize(..words.len())].as_bytes());
            }
            read(&bytes);
        }
    }

    #[test]
    fn what_fuzzing_found_stays_mended() {
        let of_both = [
            "\r\n",
            "\n",
            "Content-Length: ",
            "5",
            "Transfer-Encoding: chunked",
            "0",
            ";",
            "x",
            "HTTP/1.1 ",
            "HTTP/1.0",
        ];
        let of_replies = [&of_both[..], &["200 ", "OK"]].concat();
        let of_requests =
            [&of_both[..], &["GET / HTTP/1.1\r\n", "POST ", "/ ", "Expect: 100-continue", "Connection: close"]]
                .concat();
        stays_mended("replies", &of_replies, reply);
        stays_mended("requests", &of_requests, requests);
    }
}
