// SPDX-License-Identifier: Apache-2.0
//! Which build of a program or library a process runs: the id that its linker wrote into a note.
//!
//! Two builds of one source have the same id or not, but a file with another id is another build.

use std::fmt::Write as _;

use crate::elf::Layout;
use crate::images::open;
use crate::maps;
use crate::source::Source;

/// Notes larger than this are not build ids: GNU's takes 36 bytes, Go's about 100.
const MAX_NOTE_BYTES: u64 = 4096;

/// Files looked at; a process with more mapped code shows its first ones.
const MAX_FILES: usize = 64;

/// A file that a process has mapped as code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// File name without its folder.
    pub file: String,
    /// The build id; else the file's size in bytes, which tells most builds apart.
    pub id: String,
}

/// Builds of the files whose code a process has mapped, in the order of their addresses. Empty if
/// the process has gone or may not be looked at.
pub fn builds(pid: u32) -> Vec<Build> {
    let mut found: Vec<Build> = Vec::new();
    for mapping in maps::read(pid).unwrap_or_default().iter().filter(|m| m.inode != 0).take(MAX_FILES) {
        let Ok(source) = open(pid, mapping) else { continue };
        let id = build_id(&source).unwrap_or_else(|| format!("{} bytes", source.len()));
        let build = Build { file: crate::images::file_name(&mapping.path), id };
        if !found.contains(&build) {
            found.push(build);
        }
    }
    found
}

fn build_id(source: &Source) -> Option<String> {
    let layout = Layout::read(source)?;
    let note = |section: &str| {
        let section = layout.section(section)?;
        description(&source.read(section.offset, section.size, MAX_NOTE_BYTES)?)
    };
    if let Some(id) = note(".note.gnu.build-id") {
        return Some(id.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}"); // writing to a string cannot fail
            hex
        }));
    }
    Some(String::from_utf8_lossy(&note(".note.go.buildid")?).into_owned())
}

/// What a note says: sizes of its name and of its text, its type, then both, each padded to 4 bytes.
fn description(note: &[u8]) -> Option<Vec<u8>> {
    let word = |at: usize| Some(u32::from_le_bytes(note.get(at..at + 4)?.try_into().ok()?) as usize);
    let (name, text) = (word(0)?, word(4)?);
    let from = 12_usize.checked_add(name.checked_next_multiple_of(4)?)?;
    let text = note.get(from..from.checked_add(text)?)?;
    (!text.is_empty()).then(|| text.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_any_shape() {
        let note = |name: u32, text: u32, rest: &[u8]| {
            [&name.to_le_bytes(), &text.to_le_bytes(), &[3, 0, 0, 0], rest].concat()
        };
        assert_eq!(description(&note(4, 2, b"GNU\0\xab\xcd")), Some(vec![0xab, 0xcd]));
        assert_eq!(description(&note(3, 2, b"Go\0\0ok")), Some(b"ok".to_vec()));
        for odd in [note(u32::MAX, 2, b"GNU\0ab"), note(4, u32::MAX, b"GNU\0ab"), note(4, 0, b"GNU\0"), vec![1; 11]] {
            assert_eq!(description(&odd), None, "{odd:?}");
        }
        assert_eq!(build_id(&Source::Bytes(b"no program".as_slice().into())), None);
    }

    #[test]
    fn this_test_has_a_build_id() {
        let mine = builds(std::process::id());
        let exe = std::env::current_exe().unwrap();
        let name = exe.file_name().unwrap().to_string_lossy();
        let id = &mine.iter().find(|b| b.file == name).unwrap().id;
        assert!(id.len() >= 16, "{id}");
        assert!(builds(u32::MAX).is_empty());
    }
}
