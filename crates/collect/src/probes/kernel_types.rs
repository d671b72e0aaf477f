// SPDX-License-Identifier: Apache-2.0
//! The few of the kernel's types that the probes read. The library that fits programs to the kernel looks through all of
//! its types, over a hundred thousand, for each name in each program's object: that was a quarter of what a capture
//! computed. Here they are read once, and each object is shown those that any of them names.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, memfd_create};

mod names {
    include!(concat!(env!("OUT_DIR"), "/kernel_types.rs"));
}

/// Where the kernel tells its types.
const ALL: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;

/// The types as a file for the library.
pub struct KernelTypes {
    /// The file, which stands in memory and lasts as long as this process.
    pub path: PathBuf,
    task: u32,
    sock: u32,
    /// Programs get memory from a store of their own.
    has_store: bool,
    /// Tracepoints that are there, and how many arguments each has.
    hooks: Vec<(&'static str, u32)>,
    reset_reasons: Vec<String>,
    drop_reasons: Vec<String>,
    _file: fs::File,
}

/// Reads them once; `None` = the library has to look for itself.
pub fn get() -> Option<&'static KernelTypes> {
    static TYPES: OnceLock<Option<KernelTypes>> = OnceLock::new();
    TYPES.get_or_init(read).as_ref()
}

/// The kernel's number of `struct task_struct`, 0 = not known.
pub fn task() -> u32 {
    get().map_or(0, |types| types.task)
}

/// The kernel's number of `struct sock`, 0 = not known.
pub fn sock() -> u32 {
    get().map_or(0, |types| types.sock)
}

/// Whether a program may make entries of a map wherever it runs: since Linux 6.1 (fba1a1c6c912) the kernel takes their memory
/// from a store of its own. Where its types cannot be read, it is taken to be of today.
pub fn makes_entries_anywhere() -> bool {
    get().is_none_or(|types| types.has_store)
}

/// Whether the kernel has a tracepoint, one of [`HOOKS`]. Where its types cannot be read, it is taken to be of today.
pub fn has_hook(name: &str) -> bool {
    get().is_none_or(|types| types.hooks.iter().any(|hook| hook.0 == name))
}

/// How many arguments a tracepoint has, one of [`HOOKS`]; 0 = not known.
pub fn arguments(name: &str) -> u32 {
    let found = get().and_then(|types| types.hooks.iter().find(|hook| hook.0 == name));
    found.map_or(0, |hook| hook.1)
}

/// The kernel's word for a reason to reset a connection, by its number: kernels number them differently.
pub fn reset_reason(number: usize) -> String {
    let name = get().and_then(|types| types.reset_reasons.get(number));
    name.map(|name| name.trim_start_matches("SK_RST_REASON_").to_string()).unwrap_or_default()
}

/// The same for a reason to drop a packet; parts of the kernel that have reasons of their own number them from 65,536 on.
pub fn drop_reason(number: usize) -> String {
    let Some(words) = get().map(|types| &types.drop_reasons).filter(|words| !words.is_empty()) else {
        return String::new();
    };
    words.get(number).map_or_else(|| number.to_string(), |name| name.trim_start_matches("SKB_DROP_REASON_").to_string())
}

/// The number of such a reason, by the kernel's word.
pub fn drop_reason_number(word: &str) -> Option<u32> {
    let named = |name: &String| name.strip_prefix("SKB_DROP_REASON_") == Some(word);
    get()?.drop_reasons.iter().position(named).and_then(|number| u32::try_from(number).ok())
}

/// Tracepoints that not all kernels have, or not with all arguments.
const HOOKS: [&str; 6] = [
    "tcp_sendmsg_locked",
    "sock_send_length",
    "tcp_retransmit_skb",
    "tcp_send_reset",
    "tcp_receive_reset",
    "kfree_skb",
];

