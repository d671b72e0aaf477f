// SPDX-License-Identifier: Apache-2.0
//! Where requests end that come over one connection, one after the other. They come from anybody: nothing of them is kept,
//! and a head that does not end is no head.

use crate::body::{At, Body, Headers, MAX_HEADERS, Progress, take};

/// The longest head: each connection may hold one that is not whole yet.
const MAX_HEAD: usize = 16 << 10;

/// Room that is kept for the next head.
const KEPT: usize = 2 << 10;

/// What has come over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A request that is whole.
    Request {
        /// Only the head of the answer is wanted.
        head_only: bool,
        /// The connection ends after the answer.
        closes: bool,
    },
    /// A head whose sender waits for a word before he sends the body.
    Pending,
    /// What is no request.
    Garbage,
}

/// The requests of one connection.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Bytes of each; none = HTTP says where it ends.
    length: Option<u64>,
    /// How many of them are still to come.
    left: u64,
    /// Head that is not whole yet.
    text: Vec<u8>,
    /// The request whose head is whole, and its body.
    body: Option<(Asked, Body)>,
}

impl Requests {
    /// Requests of so many bytes each; none = of HTTP/1.1.
    pub(crate) fn new(length: Option<u64>) -> Self {
        Self { length, left: length.unwrap_or_default(), text: Vec::new(), body: None }
    }

    /// Whether a request has begun and is not whole.
    pub(crate) fn is_amid(&self) -> bool {
        self.body.is_some() || !self.text.is_empty() || self.length.is_some_and(|length| self.left < length)
    }

    /// Whether a head has begun and is not whole.
    pub(crate) fn is_in_head(&self) -> bool {
        !self.text.is_empty()
    }

    /// Takes the next request off the piece; none = more has to come, and nothing of the piece is left.
    pub(crate) fn next(&mut self, piece: &mut &[u8]) -> Option<Asked> {
        if let Some(length) = self.length {
            self.left -= take(piece, self.left);
            if self.left > 0 {
                return None;
            }
            self.left = length;
            return Some(Asked::Request { head_only: false, closes: false });
        }
        if self.body.is_none()
            && let Some(answer) = self.head(piece)
        {
            return Some(answer);
        }
        let (asked, body) = self.body.as_mut()?;
        match body.take(piece) {
            Progress::Partial => None,
            Progress::Garbage => Some(Asked::Garbage),
            Progress::Whole => {
                let asked = *asked;
                self.body = None;
                Some(asked)
            }
        }
    }

    /// A head. What it says is told at once where there is no body to wait for.
    fn head(&mut self, piece: &mut &[u8]) -> Option<Asked> {
        if self.text.is_empty() {
            // Empty lines before a request are nobody's.
            let from = piece.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(piece.len());
            *piece = &piece[from..];
        }
        let (had, ends) = (self.text.len(), piece.contains(&b'\n'));
        self.text.extend_from_slice(&piece[..piece.len().min(MAX_HEAD + 1)]);
        // Read again only when a line has ended: byte by byte, a long head would cost its square.
        if had > 0 && !ends && self.text.len() <= MAX_HEAD {
            *piece = &[];
            return None;
        }
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(&self.text) {
            Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD => length,
            Ok(httparse::Status::Partial) if self.text.len() <= MAX_HEAD => {
                *piece = &[];
                return None;
            }
            _ => return Some(Asked::Garbage),
        };
        let method = request.method.unwrap_or_default();
        let (headers, is_old) = (Headers(request.headers), request.version == Some(0));
        let asked = Asked::Request { head_only: method == "HEAD", closes: is_old || headers.closes(is_old) };
        // What CONNECT asks for is another connection, and none is ever opened.
        let body = body_of(&headers).filter(|_| method != "CONNECT");
        let waits = headers.says("expect", "100-continue") && !is_old;
        *piece = &piece[length - had..];
        self.text.clear();
        self.text.shrink_to(KEPT);
        match body {
            None => Some(Asked::Garbage),
            Some(At::Bytes(0)) => Some(asked),
            Some(at) => {
                self.body = Some((asked, Body::new(at)));
                (waits && piece.is_empty()).then_some(Asked::Pending)
            }
        }
    }
}

