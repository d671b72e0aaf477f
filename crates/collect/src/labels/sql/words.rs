// SPDX-License-Identifier: Apache-2.0
//! A statement as words. Values and comments are left out; where a quote could be read in two ways, or has no end, the words
//! end.

/// A part of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word<'t> {
    /// A name or a keyword.
    Name(&'t [u8]),
    /// What stands between double quotes or backticks.
    Quoted(&'t [u8]),
    /// Another character; a value is a blank.
    Other(u8),
}

/// The words of a statement.
#[derive(Clone, Copy)]
pub struct Words<'t> {
    rest: &'t [u8],
    /// The end of the statement is not known, so that its last word may be a part of one.
    cut: bool,
}

impl<'t> Words<'t> {
    pub fn new(text: &'t [u8], cut: bool) -> Self {
        Self { rest: text, cut }
    }

    fn skip_blanks_and_comments(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_ascii_start();
            if self.rest.starts_with(b"--") {
                let end = self.rest.iter().position(|byte| *byte == b'\n')?;
                self.rest = &self.rest[end..];
            } else if self.rest.starts_with(b"/*") {
                let end = self.rest.windows(2).skip(2).position(|two| two == b"*/")?;
                self.rest = &self.rest[end + 4..];
            } else {
                return Some(());
            }
        }
    }

    fn take(&mut self, length: usize) -> &'t [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// What stands between quotes. A quote within is written twice, and makes two words here.
    fn quoted(&mut self, quote: u8) -> Option<&'t [u8]> {
        let inner = &self.rest[1..];
        let end = inner.iter().position(|byte| *byte == quote)?;
        let inner = &inner[..end];
        self.take(end + 2);
        (!inner.contains(&b'\\')).then_some(inner)
    }

    /// A name or a value without quotes.
    fn run(&mut self) -> Option<&'t [u8]> {
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || **byte >= 0x80;
        let length = self.rest.iter().take_while(is_part).count();
        let is_whole = length < self.rest.len() || !self.cut;
        is_whole.then(|| self.take(length))
    }
}

impl<'t> Iterator for Words<'t> {
    type Item = Word<'t>;

    fn next(&mut self) -> Option<Word<'t>> {
        const VALUE: u8 = b' ';
        let word = self.skip_blanks_and_comments().and_then(|()| match self.rest {
            [quote @ (b'"' | b'`'), ..] => self.quoted(*quote).map(Word::Quoted),
            [b'\'', ..] => self.quoted(b'\'').map(|_| Word::Other(VALUE)),
            [b'$', digit, ..] if digit.is_ascii_digit() => self.run().map(|_| Word::Other(VALUE)),
            // A quote that ends where the same word comes again.
            [b'$' | b'\\', ..] => None,
            [byte, ..] if byte.is_ascii_digit() => self.run().map(|_| Word::Other(VALUE)),
            [byte, ..] if byte.is_ascii_alphabetic() || *byte == b'_' || *byte >= 0x80 => self.run().map(Word::Name),
            [byte, ..] => {
                self.take(1);
                Some(Word::Other(*byte))
            }
            [] => None,
        });
        if word.is_none() {
            self.rest = &[]; // nothing that follows can be trusted
        }
        word
    }
}
