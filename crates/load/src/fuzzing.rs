// SPDX-License-Identifier: Apache-2.0
//! One call for all that is ever done with bytes of a service that is loaded, for fuzzing and for the tests that keep what
//! fuzzing found. Not part of the program.

use crate::reply::{Progress, Reply};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fuzzing_found_stays_mended() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/regressions/replies");
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            reply(&std::fs::read(entry.path()).unwrap());
        }
        let mut random = fastrand::Rng::with_seed(7);
        let words = [
            "HTTP/1.1 ",
            "200 ",
            "OK",
            "\r\n",
            "\n",
            "Content-Length: ",
            "5",
            "Transfer-Encoding: chunked",
            "0",
            ";",
            "x",
        ];
        for _ in 0..20_000 {
            let mut bytes = vec![random.u8(..)];
            for _ in 0..random.usize(..40) {
                bytes.extend_from_slice(words[random.usize(..words.len())].as_bytes());
            }
            reply(&bytes);
        }
    }
}
