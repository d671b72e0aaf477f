// SPDX-License-Identifier: Apache-2.0
//! Where a reply ends, and whether it is one. Replies come from anybody: nothing of a body is kept, and a head that does
//! not end is no head.

/// The longest head; longer ones are no HTTP.
const MAX_HEAD: usize = 64 << 10;
/// Headers of one head.
const MAX_HEADERS: usize = 128;
/// The longest line between two chunks.
const MAX_CHUNK_LINE: usize = 4096;

/// A reply on its way.
#[derive(Debug, Default)]
pub struct Reply {
    /// Bytes so far, heads included.
    pub bytes: u64,
    /// HTTP status; 0 = not known yet, or no HTTP.
    pub status: u16,
    at: At,
    /// Head or line that is not whole yet.
    text: Vec<u8>,
    /// The connection ends after this reply.
    closes: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum At {
    #[default]
    Head,
    /// So many bytes of the body are left.
    Body(u64),
    /// The line with a chunk's length comes next.
    ChunkLine,
    /// So many bytes of the chunk are left, its line break included.
    Chunk(u64),
    /// Lines after the last chunk, up to an empty one.
    Trailer,
    /// The body ends with the connection.
    UntilClosed,
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
        self.at = expected.map_or(At::Head, At::Body);
    }

    /// Whether nothing of it has come.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Adds what came.
    pub fn add(&mut self, mut piece: &[u8]) -> Progress {
        self.bytes += piece.len() as u64;
        loop {
            let done = match self.at {
                At::Head => self.head(&mut piece),
                At::Body(left) => {
                    let taken = take(&mut piece, left);
                    self.at = At::Body(left - taken);
                    if left == taken { Some(self.whole(piece)) } else { None }
                }
                At::Chunk(left) => {
                    let taken = take(&mut piece, left);
                    self.at = if left == taken { At::ChunkLine } else { At::Chunk(left - taken) };
                    None
                }
                At::ChunkLine | At::Trailer => self.line(&mut piece),
                At::UntilClosed => {
                    piece = &[];
                    None
                }
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
        if self.at == At::UntilClosed { Progress::Last } else { Progress::Garbage }
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
        let had = self.text.len();
        self.text.extend_from_slice(&piece[..piece.len().min(MAX_HEAD + 1)]);
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(&self.text) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if self.text.len() <= MAX_HEAD => {
                *piece = &[];
                return None;
            }
            _ => return Some(Progress::Garbage),
        };
        let status = response.code.unwrap_or_default();
        let body = body_of(status, response.headers, response.version == Some(0));
        *piece = &piece[length - had..];
        self.text.clear();
        if (100..200).contains(&status) {
            return if status == 101 { Some(Progress::Garbage) } else { None };
        }
        self.status = status;
        let Some((at, closes)) = body else { return Some(Progress::Garbage) };
        (self.at, self.closes) = (at, closes);
        (at == At::Body(0)).then(|| self.whole(piece))
    }

    /// A line of chunked coding.
    fn line(&mut self, piece: &mut &[u8]) -> Option<Progress> {
        let Some(end) = piece.iter().position(|byte| *byte == b'\n') else {
            self.text.extend_from_slice(&piece[..piece.len().min(MAX_CHUNK_LINE + 1)]);
            *piece = &[];
            return (self.text.len() > MAX_CHUNK_LINE).then_some(Progress::Garbage);
        };
        self.text.extend_from_slice(&piece[..end.min(MAX_CHUNK_LINE)]);
        *piece = &piece[end + 1..];
        let text = std::mem::take(&mut self.text);
        let line = text.strip_suffix(b"\r").unwrap_or(&text);
        if self.at == At::Trailer {
            return line.is_empty().then(|| self.whole(piece));
        }
        let size = line.split(|byte| *byte == b';').next().and_then(|size| str::from_utf8(size).ok()).map(str::trim);
        match size.and_then(|size| u64::from_str_radix(size, 16).ok()) {
            Some(0) => self.at = At::Trailer,
            Some(size) => self.at = At::Chunk(size.saturating_add(2)),
            None => return Some(Progress::Garbage),
        }
        None
    }
}

/// Where a body begins to be, and whether the connection ends after it; none = the head contradicts itself.
fn body_of(status: u16, headers: &[httparse::Header<'_>], is_old: bool) -> Option<(At, bool)> {
    let values = |name: &'static str| {
        let named = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| str::from_utf8(header.value).unwrap_or_default().trim())
    };
    let says = |name, word: &str| {
        values(name).flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let closes = says("connection", "close") || is_old && !says("connection", "keep-alive");
    if matches!(status, 204 | 304) {
        return Some((At::Body(0), closes));
    }
    if says("transfer-encoding", "chunked") {
        return Some((At::ChunkLine, closes));
    }
    match values("content-length").next() {
        Some(length) => Some((At::Body(length.parse().ok()?), closes)),
        None => Some((At::UntilClosed, true)),
    }
}

/// Takes up to `limit` bytes off the piece.
fn take(piece: &mut &[u8], limit: u64) -> u64 {
    let taken = piece.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
    *piece = &piece[taken..];
    taken as u64
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
