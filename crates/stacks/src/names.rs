// SPDX-License-Identifier: Apache-2.0
//! Names for many frames at once: kernel symbols, ELF symbols and line tables, perf maps.
//!
//! Names come from files the observed user controls. They are kept as they are (whoever prints
//! them escapes them) but for their length, and the time spent on them has a limit: what is not
//! named by then stays a module and an offset.

mod demangle;
mod kernel;
mod lines;
pub(crate) mod perf_map;
mod sections;
mod symbols;

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use recording::tables::Frame;
use rustix::fs::OFlags;

use crate::{
    elf::Layout,
    golang::Runtime,
    image::Image,
    images::{ImageId, Images},
    source::{Source, open_regular},
    table::Code,
};
use perf_map::PerfMaps;

/// Longest name that is kept, in bytes.
const MAX_NAME_BYTES: usize = 512;

/// Time for the names of all images, and of those that were expected to be quickly done.
const TIME_LIMIT: Duration = Duration::from_secs(10);
const TIME_LIMIT_OF_BYTES: Duration = Duration::from_secs(1);

/// Name and source line of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    symbol: String,
    source: String,
}

/// Who knows the names of the kernel's functions.
pub enum KernelNames<'a> {
    /// The list of all that `/proc/kallsyms` prints, which takes the kernel some 0.1 s.
    List,
    /// Somebody who is asked for the function that holds an address.
    By(&'a mut dyn FnMut(u64) -> Option<String>),
}

/// How much is named at once.
#[derive(Clone, Copy, Debug)]
pub enum Effort {
    /// Everything that has no name yet.
    All,
    /// What is quickly done: files whose tables have so many bytes together. Code that was compiled at run time waits until
    /// all is named, because the list of it grows.
    Bytes(u64),
}

/// Frames that have no row yet.
#[derive(Default)]
pub(crate) struct Unnamed {
    pub(crate) frames: Vec<(u32, Code)>,
    /// What has to be read for the names of an image, bytes.
    costs: HashMap<ImageId, u64>,
}

