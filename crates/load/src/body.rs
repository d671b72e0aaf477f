// SPDX-License-Identifier: Apache-2.0
//! Where the body of an HTTP/1.1 message ends, be it a request's or a reply's. Nothing of it is kept.

/// Headers of one head.
pub(crate) const MAX_HEADERS: usize = 128;
/// The longest line between two chunks.
const MAX_CHUNK_LINE: usize = 4096;

/// What comes next of a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum At {
    /// So many bytes are left.
    Bytes(u64),
    /// The line with a chunk's length.
    ChunkLine,
    /// So many bytes of the chunk are left, its line break included.
    Chunk(u64),
    /// Lines after the last chunk, up to an empty one.
    Trailer,
    /// It ends with the connection.
    UntilClosed,
}

/// What the last piece has made of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More has to come.
    Partial,
    /// It is whole.
    Whole,
    /// It is none.
    Garbage,
}

/// A body on its way.
#[derive(Debug)]
pub(crate) struct Body {
    at: At,
    /// A line that is not whole yet.
    line: Vec<u8>,
}

impl Body {
    pub(crate) const fn new(at: At) -> Self {
        Self { at, line: Vec::new() }
    }

    pub(crate) fn ends_with_connection(&self) -> bool {
        self.at == At::UntilClosed
    }

    /// Takes what is the body's off the piece.
    pub(crate) fn take(&mut self, piece: &mut &[u8]) -> Progress {
        loop {
            let done = match self.at {
                At::Bytes(left) => {
                    let taken = take(piece, left);
                    self.at = At::Bytes(left - taken);
                    if left == taken { Progress::Whole } else { Progress::Partial }
                }
                At::Chunk(left) => {
                    let taken = take(piece, left);
                    self.at = if left == taken { At::ChunkLine } else { At::Chunk(left - taken) };
                    Progress::Partial
                }
                At::ChunkLine | At::Trailer => self.line(piece),
                At::UntilClosed => {
                    *piece = &[];
                    Progress::Partial
                }
            };
            if done != Progress::Partial || piece.is_empty() {
                return done;
            }
        }
    }

    /// A line of chunked coding.
    fn line(&mut self, piece: &mut &[u8]) -> Progress {
        let Some(end) = piece.iter().position(|byte| *byte == b'\n') else {
            self.line.extend_from_slice(&piece[..piece.len().min(MAX_CHUNK_LINE + 1)]);
            *piece = &[];
            return if self.line.len() > MAX_CHUNK_LINE { Progress::Garbage } else { Progress::Partial };
        };
        // Also in one piece, so that it does not depend on how it was cut.
        if self.line.len() + end > MAX_CHUNK_LINE {
            return Progress::Garbage;
        }
        self.line.extend_from_slice(&piece[..end]);
        *piece = &piece[end + 1..];
        let text = std::mem::take(&mut self.line);
        let line = text.strip_suffix(b"\r").unwrap_or(&text);
        if self.at == At::Trailer {
            return if line.is_empty() { Progress::Whole } else { Progress::Partial };
        }
        let size = line.split(|byte| *byte == b';').next().and_then(|size| str::from_utf8(size).ok()).map(str::trim);
        match size.and_then(|size| u64::from_str_radix(size, 16).ok()) {
            Some(0) => self.at = At::Trailer,
            Some(size) => self.at = At::Chunk(size.saturating_add(2)),
            None => return Progress::Garbage,
        }
        Progress::Partial
    }
}

/// The headers of a head.
pub(crate) struct Headers<'h>(pub(crate) &'h [httparse::Header<'h>]);

impl<'h> Headers<'h> {
    /// The values of one of them, each time that it stands there.
    pub(crate) fn values(&self, name: &'static str) -> impl Iterator<Item = &'h str> + use<'h> {
        let named = self.0.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| str::from_utf8(header.value).unwrap_or_default().trim())
    }

    /// Whether a word is in the list that a header is.
    pub(crate) fn says(&self, name: &'static str, word: &str) -> bool {
        self.values(name).flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    }

    /// Whether the connection ends after this message; `is_old` = it is of HTTP/1.0.
    pub(crate) fn closes(&self, is_old: bool) -> bool {
        self.says("connection", "close") || is_old && !self.says("connection", "keep-alive")
    }
}

/// Takes up to `limit` bytes off the piece.
pub(crate) fn take(piece: &mut &[u8], limit: u64) -> u64 {
    let taken = piece.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
    *piece = &piece[taken..];
    taken as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a body comes to that is cut into pieces of so many bytes.
    fn in_pieces(text: &str, size: usize) -> Progress {
        let mut body = Body::new(At::ChunkLine);
        let mut pieces = text.as_bytes().chunks(size).map(|mut piece| body.take(&mut piece));
        pieces.find(|progress| *progress != Progress::Partial).unwrap_or(Progress::Partial)
    }

    #[test]
    fn a_line_that_is_too_long_is_garbage_however_it_is_cut() {
        for (more, expected) in [(0, Progress::Whole), (1, Progress::Garbage)] {
            // The line break's first byte counts.
            let chunk = format!("2;{}\r\nab\r\n0\r\n\r\n", "x".repeat(MAX_CHUNK_LINE - 3 + more));
            let trailer = format!("0\r\nT: {}\r\n\r\n", "x".repeat(MAX_CHUNK_LINE - 4 + more));
            for text in [chunk, trailer] {
                let ends = [1, 7, 4090, text.len()].map(|size| in_pieces(&text, size));
                assert_eq!(ends, [expected; 4], "{more}: {}", &text[..4]);
            }
        }
    }
}
