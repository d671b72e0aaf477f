// SPDX-License-Identifier: Apache-2.0
//! Where a reply ends: after as many bytes as the first one had, or where HTTP says so.

use anyhow::{Context, Result, bail, ensure};

/// How the end of a service's replies is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Replies {
    /// All have this many bytes.
    Alike(usize),
    /// They are HTTP/1.1.
    Http,
}

/// A reply on its way.
#[derive(Default)]
pub struct Reply {
    length: usize,
    text: Vec<u8>,
}

/// What the last piece of a reply has made of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// More has to come.
    Partial,
    /// It is whole.
    Whole,
    /// It is whole, and the service will close the connection.
    Last,
}

impl Reply {
    /// Adds what came.
    ///
    /// # Errors
    /// It is no reply, or one that says no.
    pub fn add(&mut self, replies: Replies, piece: &[u8]) -> Result<Progress> {
        self.length += piece.len();
        match replies {
            Replies::Alike(length) if self.length < length => Ok(Progress::Partial),
            Replies::Alike(length) => {
                ensure!(self.length == length, "replies have no constant length; this client cannot tell them apart");
                Ok(Progress::Whole)
            }
            Replies::Http => {
                self.text.extend_from_slice(piece);
                http(&self.text)
            }
        }
    }

    /// Whether nothing of it has come.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Makes room for the next.
    pub fn clear(&mut self) {
        self.length = 0;
        self.text.clear();
    }
}

fn http(text: &[u8]) -> Result<Progress> {
    let Some(head_length) = find(text, b"\r\n\r\n") else { return Ok(Progress::Partial) };
    let head = str::from_utf8(&text[..head_length]).context("the head of a reply is no text")?.to_ascii_lowercase();
    let status = head.lines().next().unwrap_or_default();
    ensure!(status.split(' ').nth(1).is_some_and(|code| code.starts_with('2')), "the service answered `{status}`");
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim));
    let body = &text[head_length + 4..];
    let whole = match (header("content-length"), header("transfer-encoding")) {
        (Some(length), _) => body.len() >= length.parse().context("a reply's content-length is no number")?,
        (None, Some("chunked")) => chunks_are_whole(body)?,
        (None, _) => bail!("a reply says no length: {status}"),
    };
    Ok(match whole {
        false => Progress::Partial,
        true if header("connection") == Some("close") => Progress::Last,
        true => Progress::Whole,
    })
}

fn chunks_are_whole(mut body: &[u8]) -> Result<bool> {
    while let Some(line) = find(body, b"\r\n") {
        let size = str::from_utf8(&body[..line])?.split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size.trim(), 16).context("a reply's chunk has no length")?;
        let end = line + 2 + size + 2;
        match size {
            0 => return Ok(body.len() >= end),
            _ if body.len() < end => return Ok(false),
            _ => body = &body[end..],
        }
    }
    Ok(false)
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reply piece by piece: each but the last byte leaves it partial.
    fn piecewise(text: &str) -> Progress {
        let (last, first) = text.as_bytes().split_last().unwrap();
        let mut reply = Reply::default();
        for byte in first {
            assert_eq!(reply.add(Replies::Http, &[*byte]).unwrap(), Progress::Partial, "{text}");
        }
        reply.add(Replies::Http, &[*last]).unwrap()
    }

    #[test]
    fn http_replies_end_where_they_say() {
        assert_eq!(piecewise("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), Progress::Whole);
        assert_eq!(piecewise("HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 2\r\n\r\nab"), Progress::Last);
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n2;x=y\r\n0\r\r\n0\r\n\r\n";
        assert_eq!(piecewise(chunked), Progress::Whole);
    }

    #[test]
    fn a_refusal_is_no_answer() {
        let mut reply = Reply::default();
        let error = reply.add(Replies::Http, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n").unwrap_err();
        assert!(error.to_string().contains("503"), "{error}");
    }

    #[test]
    fn replies_of_one_length() {
        let mut reply = Reply::default();
        assert_eq!(reply.add(Replies::Alike(4), b"ab").unwrap(), Progress::Partial);
        assert_eq!(reply.add(Replies::Alike(4), b"cd").unwrap(), Progress::Whole);
        assert!(reply.add(Replies::Alike(4), b"e").is_err());
        reply.clear();
        assert!(reply.is_empty());
    }
}