fn read() -> Option<KernelTypes> {
    let all = fs::read(ALL).ok()?;
    let all = Types::parse(&all)?;
    let task = all.find(STRUCT, b"task_struct")?;
    let sock = all.find(STRUCT, b"sock")?;
    let has_store = all.find(STRUCT, b"bpf_mem_alloc").is_some();
    let hooks = all.hooks();
    let words = |of: &[u8]| all.find(ENUM, of).map(|id| all.values(id)).unwrap_or_default();
    let (reset_reasons, drop_reasons) = (words(b"sk_rst_reason"), words(b"skb_drop_reason"));
    let mut file = fs::File::from(memfd_create(c"kernel types", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(&all.keep(&names::NAMES)).ok()?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Some(KernelTypes { path, task, sock, has_store, hooks, reset_reasons, drop_reasons, _file: file })
}

// Kinds of a type, of include/uapi/linux/btf.h.
const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNCTION: u32 = 12;
const PROTOTYPE: u32 = 13;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;
const DECLARATION_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;

/// The kernel's types: words, of which each type has three and what its kind adds.
struct Types<'b> {
    words: &'b [[u8; 4]],
    names: &'b [u8],
    /// Where each type begins; that of number 0, void, is never read.
    starts: Vec<usize>,
}

impl<'b> Types<'b> {
    /// `None` = not the format of this kernel's headers.
    fn parse(bytes: &'b [u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let (magic, header) = (u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?), word(4)?);
        let part = |at: usize| bytes.get(header + word(at)?..header + word(at)? + word(at + 4)?);
        let (types, names) = (part(8)?, part(16)?);
        let words = types.as_chunks().0;
        let mut starts = Vec::with_capacity(words.len() / 5);
        starts.push(0);
        let mut at = 0;
        while at < words.len() {
            starts.push(at);
            at += 3 + more(u32::from_ne_bytes(*words.get(at + 1)?))?;
        }
        (magic == MAGIC && at == words.len()).then_some(Self { words, names, starts })
    }

    /// One of a type's words.
    fn word(&self, id: u32, at: usize) -> u32 {
        u32::from_ne_bytes(self.words[self.starts[id as usize] + at])
    }

    fn kind(&self, id: u32) -> u32 {
        kind(self.word(id, 1))
    }

    /// All words of a type.
    fn whole(&self, id: u32) -> Vec<u32> {
        let end = self.starts.get(id as usize + 1).map_or(self.words.len(), |next| *next);
        (0..end - self.starts[id as usize]).map(|at| self.word(id, at)).collect()
    }

    fn name(&self, at: u32) -> &'b [u8] {
        let rest = self.names.get(at as usize..).unwrap_or_default();
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    fn name_of(&self, id: u32) -> &'b [u8] {
        self.name(self.word(id, 0))
    }

    fn ids(&self) -> std::ops::Range<u32> {
        1..u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }

    fn find(&self, of_kind: u32, name: &[u8]) -> Option<u32> {
        self.ids().find(|id| self.kind(*id) == of_kind && self.name_of(*id) == name)
    }

    /// Which of [`HOOKS`] are there, and how many arguments each has: it is a pointer to a function, whose first argument is not
    /// the hook's.
    fn hooks(&self) -> Vec<(&'static str, u32)> {
        let mut found = Vec::new();
        for id in self.ids().filter(|id| self.kind(*id) == TYPEDEF) {
            let name = self.name_of(id).strip_prefix(b"btf_trace_").unwrap_or_default();
            if let Some(hook) = HOOKS.into_iter().find(|hook| hook.as_bytes() == name) {
                found.push((hook, self.arguments(id).unwrap_or(0)));
            }
        }
        found
    }

    fn arguments(&self, hook: u32) -> Option<u32> {
        let within = |id: u32, kind| (id < self.ids().end && id > 0 && self.kind(id) == kind).then_some(id);
        let function = within(self.word(within(self.word(hook, 2), POINTER)?, 2), PROTOTYPE)?;
        u32::try_from(len(self.word(function, 1))).ok()?.checked_sub(1)
    }

    /// Names of an enum's values, by the value; they are taken to begin at 0 and to leave none out.
    fn values(&self, id: u32) -> Vec<String> {
        let words = self.whole(id);
        words[3..].chunks_exact(2).map(|value| String::from_utf8_lossy(self.name(value[0])).into_owned()).collect()
    }

    /// The types with these names and all that they hold within themselves, in the same format. What a pointer leads to
    /// is left out: programs name the type of whatever they follow a pointer to.
    fn keep(&self, names: &[&str]) -> Vec<u8> {
        let named = |id: &u32| {
            matches!(self.kind(*id), STRUCT | UNION | ENUM | ENUM64 | TYPEDEF)
                && names.binary_search_by(|name| name.as_bytes().cmp(self.name_of(*id))).is_ok()
        };
        let mut kept: Vec<u32> = self.ids().filter(named).collect();
        let mut numbers: HashMap<u32, u32> = kept.iter().copied().zip(1..).collect();
        numbers.insert(0, 0); // void
        let mut out = Out::default();
        let mut next = 0;
        while let Some(id) = kept.get(next).copied() {
            next += 1;
            let mut words = self.whole(id);
            for at in holds(words[1]) {
                let held = words[at];
                let fresh = u32::try_from(kept.len() + 1).unwrap_or(u32::MAX);
                words[at] = *numbers.entry(held).or_insert_with(|| {
                    kept.push(held);
                    fresh
                });
            }
            if kind(words[1]) == POINTER {
                words[2] = 0;
            }
            for at in spells(words[1]) {
                words[at] = out.name(self.name(words[at]));
            }
            out.words.extend(words);
        }
        out.bytes()
    }
}