/// Rows for as many of the frames as the effort allows. Those of `lined` get source lines too.
pub(crate) fn resolve(
    unnamed: &mut Unnamed,
    effort: Effort,
    lined: &HashSet<u32>,
    (images, perf_maps, kernel): (&mut Images, &mut PerfMaps, &mut KernelNames<'_>),
) -> Vec<Frame> {
    let chosen = unnamed.affordable(effort, images);
    let is_all = matches!(effort, Effort::All);
    let is_now = |(_, code): &(u32, Code)| match code {
        Code::Unknown => true,
        Code::Kernel(_) => is_all || matches!(kernel, KernelNames::By(_)),
        Code::Image(image, _) => chosen.contains(image),
        Code::Jit(..) => is_all,
    };
    let (mut now, later) = std::mem::take(&mut unnamed.frames).into_iter().partition::<Vec<_>, _>(is_now);
    unnamed.frames = later;
    now.sort_unstable_by_key(|(id, _)| *id);
    now.dedup_by_key(|(id, _)| *id);
    let mut frames: Vec<Frame> = now.iter().map(|(id, code)| blank(*id, *code)).collect();
    let mut of_kernel = Vec::new();
    let mut of_images: HashMap<ImageId, Vec<(usize, u64)>> = HashMap::new();
    for (row, (_, code)) in now.iter().enumerate() {
        match code {
            Code::Unknown => {}
            Code::Kernel(address) => of_kernel.push((row, *address)),
            Code::Image(id, offset) => of_images.entry(*id).or_default().push((row, *offset)),
            Code::Jit(space, address) => name_jit(&mut frames[row], perf_maps.name(*space, *address), *address),
        }
    }
    name_kernel(kernel, &of_kernel, &mut frames);
    // Where most of the samples are, first: it is the last that miss the time limit.
    let mut of_images: Vec<_> = of_images.into_iter().collect();
    of_images.sort_unstable_by_key(|(id, rows)| (std::cmp::Reverse(rows.len()), *id));
    let deadline = Instant::now() + if is_all { TIME_LIMIT } else { TIME_LIMIT_OF_BYTES };
    let mut too_late = HashSet::new();
    for (id, rows) in of_images {
        if let Some(image) = images.for_naming(id) {
            name_image(image, &rows, lined, &mut frames, deadline);
        }
        // It was not quickly done after all, or nobody else has a CPU to spare: its turn comes when all is named.
        if !is_all && Instant::now() >= deadline {
            unnamed.costs.insert(id, u64::MAX);
            too_late.extend(rows.into_iter().map(|(row, _)| now[row]));
        }
    }
    frames.retain(|frame| !too_late.iter().any(|(id, _)| *id == frame.id));
    unnamed.frames.extend(too_late);
    frames
}

fn name_kernel(kernel: &mut KernelNames<'_>, addresses: &[(usize, u64)], frames: &mut [Frame]) {
    match kernel {
        KernelNames::List => kernel::name(addresses, frames),
        KernelNames::By(name) => {
            for (row, address) in addresses {
                frames[*row].symbol = clip(&name(*address).unwrap_or_default());
            }
        }
    }
}

impl Unnamed {
    /// Images that can be named with this effort, those with most frames first.
    fn affordable(&mut self, effort: Effort, images: &mut Images) -> HashSet<ImageId> {
        let mut waiting: HashMap<ImageId, usize> = HashMap::new();
        for (_, code) in &self.frames {
            if let Code::Image(id, _) = code {
                *waiting.entry(*id).or_default() += 1;
            }
        }
        let mut left = match effort {
            Effort::All => return waiting.into_keys().collect(),
            Effort::Bytes(bytes) => bytes,
        };
        let mut waiting: Vec<(ImageId, usize)> = waiting.into_iter().collect();
        waiting.sort_unstable_by_key(|(id, frames)| (std::cmp::Reverse(*frames), *id));
        let mut is_affordable = |id: &ImageId| {
            let cost = *self
                .costs
                .entry(*id)
                .or_insert_with(|| images.for_naming(*id).map_or(0, |image| bytes_to_read(image)));
            let paid = left.checked_sub(cost);
            left = paid.unwrap_or(left);
            paid.is_some()
        };
        waiting.into_iter().map(|(id, _)| id).filter(|id| is_affordable(id)).collect()
    }
}

/// What has to be read of a file and of its separate debug file, to name a function in it. Debug information may have to be
/// unpacked, which takes ten times as long.
fn bytes_to_read(image: &Image) -> u64 {
    const UNPACKED: u64 = 10;
    let (Some(source), Some(layout)) = (&image.source, image.layout()) else { return 0 };
    let section = |name: &str| layout.section(name).map_or(0, |section| section.size);
    let tables = [".symtab", ".strtab", ".dynsym", ".dynstr"].map(section);
    let lines = if is_c_library(&image.name) { 0 } else { section(".debug_info") + section(".debug_line") };
    let separate = debug_file(source, layout).map_or(0, |file| file.len());
    let all = [lines.saturating_mul(UNPACKED), separate.saturating_mul(UNPACKED)];
    tables.into_iter().chain(all).fold(0, u64::saturating_add)
}

/// Where nobody wrote down the names of code compiled at run time, its address is all that tells one function
/// from another.
fn name_jit(frame: &mut Frame, name: Option<String>, address: u64) {
    match name {
        Some(name) => frame.symbol = name,
        None => frame.offset = address,
    }
}

fn blank(id: u32, code: Code) -> Frame {
    let (kind, module, offset) = match code {
        Code::Unknown => ("unknown", "", 0),
        Code::Kernel(_) => ("kernel", "kernel", 0),
        Code::Image(_, offset) => ("native", "", offset),
        Code::Jit(..) => ("jit", "[jit]", 0),
    };
    Frame { id, kind: kind.into(), module: module.into(), offset, ..Frame::default() }
}

fn name_image(image: &Image, rows: &[(usize, u64)], lined: &HashSet<u32>, frames: &mut [Frame], deadline: Instant) {
    let mut addresses: Vec<u64> = rows.iter().filter_map(|(_, offset)| image.vaddr(*offset)).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let is_lined = |row: usize| lined.contains(&frames[row].id) && !is_c_library(&image.name);
    let with_lines = rows.iter().filter(|(row, _)| is_lined(*row));
    let with_lines: HashSet<u64> = with_lines.filter_map(|(_, offset)| image.vaddr(*offset)).collect();
    let mut named = Vec::new();
    if Instant::now() < deadline {
        named = name_addresses(image, &addresses, &with_lines, deadline);
    }
    for (row, offset) in rows {
        let frame = &mut frames[*row];
        frame.module = clip(&image.name);
        let at = image.vaddr(*offset).and_then(|vaddr| addresses.binary_search(&vaddr).ok());
        if let Some(found) = at.and_then(|at| named.get(at)) {
            frame.symbol = found.symbol.clone();
            frame.source = found.source.clone();
        }
    }
}

/// Whether a file is the C library, whose lines help nobody: what is slow was written by who called it. Its debug
/// information is installed on many a host, and to unpack it took longer than to judge.
fn is_c_library(path: &str) -> bool {
    const FILES: [&str; 6] = ["libc.so", "libc-2", "ld-linux", "ld-musl", "libpthread", "libm.so"];
    let file = path.rsplit('/').next().unwrap_or(path);
    FILES.iter().any(|name| file.starts_with(name))
}

/// Names of sorted addresses, and source lines of some of them: from Go's own table, which is there and quickly read where
/// everything else was stripped, from the file, and from its separate debug file for what is missing.
pub(crate) fn name_addresses(
    image: &Image,
    addresses: &[u64],
    with_lines: &HashSet<u64>,
    deadline: Instant,
) -> Vec<Named> {
    let mut named = vec![Named::default(); addresses.len()];
    let (Some(source), Some(layout)) = (&image.source, image.layout()) else { return named };
    if let Some(go) = image.go() {
        for (named, vaddr) in named.iter_mut().zip(addresses).take_while(|_| Instant::now() < deadline) {
            name_go(named, go, *vaddr);
        }
    }
    name_from(source, layout, (addresses, with_lines), &mut named, deadline);
    if let Some(debug) = debug_file(source, layout)
        && let Some(layout) = Layout::read(&debug)
    {
        name_from(&debug, &layout, (addresses, with_lines), &mut named, deadline);
    }
    named
}

fn name_go(named: &mut Named, go: &Runtime, vaddr: u64) {
    named.symbol = clip(&go.name(vaddr).unwrap_or_default());
    named.source = go.line(vaddr).map(|(file, line)| format!("{}:{line}", clip(&file))).unwrap_or_default();
}

fn name_from(
    source: &Source,
    layout: &Layout,
    (addresses, with_lines): (&[u64], &HashSet<u64>),
    named: &mut [Named],
    deadline: Instant,
) {
    let symbols = symbols::find(source, layout, addresses, deadline);
    for (named, symbol) in named.iter_mut().zip(symbols) {
        // A debug file knows local functions too, so its name is the better one; but a file
        // without symbols must not take a name away.
        if let Some(symbol) = symbol {
            named.symbol = demangle::demangle(&symbol);
        }
    }
    let unlined = |at: &usize| named[*at].source.is_empty() && with_lines.contains(&addresses[*at]);
    let places: Vec<usize> = (0..addresses.len()).filter(unlined).collect();
    if places.is_empty() {
        return;
    }
    let wanted: Vec<u64> = places.iter().map(|at| addresses[*at]).collect();
    for (at, line) in places.into_iter().zip(lines::find(source, layout, &wanted, deadline)) {
        named[at].source = line.unwrap_or_default();
    }
}

/// The separate debug file that the distribution installed for this build.
fn debug_file(source: &Source, layout: &Layout) -> Option<Source> {
    let note = layout.section(".note.gnu.build-id")?;
    let note = source.read(note.offset, note.size, 4096)?;
    // The note's header is 12 bytes and its owner, "GNU\0", 4.
    let id = note.get(16..).filter(|id| (2..=64).contains(&id.len()))?;
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..]));
    Some(Source::File(Arc::new(open_regular(&path, OFlags::empty()).ok()?)))
}

