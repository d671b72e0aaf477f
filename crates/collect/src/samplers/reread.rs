// SPDX-License-Identifier: Apache-2.0
//! A file that is read again and again through one open descriptor.
//!
//! Besides the saved look-ups, an open `/proc/PID/net/…` keeps showing the same network namespace after
//! the process has gone, and an open `/proc/PID/stat` never shows a later process of the same number.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::mem::take;
use std::path::PathBuf;

/// A file to read many times.
#[derive(Debug)]
pub struct Reread {
    path: PathBuf,
    file: Option<File>,
    text: String,
}

impl Reread {
    /// Nothing is opened yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), file: None, text: String::new() }
    }

    /// A file that is open already.
    pub fn opened(path: impl Into<PathBuf>, file: File) -> Self {
        Self { path: path.into(), file: Some(file), text: String::new() }
    }

    /// Its text now; bytes that are no UTF-8 become U+FFFD: the kernel cuts names in the midst of a character.
    ///
    /// # Errors
    /// The file is missing or unreadable, in words with its path.
    pub fn text(&mut self) -> Result<&str, String> {
        if let Err(error) = self.read() {
            self.file = None;
            let words = error.to_string();
            let words = words.split(" (os error").next().unwrap_or_default();
            return Err(format!("cannot read {} ({words})", self.path.display()));
        }
        Ok(&self.text)
    }

    /// Its text as one number.
    pub fn number(&mut self) -> Option<f64> {
        self.text().ok()?.trim().parse().ok()
    }

    fn read(&mut self) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => {
                file.seek(SeekFrom::Start(0))?;
                file
            }
            none => none.insert(File::open(&self.path)?),
        };
        let mut bytes = take(&mut self.text).into_bytes(); // its room is used again
        bytes.clear();
        file.read_to_end(&mut bytes)?;
        self.text = String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn a_file_that_comes_later_is_found_and_new_content_seen() {
        let root = FakeRoot::new();
        let mut file = Reread::new(root.path().join("a/b"));
        assert!(file.text().unwrap_err().contains("a/b"));
        root.file("a/b", "12345\n");
        assert_eq!(file.number(), Some(12345.0));
        root.file("a/b", "6\n");
        assert_eq!(file.number(), Some(6.0));
    }

    #[test]
    fn a_name_that_was_cut_in_the_midst_of_a_character_is_read() {
        let root = FakeRoot::new();
        root.file("stat", b"7 (fourteen-bytes\xc3) S 1\n");
        assert_eq!(Reread::new(root.path().join("stat")).text(), Ok("7 (fourteen-bytes\u{fffd}) S 1\n"));
    }
}
