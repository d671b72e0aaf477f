// SPDX-License-Identifier: Apache-2.0
//! All images seen, opened once each and kept open: a file in use cannot be lost by being deleted,
//! and its inode number cannot come to mean another file.

use std::{collections::HashMap, fs::File, io, os::unix::fs::MetadataExt, path::PathBuf, sync::Arc};

use rustix::{
    fs::OFlags,
    process::{Resource, getrlimit},
};

use crate::{
    image::{Image, RowTime},
    maps::Mapping,
    memory::Memory,
    source::{Source, open_regular},
};

/// Files that are held open; beyond that, frames have a module but no symbol.
const MAX_OPEN: usize = 512;

/// Of the files that this process may hold open they are one in so many, at most: memory of processes is held open too, and
/// whoever uses this crate has files of its own.
const ONE_IN: u64 = 4;

/// Images that are told apart at all.
const MAX_IMAGES: usize = 4096;

/// Call frame information, and tables of Go, that are kept for all images together.
const MAX_UNWIND_BYTES: u64 = 256 << 20;

/// Slices after which the call frame information of an image is let go if none of its code was on a stack: that of a large
/// program is 10 MB and more, and it takes milliseconds to read it again.
const REST_AFTER: u64 = 60;

/// Largest vdso that is read; Linux has one of 8 KB.
const MAX_VDSO_BYTES: u64 = 64 << 10;

/// Number of an image in the list.
pub(crate) type ImageId = u32;

/// What a mapping is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    Image(ImageId),
    /// Memory that no ELF file stands behind: compiled at run time.
    Anonymous,
}

/// The list of images.
pub(crate) struct Images {
    list: Vec<Image>,
    files: HashMap<((u32, u32), u64), Backing>,
    vdsos: HashMap<Vec<u8>, ImageId>,
    open: usize,
    max_open: usize,
    unwind_bytes_left: u64,
    /// Slices so far.
    slice: u64,
    row_time: RowTime,
}

impl Images {
    pub(crate) fn new() -> Self {
        let (list, files, vdsos, row_time) = Default::default();
        let max_open = max_open(getrlimit(Resource::Nofile).current);
        Images { list, files, vdsos, open: 0, max_open, unwind_bytes_left: MAX_UNWIND_BYTES, slice: 0, row_time }
    }

    /// The image of a mapping of process `pid`; `mem` reads the process's memory.
    pub(crate) fn of(&mut self, pid: u32, mapping: &Mapping, mem: Option<&File>) -> Backing {
        if mapping.inode != 0 {
            return self.file(pid, mapping);
        }
        if !mapping.path.starts_with('[') {
            return Backing::Anonymous;
        }
        // `[vdso]` is a binary, `[vsyscall]` only a name, `[heap]` is where code was written to.
        let id = match mapping.path.as_str() {
            "[vdso]" => self.vdso(mapping, mem),
            "[vsyscall]" => self.add(mapping.path.clone(), None),
            _ => None,
        };
        id.map_or(Backing::Anonymous, Backing::Image)
    }

    /// The image, with what its stacks are unwound by.
    pub(crate) fn get(&mut self, id: ImageId) -> Option<&mut Image> {
        let image = self.list.get_mut(id as usize)?;
        image.load_whole(&mut self.unwind_bytes_left, self.slice);
        Some(image)
    }

    /// The image, with what its functions are named by.
    pub(crate) fn for_naming(&mut self, id: ImageId) -> Option<&mut Image> {
        let image = self.list.get_mut(id as usize)?;
        image.load(&mut self.unwind_bytes_left);
        Some(image)
    }

    /// A slice has ended.
    pub(crate) fn end_slice(&mut self) {
        self.slice += 1;
        let since = self.slice.saturating_sub(REST_AFTER);
        self.list.iter_mut().for_each(|image| image.rest(&mut self.unwind_bytes_left, since));
    }

    fn file(&mut self, pid: u32, mapping: &Mapping) -> Backing {
        let key = (mapping.device, mapping.inode);
        let known = self.files.get(&key).copied();
        let unopened = |id: ImageId| self.list.get(id as usize).is_some_and(|i| i.source.is_none());
        match known {
            Some(Backing::Image(id)) if unopened(id) => {}
            Some(backing) => return backing,
            None => {}
        }
        let source = (self.open < self.max_open).then(|| open(pid, mapping)).and_then(Result::ok);
        let backing = match (known, source) {
            // Code in a file that is no program: .NET and others write theirs to a memfd.
            (_, Some(source)) if source.read(0, 4, 4).as_deref() != Some(b"\x7fELF") => Backing::Anonymous,
            (Some(Backing::Image(id)), Some(source)) => {
                self.open += 1;
                self.list[id as usize].replace(source);
                Backing::Image(id)
            }
            (Some(backing), _) => backing,
            (None, source) => {
                self.open += usize::from(source.is_some());
                self.add(file_name(&mapping.path), source).map_or(Backing::Anonymous, Backing::Image)
            }
        };
        if self.files.len() < MAX_IMAGES {
            self.files.insert(key, backing);
        }
        backing
    }

