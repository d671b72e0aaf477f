// SPDX-License-Identifier: Apache-2.0
//! Where a reply ends, and whether it is one. Replies come from anybody: nothing of a body is kept, and a head that does
//! not end is no head.

use crate::body::{At, Body, Headers, MAX_HEADERS, Progress as OfBody};

/// The longest head; longer ones are no HTTP.
const MAX_HEAD: usize = 64 << 10;

/// A reply on its way.
#[derive(Debug, Default)]
pub struct Reply {
    /// Bytes so far, heads included.
    pub bytes: u64,
    /// HTTP status; 0 = not known yet, or no HTTP.
    pub status: u16,
    /// Its body, once the head is whole.
    body: Option<Body>,
    /// Head that is not whole yet.
    text: Vec<u8>,
    /// The connection ends after this reply.
    closes: bool,
}

/// What the last piece has made of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More has to come.
    Partial,
    /// It is whole.
    Whole,
    /// It is whole, and the service will close the connection.
    Last,
    /// It is no reply of this protocol, or longer than one.
    Garbage,
}

impl Reply {
    /// Makes room for the next; `expected` bytes of it are all, or it is HTTP.
    pub fn begin(&mut self, expected: Option<u64>) {
        self.text.clear();
        (self.bytes, self.status, self.closes) = (0, 0, false);
        self.body = expected.map(|bytes| Body::new(At::Bytes(bytes)));
    }

    /// Whether nothing of it has come.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Adds what came.
    pub fn add(&mut self, mut piece: &[u8]) -> Progress {
        self.bytes += piece.len() as u64;
        loop {
            let done = match &mut self.body {
                None => self.head(&mut piece),
                Some(body) => match body.take(&mut piece) {
                    OfBody::Partial => None,
                    OfBody::Whole => Some(self.whole(piece)),
                    OfBody::Garbage => Some(Progress::Garbage),
                },
            };
            match done {
                Some(progress) => return progress,
                None if piece.is_empty() => return Progress::Partial,
                None => {}
            }
        }
    }

    /// The service has closed the connection: the end of some replies.
    pub fn close(&self) -> Progress {
        if self.body.as_ref().is_some_and(Body::ends_with_connection) { Progress::Last } else { Progress::Garbage }
    }

    const fn whole(&self, rest: &[u8]) -> Progress {
        match (rest.is_empty(), self.closes) {
            (false, _) => Progress::Garbage,
            (true, true) => Progress::Last,
            (true, false) => Progress::Whole,
        }
    }

    /// A head; those of interim replies (1xx) are passed over.
    fn head(&mut self, piece: &mut &[u8]) -> Option<Progress> {
        let (had, ends) = (self.text.len(), piece.contains(&b'\n'));
        self.text.extend_from_slice(&piece[..piece.len().min(MAX_HEAD + 1)]);
        // Read again only when a line has ended: byte by byte, a long head would cost its square.
        if had > 0 && !ends && self.text.len() <= MAX_HEAD {
            *piece = &[];
            return None;
        }
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let length = match lenient().parse_response(&mut response, &self.text) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if self.text.len() <= MAX_HEAD => {
                *piece = &[];
                return None;
            }
            _ => return Some(Progress::Garbage),
        };
        let status = response.code.unwrap_or_default();
        let body = body_of(status, &Headers(response.headers), response.version == Some(0));
        *piece = &piece[length - had..];
        self.text.clear();
        if (100..200).contains(&status) {
            return if status == 101 { Some(Progress::Garbage) } else { None };
        }
        self.status = status;
        let Some((at, closes)) = body else { return Some(Progress::Garbage) };
        (self.body, self.closes) = (Some(Body::new(at)), closes);
        (at == At::Bytes(0)).then(|| self.whole(piece))
    }
}

/// How heads are read: what clients take from servers that are old or written by hand, as a blank before a colon.
fn lenient() -> httparse::ParserConfig {
    let mut config = httparse::ParserConfig::default();
    config
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true);
    config
}

