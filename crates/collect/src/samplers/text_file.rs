// SPDX-License-Identifier: Apache-2.0
//! The plain sampler: one text file, one parser.

use std::path::PathBuf;

use super::reread::Reread;
use super::{Readings, Sampler, Scope};

/// Puts readings of a text into rows.
pub type Parse = fn(&str, &mut Readings);

/// One file that is read and parsed.
pub struct TextFile {
    name: &'static str,
    needs: &'static str,
    file: Reread,
    parse: Parse,
}

impl TextFile {
    /// A sampler called `name` for the file at `path`.
    pub fn new(name: &'static str, path: PathBuf, needs: &'static str, parse: Parse) -> Self {
        Self { name, needs, file: Reread::new(path), parse }
    }
}

impl Sampler for TextFile {
    fn name(&self) -> &'static str {
        self.name
    }

    fn needs(&self) -> &'static str {
        self.needs
    }

    fn sample(&mut self, _: &Scope, out: &mut Readings) -> Result<(), String> {
        (self.parse)(self.file.text()?, out);
        Ok(())
    }
}