    fn vdso(&mut self, mapping: &Mapping, mem: Option<&File>) -> Option<ImageId> {
        let size = mapping.end.checked_sub(mapping.start).filter(|size| *size <= MAX_VDSO_BYTES)?;
        // Compared whole: a process can write to its own copy, which must not change others' names.
        let bytes = Memory::read(mem?, mapping.start, usize::try_from(size).ok()?)?.into_bytes();
        if let Some(id) = self.vdsos.get(&bytes) {
            return Some(*id);
        }
        let id = self.add(mapping.path.clone(), Some(Source::Bytes(Arc::from(bytes.as_slice()))))?;
        self.vdsos.insert(bytes, id);
        Some(id)
    }

    fn add(&mut self, name: String, source: Option<Source>) -> Option<ImageId> {
        let id = u32::try_from(self.list.len()).ok().filter(|_| self.list.len() < MAX_IMAGES)?;
        self.list.push(Image::new(name, source, self.row_time.clone()));
        Some(id)
    }
}

/// How many files may be held open where this process may have so many in all; none = no limit.
fn max_open(limit: Option<u64>) -> usize {
    limit.and_then(|limit| usize::try_from(limit / ONE_IN).ok()).map_or(MAX_OPEN, |part| part.min(MAX_OPEN))
}

/// Opens the mapped file itself, which works when it is deleted or in another mount namespace, but
/// needs CAP_SYS_ADMIN; else what is at its path now, if that is still the same file.
pub(crate) fn open(pid: u32, mapping: &Mapping) -> io::Result<Source> {
    let exact = format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end);
    let file = open_regular(exact.as_ref(), OFlags::empty()).or_else(|_| by_path(pid, mapping))?;
    Ok(Source::File(Arc::new(file)))
}

fn by_path(pid: u32, mapping: &Mapping) -> io::Result<File> {
    let path = PathBuf::from(format!("/proc/{pid}/root{}", mapping.path));
    let file = open_regular(&path, OFlags::empty())?;
    // The device cannot be compared: some file systems show another one in `maps`.
    if file.metadata()?.ino() == mapping.inode { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

pub(crate) fn file_name(path: &str) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps;
    use gimli::UnwindContext;

    /// The image of this program, and the address of a function in it.
    fn own(images: &mut Images) -> (ImageId, u64) {
        let here = own as *const () as u64;
        let all = maps::read(std::process::id()).unwrap();
        let mapping = all.iter().find(|m| (m.start..m.end).contains(&here)).unwrap();
        let Backing::Image(id) = images.of(std::process::id(), mapping, None) else { panic!("{mapping:?}") };
        let offset = here - mapping.start + mapping.offset;
        (id, images.for_naming(id).unwrap().vaddr(offset).unwrap())
    }

    #[test]
    fn most_of_few_files_is_left_to_others() {
        assert_eq!([Some(256), Some(1024), Some(1 << 20), None].map(max_open), [64, 256, 512, 512]);
    }

    #[test]
    fn what_nobody_needs_is_let_go_and_read_again() {
        let mut images = Images::new();
        let (id, vaddr) = own(&mut images);
        let mut context = UnwindContext::new();
        assert_eq!(images.unwind_bytes_left, MAX_UNWIND_BYTES, "a name needs none of it");
        let row = images.get(id).unwrap().row(vaddr, &mut context);
        let left = images.unwind_bytes_left;
        assert!(row.is_some() && left < MAX_UNWIND_BYTES);
        (0..REST_AFTER).for_each(|_| images.end_slice());
        assert_eq!(images.unwind_bytes_left, left, "a minute has not passed");
        images.end_slice();
        assert_eq!(images.unwind_bytes_left, MAX_UNWIND_BYTES);
        assert_eq!(images.get(id).unwrap().row(vaddr, &mut context), row);
        assert_eq!(images.unwind_bytes_left, left);
    }
}
