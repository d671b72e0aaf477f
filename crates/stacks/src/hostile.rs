// SPDX-License-Identifier: Apache-2.0
//! Broken files: nothing that is read from one may panic, hang or eat the memory.

use std::{process::Command, sync::Arc};

use testing::{given, need};

use crate::{fuzzing::use_file, source::Source};

/// Numbers without meaning, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// A program with symbols, lines and unwind information.
fn c_program() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("p.c"), folder.path().join("p"));
    std::fs::write(&source, "int main(int n, char **v) { return v[n - 1][0]; }").unwrap();
    assert!(Command::new("gcc").args(["-O2", "-g", "-o"]).args([&program, &source]).status().unwrap().success());
    std::fs::read(program).unwrap()
}

fn go_program() -> Result<Vec<u8>, &'static str> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("p.go"), folder.path().join("p"));
    std::fs::write(&source, "package main\nfunc main() { println(1) }").unwrap();
    let built = Command::new("go").args(["build", "-o"]).args([&program, &source]).status();
    given(built.is_ok(), "there is no `go` on this machine")?;
    Ok(std::fs::read(program).unwrap())
}

/// Does with a file all that is ever done with one.
fn use_all(bytes: Vec<u8>, random: &mut Random) {
    let stack: Vec<u8> = (0..512).map(|_| random.next() as u8).collect();
    use_file(&bytes, &stack);
}

/// Changes some bytes, more often in headers and tables than elsewhere.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    if random.below(8) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    for _ in 0..1 + random.below(64) {
        let size = bytes.len();
        let at = match random.below(3) {
            0 => random.below(size.min(1024)),
            1 => size.saturating_sub(1 + random.below(2048)),
            _ => random.below(size),
        };
        let value = [0, 0xff, 0x7f, 0x80, random.next() as u8][random.below(5)];
        let run = [1, 1, 4, 8][random.below(4)];
        bytes.iter_mut().skip(at).take(run).for_each(|byte| *byte = value);
    }
}

#[test]
fn damaged_programs() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    use_damaged(c_program(), 3000, &mut random);
    use_damaged(need!(go_program()), 200, &mut random);
}

fn use_damaged(program: Vec<u8>, rounds: usize, random: &mut Random) {
    use_all(program.clone(), random);
    for _ in 0..rounds {
        let mut bytes = program.clone();
        damage(&mut bytes, random);
        use_all(bytes, random);
    }
}

/// Damage inside one section, where it gets past the headers.
#[test]
fn damaged_sections() {
    let mut random = Random(0xd1b5_4a32_d192_ed03);
    use_damaged_sections(&c_program(), &mut random);
    use_damaged_sections(&need!(go_program()), &mut random);
}

fn use_damaged_sections(program: &[u8], random: &mut Random) {
    let layout = crate::elf::Layout::read(&Source::Bytes(Arc::from(program))).unwrap();
    for name in [".eh_frame", ".eh_frame_hdr", ".symtab", ".debug_line", ".debug_info", ".debug_abbrev", ".gopclntab"] {
        let Some(section) = layout.section(name) else { continue };
        for _ in 0..60 {
            let mut bytes = program.to_vec();
            let section = &mut bytes[section.offset as usize..][..section.size as usize];
            for _ in 0..8 + section.len() / 64 {
                let at = random.below(section.len());
                section[at] = random.next() as u8;
            }
            use_all(bytes, random);
        }
    }
}