/// Where a body begins to be, and whether the connection ends after it; none = the head contradicts itself.
fn body_of(status: u16, headers: &Headers<'_>, is_old: bool) -> Option<(At, bool)> {
    let closes = headers.closes(is_old);
    if matches!(status, 204 | 304) {
        return Some((At::Bytes(0), closes));
    }
    if headers.says("transfer-encoding", "chunked") {
        return Some((At::ChunkLine, closes));
    }
    match headers.values("content-length").next() {
        Some(length) => Some((At::Bytes(length.parse().ok()?), closes)),
        None => Some((At::UntilClosed, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reply in one piece and byte by byte, which must come to the same.
    fn http(text: &str) -> Progress {
        let mut whole = Reply::default();
        whole.begin(None);
        let progress = whole.add(text.as_bytes());
        let mut reply = Reply::default();
        reply.begin(None);
        let mut last = Progress::Partial;
        for (at, byte) in text.bytes().enumerate() {
            assert_eq!(last, Progress::Partial, "{text}: over before byte {at}");
            last = reply.add(&[byte]);
        }
        assert_eq!((last, reply.status, reply.bytes), (progress, whole.status, whole.bytes), "{text}");
        progress
    }

    #[test]
    fn replies_end_where_they_say() {
        assert_eq!(http("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), Progress::Whole);
        assert_eq!(http("HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 2\r\n\r\nab"), Progress::Last);
        assert_eq!(http("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nab"), Progress::Last);
        assert_eq!(http("HTTP/1.1 204 No Content\r\n\r\n"), Progress::Whole);
        assert_eq!(http("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Progress::Whole);
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n2;x=y\r\n0\r\r\n0\r\n";
        assert_eq!(http(&format!("{chunked}\r\n")), Progress::Whole);
        assert_eq!(http(&format!("{chunked}Trailer: x\r\n\r\n")), Progress::Whole);
    }

    #[test]
    fn heads_that_are_written_by_hand() {
        assert_eq!(http("HTTP/1.1 200 OK\r\nServer : x\r\nContent-Length: 2\r\n\r\nab"), Progress::Whole);
        assert_eq!(http("HTTP/1.1 200 OK\r\nX-Long: a\r\n b\r\nContent-Length: 2\r\n\r\nab"), Progress::Whole);
        assert_eq!(http("HTTP/1.1 200 OK\r\nMy Header: a\r\nContent-Length: 2\r\n\r\nab"), Progress::Whole);
    }

    #[test]
    fn a_body_without_length_ends_with_its_connection() {
        let mut reply = Reply::default();
        reply.begin(None);
        assert_eq!(reply.close(), Progress::Garbage, "half a reply is none");
        assert_eq!(reply.add(b"HTTP/1.1 200 OK\r\n\r\nsome"), Progress::Partial);
        assert_eq!((reply.close(), reply.status), (Progress::Last, 200));
    }

    #[test]
    fn garbage() {
        for text in ["SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"] {
            let mut reply = Reply::default();
            reply.begin(None);
            assert_eq!(reply.add(text.as_bytes()), Progress::Garbage, "{text}");
        }
        let mut reply = Reply::default();
        reply.begin(None);
        let piece = [b'a'; 4096];
        let endless = (0..).map(|_| reply.add(&piece)).find(|progress| *progress != Progress::Partial);
        assert_eq!(endless, Some(Progress::Garbage));
        reply.begin(None);
        reply.add(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        let endless = (0..100).map(|_| reply.add(&piece)).find(|progress| *progress != Progress::Partial);
        assert_eq!(endless, Some(Progress::Garbage), "a chunk's length that does not end");
        reply.begin(None);
        assert_eq!(
            reply.add(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc"),
            Progress::Garbage,
            "more than it says"
        );
    }

    #[test]
    fn replies_of_one_length() {
        let mut reply = Reply::default();
        reply.begin(Some(4));
        assert_eq!([reply.add(b"ab"), reply.add(b"cd")], [Progress::Partial, Progress::Whole]);
        reply.begin(Some(4));
        assert_eq!(reply.add(b"abcde"), Progress::Garbage);
    }
}