/// At most [`MAX_NAME_BYTES`] of a name, cut between characters.
fn clip(name: &str) -> String {
    let end = (0..=MAX_NAME_BYTES.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name[..end.unwrap_or(0)].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(clip("main"), "main");
        let long = clip(&format!("a{}", "ü".repeat(400)));
        assert_eq!((long.len(), long.chars().count()), (511, 256));
    }

    #[test]
    fn the_c_library_is_told_from_what_looks_like_it() {
        assert!(
            ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib/ld-musl-x86_64.so.1", "libc-2.31.so"].map(is_c_library)
                == [true; 3]
        );
        assert!(["/opt/libcurl.so.4", "/usr/bin/libc", "/srv/libc.so/app"].map(is_c_library) == [false; 3]);
    }

    #[test]
    fn unnamed_code_has_a_kind_and_a_module() {
        let (mut images, mut maps, mut kernel) = (Images::new(), PerfMaps::default(), KernelNames::List);
        let frames =
            vec![(1, Code::Unknown), (2, Code::Jit(7, 0x7f00_0040)), (1, Code::Unknown), (3, Code::Image(9, 1))];
        let mut unnamed = Unnamed { frames, ..Unnamed::default() };
        let mut named = |effort| resolve(&mut unnamed, effort, &HashSet::new(), (&mut images, &mut maps, &mut kernel));
        let quickly = named(Effort::Bytes(1 << 20));
        assert_eq!(quickly.iter().map(|f| f.id).collect::<Vec<_>>(), [1, 3], "each once, and no list of compiled code");
        let frames = [quickly, named(Effort::All)].concat();
        let frames = [&frames[0], &frames[2]];
        assert_eq!((frames[0].kind.as_str(), frames[0].module.as_str()), ("unknown", ""));
        assert_eq!((frames[1].kind.as_str(), frames[1].module.as_str()), ("jit", "[jit]"));
        assert_eq!(frames[1].offset, 0x7f00_0040, "its address, which tells it from other functions");
        assert_eq!((frames[0].id, frames[1].id), (1, 2));
    }
}