/// Where the body of a request begins to be; none = the head contradicts itself, or means what is not spoken here.
fn body_of(headers: &Headers<'_>) -> Option<At> {
    let mut lengths = headers.values("content-length");
    let coded = headers.values("transfer-encoding").next().is_some();
    match (lengths.next(), coded) {
        (None, false) => Some(At::Bytes(0)),
        (None, true) => headers.says("transfer-encoding", "chunked").then_some(At::ChunkLine),
        (Some(_), true) => None,
        (Some(length), false) => {
            let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
            let alike = lengths.all(|other| other == length);
            if is_number && alike { length.parse().ok().map(At::Bytes) } else { None }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked = Asked::Request { head_only: false, closes: false };
    const LAST: Asked = Asked::Request { head_only: false, closes: true };

    /// What comes of a text, in one piece and byte by byte, which must come to the same.
    fn http(text: &str) -> Vec<Asked> {
        let read = |size: usize| {
            let (mut requests, mut all) = (Requests::new(None), Vec::new());
            for mut piece in text.as_bytes().chunks(size) {
                while let Some(asked) = requests.next(&mut piece) {
                    all.push(asked);
                    if asked == Asked::Garbage {
                        return all;
                    }
                }
            }
            all
        };
        let whole = read(text.len());
        let without_word: Vec<Asked> = read(1).into_iter().filter(|asked| *asked != Asked::Pending).collect();
        assert_eq!(without_word, whole, "{text:?}");
        whole
    }

    #[test]
    fn requests_end_where_they_say() {
        assert_eq!(http("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), [ASKED]);
        assert_eq!(http("\r\nGET /a HTTP/1.1\n\nPUT /b HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"), [ASKED, ASKED]);
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: u\r\n\r\n";
        assert_eq!(http(&format!("{chunked}{chunked}GET / HTTP/1.0\r\n\r\n")), [ASKED, ASKED, LAST]);
        assert_eq!(http("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n"), [LAST]);
        assert_eq!(http("HEAD / HTTP/1.1\r\n\r\n"), [Asked::Request { head_only: true, closes: false }]);
        assert_eq!(http("PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"), [], "it is not whole");
    }

    #[test]
    fn what_contradicts_itself_is_none() {
        for text in [
            "\x16\x03\x01\x02",
            "SSH-2.0-x\r\n",
            "GET /\r\n\r\n",
            "CONNECT a:443 HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        ] {
            let mut requests = Requests::new(None);
            assert_eq!(requests.next(&mut text.as_bytes()), Some(Asked::Garbage), "{text:?}");
        }
        let mut requests = Requests::new(None);
        let endless = (0..).find_map(|_| requests.next(&mut &[b'a'; 4096][..]));
        assert_eq!(endless, Some(Asked::Garbage), "a head that does not end");
        assert!(requests.text.len() <= MAX_HEAD + 4096 + 1);
    }

    #[test]
    fn who_waits_for_a_word_is_told_of_once() {
        let mut requests = Requests::new(None);
        let head = "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(requests.next(&mut head.as_bytes()), Some(Asked::Pending));
        assert!(requests.is_amid());
        assert_eq!(requests.next(&mut &b"a"[..]), None);
        assert_eq!(requests.next(&mut &b"b"[..]), Some(ASKED));
        assert!(!requests.is_amid());
    }

    #[test]
    fn requests_of_one_length() {
        let (mut requests, mut piece) = (Requests::new(Some(4)), &b"abcdefgh12"[..]);
        assert_eq!(
            [requests.next(&mut piece), requests.next(&mut piece), requests.next(&mut piece)],
            [Some(ASKED), Some(ASKED), None]
        );
        assert!(piece.is_empty() && requests.is_amid());
        assert_eq!(requests.next(&mut &b"34"[..]), Some(ASKED));
        assert!(!requests.is_amid());
    }
}