fn kind(info: u32) -> u32 {
    info >> 24 & 0x1f
}

fn len(info: u32) -> usize {
    (info & 0xffff) as usize
}

/// Words that a type has beside its first three; `None` = a kind that this was not made for.
fn more(info: u32) -> Option<usize> {
    Some(match kind(info) {
        INT | VARIABLE | DECLARATION_TAG => 1,
        ARRAY => 3,
        STRUCT | UNION | SECTION | ENUM64 => 3 * len(info),
        ENUM | PROTOTYPE => 2 * len(info),
        1..=ENUM64 => 0,
        _ => return None,
    })
}

/// Which words of a type are numbers of types that it holds within itself.
fn holds(info: u32) -> Vec<usize> {
    match kind(info) {
        ARRAY => vec![3, 4],
        STRUCT | UNION => (0..len(info)).map(|member| 4 + 3 * member).collect(),
        TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG | FUNCTION => vec![2],
        _ => Vec::new(),
    }
}

/// Which words of a type are names.
fn spells(info: u32) -> Vec<usize> {
    let each = match kind(info) {
        STRUCT | UNION | ENUM64 => 3,
        ENUM => 2,
        _ => return vec![0],
    };
    std::iter::once(0).chain((0..len(info)).map(|member| 3 + each * member)).collect()
}

/// What is kept.
#[derive(Default)]
struct Out<'b> {
    words: Vec<u32>,
    names: Vec<u8>,
    known: HashMap<&'b [u8], u32>,
}

impl<'b> Out<'b> {
    fn name(&mut self, name: &'b [u8]) -> u32 {
        if self.names.is_empty() {
            self.names.push(0);
            self.known.insert(b"", 0);
        }
        *self.known.entry(name).or_insert_with(|| {
            let at = u32::try_from(self.names.len()).unwrap_or(0);
            self.names.extend(name);
            self.names.push(0);
            at
        })
    }

    fn bytes(self) -> Vec<u8> {
        let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let (types, names) = (length(4 * self.words.len()), length(self.names.len()));
        // Magic number, version 1 and no flags; where types and names begin after the header, and their lengths.
        let first = MAGIC.to_ne_bytes().into_iter().chain([1, 0]);
        let header = [HEADER as u32, 0, types, types, names];
        let words = header.into_iter().chain(self.words).flat_map(u32::to_ne_bytes);
        first.chain(words).chain(self.names).collect()
    }
}

#[cfg(test)]
mod tests;
