// SPDX-License-Identifier: Apache-2.0
//! What an endpoint says to each request: all its bytes are made before the first one comes.

use std::io::Write as _;

/// The bytes of an answer; each is one write.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// To a request, after which the connection stays.
    usual: Vec<Vec<u8>>,
    /// The same, and the connection ends.
    last: Vec<Vec<u8>>,
    /// The heads of these two.
    heads: [Vec<Vec<u8>>; 2],
    /// To what is no request, after which the connection ends.
    garbage: Vec<Vec<u8>>,
    /// To who waits for a word before he sends the body.
    pending: Vec<Vec<u8>>,
}

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// To a request.
    Asked {
        /// The head alone.
        head_only: bool,
        /// The connection ends.
        closes: bool,
    },
    /// To what is none.
    Garbage,
    /// Go on.
    Pending,
}

impl Answer {
    /// An HTTP/1.1 answer; `headers` are whole lines. A status that has no body gets none.
    pub fn http(status: u16, headers: &[String], body: &[u8]) -> Self {
        let head = |closes: bool| {
            let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status)).into_bytes();
            if !has_no_body(status) {
                let _ = write!(head, "Content-Length: {}\r\n", body.len()); // memory takes it
            }
            headers.iter().for_each(|line| head.extend([line.as_bytes(), b"\r\n"].concat()));
            head.extend_from_slice(if closes { b"Connection: close\r\n\r\n" } else { b"\r\n" });
            head
        };
        let whole = |closes| vec![if has_no_body(status) { head(closes) } else { [&head(closes), body].concat() }];
        let garbage = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        Self {
            usual: whole(false),
            last: whole(true),
            heads: [vec![head(false)], vec![head(true)]],
            garbage: vec![garbage.to_vec()],
            pending: vec![b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()],
        }
    }

    /// A message of plain bytes, one write for each.
    pub fn tcp(writes: Vec<Vec<u8>>) -> Self {
        Self { usual: writes, ..Self::default() }
    }

    pub(crate) fn writes(&self, which: Which) -> &[Vec<u8>] {
        match which {
            Which::Asked { head_only: true, closes } => &self.heads[usize::from(closes)],
            Which::Asked { closes: false, .. } => &self.usual,
            Which::Asked { closes: true, .. } => &self.last,
            Which::Garbage => &self.garbage,
            Which::Pending => &self.pending,
        }
    }
}

/// Whether answers of this status end with their head.
pub fn has_no_body(status: u16) -> bool {
    matches!(status, 204 | 304)
}

/// What usually stands behind a status; nobody needs it.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        404 => "Not Found",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::{Progress, Reply};

    fn read(answer: &Answer, which: Which) -> (Progress, u16) {
        let mut reply = Reply::default();
        reply.begin(None);
        (reply.add(&answer.writes(which).concat()), reply.status)
    }

    #[test]
    fn answers_are_read_as_they_are_meant() {
        let answer = Answer::http(200, &["Content-Type: text/plain".into()], b"ok");
        let asked = |closes| Which::Asked { head_only: false, closes };
        assert_eq!(read(&answer, asked(false)), (Progress::Whole, 200));
        assert_eq!(read(&answer, asked(true)), (Progress::Last, 200));
        assert_eq!(read(&answer, Which::Garbage), (Progress::Last, 400));
        let head = answer.writes(Which::Asked { head_only: true, closes: false }).concat();
        let text = String::from_utf8(head).unwrap();
        assert!(text.contains("Content-Length: 2\r\nContent-Type") && text.ends_with("\r\n\r\n"), "{text}");
        assert_eq!(read(&Answer::http(204, &[], b"x"), asked(false)), (Progress::Whole, 204), "no body");
    }
}
