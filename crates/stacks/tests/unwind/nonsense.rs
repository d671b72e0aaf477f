// SPDX-License-Identifier: Apache-2.0
//! Registers and stacks without meaning, in a process that is real: every walk must end.

use wakewalk_stacks::{Effort, KernelNames, Registers, Snapshot, Stacks};

/// Address that the stack pointer mostly has.
const SP: u64 = 0x7fff_0000_0000;

struct Nonsense {
    random: u64,
    code: Vec<(u64, u64)>,
}

impl Nonsense {
    fn number(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// What stacks are made of: code addresses, stack addresses, zeros and noise.
    fn word(&mut self) -> u64 {
        match self.number() % 8 {
            0 => self.number(),
            1 => 0,
            2 => u64::MAX - self.number() % 32,
            3 | 4 => SP + self.number() % 4096,
            _ => {
                let at = self.number() as usize % self.code.len();
                let (start, end) = self.code[at];
                start + self.number() % (end - start)
            }
        }
    }

    fn registers(&mut self) -> Registers {
        let sp = if self.number().is_multiple_of(4) { self.word() } else { SP };
        let (ip, bp, bx, r12) = (self.word(), self.word(), self.word(), self.word());
        Registers { ip, sp, bp, bx, r12, ..Registers::default() }
    }
}

/// Address ranges of this process's code.
fn own_code() -> Vec<(u64, u64)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let executable = maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|p| p.contains('x')));
    let range = |line: &str| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
    };
    executable.filter_map(range).collect()
}

#[test]
fn nonsense_ends() {
    let mut nonsense = Nonsense { random: 0x2545_f491_4f6c_dd1d, code: own_code() };
    let mut stacks = Stacks::new();
    let pid = std::process::id();
    for _ in 0..20_000 {
        let stack: Vec<u8> = (0..512).flat_map(|_| nonsense.word().to_le_bytes()).collect();
        let length = nonsense.number() as usize % (stack.len() + 1);
        let unwound = stacks.user(&Snapshot { pid, regs: nonsense.registers(), stack: &stack[..length] });
        assert!(!unwound.frames.is_empty() && unwound.frames.len() <= 512);
        let kernel = stacks.kernel(&[nonsense.word(), nonsense.word()]);
        assert_ne!(stacks.intern(&kernel, &unwound.frames, unwound.complete), 0);
    }
    let (rows, frames) = stacks.fresh(Effort::All, &mut KernelNames::List);
    assert!(rows.iter().flat_map(|row| &row.frames).all(|id| (1..=frames.len()).contains(&(*id as usize))));
}
