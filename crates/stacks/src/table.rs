// SPDX-License-Identifier: Apache-2.0
//! Frames and stacks as numbers, so that the same code or the same stack is kept once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use recording::tables::Stack;

use crate::images::ImageId;

/// Frames and stacks that are kept; each more is counted as lost.
const MAX_FRAMES: usize = 1 << 20;
const MAX_STACKS: usize = 1 << 20;

/// Code, told apart as finely as it is sampled. Addresses of callers are those of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Code {
    /// An address that is in no mapping (or the process was gone).
    Unknown,
    Kernel(u64),
    /// Offset in the image's file.
    Image(ImageId, u64),
    /// An address in memory compiled at run time, in one address space.
    Jit(u32, u64),
}

/// Numbers, from 1, of what is seen.
#[derive(Default)]
pub(crate) struct Frames {
    ids: HashMap<Code, u32>,
    codes: Vec<Code>,
    told: usize,
    pub(crate) lost: u64,
}

impl Frames {
    pub(crate) fn id(&mut self, code: Code) -> u32 {
        if let Some(id) = self.ids.get(&code) {
            return *id;
        }
        if self.codes.len() >= MAX_FRAMES {
            self.lost += 1;
            return self.ids.get(&Code::Unknown).copied().unwrap_or(1);
        }
        self.codes.push(code);
        let id = self.codes.len() as u32;
        self.ids.insert(code, id);
        id
    }

    /// Frames since the last call, with their ids.
    pub(crate) fn fresh(&mut self) -> Vec<(u32, Code)> {
        let first = std::mem::replace(&mut self.told, self.codes.len());
        (first as u32 + 1..).zip(self.codes[first..].iter().copied()).collect()
    }

    /// The code of a frame that [`Frames::fresh`] has told.
    pub(crate) fn told(&self, id: u32) -> Option<Code> {
        self.codes[..self.told].get((id as usize).checked_sub(1)?).copied()
    }
}

/// Numbers, from 1, of stacks. Of a stack that has been told only its fingerprint is kept, a quarter of its size: a service of
/// which new ones come for hours must not make this process grow by all of them.
#[derive(Default)]
pub(crate) struct StackIds {
    ids: HashMap<[u64; 2], u32>,
    hashers: [RandomState; 2],
    fresh: Vec<Stack>,
    pub(crate) lost: u64,
}

impl StackIds {
    /// 0 for the empty stack, and for stacks beyond the bound.
    pub(crate) fn id(&mut self, kernel: &[u32], user: &[u32], complete: bool) -> u32 {
        let frames = [kernel, user].concat();
        if frames.is_empty() {
            return 0;
        }
        let (next, full) = (self.ids.len() as u32 + 1, self.ids.len() >= MAX_STACKS);
        let key = self.fingerprint(&frames, complete);
        match self.ids.get(&key) {
            Some(id) => *id,
            None if full => {
                self.lost += 1;
                0
            }
            None => {
                self.fresh.push(Stack { id: next, frames, complete });
                self.ids.insert(key, next);
                next
            }
        }
    }

    /// 128 bits under keys of this process: of a million stacks, no two share theirs, and nobody can arrange it.
    fn fingerprint(&self, frames: &[u32], complete: bool) -> [u64; 2] {
        self.hashers.each_ref().map(|hasher| hasher.hash_one((frames, complete)))
    }

    /// Stacks since the last call.
    pub(crate) fn fresh(&mut self) -> Vec<Stack> {
        std::mem::take(&mut self.fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_code_same_number() {
        let mut frames = Frames::default();
        let (a, b) = (frames.id(Code::Kernel(1)), frames.id(Code::Image(0, 1)));
        assert_eq!((a, b, frames.id(Code::Kernel(1))), (1, 2, 1));
        assert_eq!((frames.fresh(), frames.fresh()), (vec![(1, Code::Kernel(1)), (2, Code::Image(0, 1))], vec![]));
        frames.id(Code::Kernel(9));
        assert_eq!((frames.told(2), frames.told(3), frames.told(0)), (Some(Code::Image(0, 1)), None, None));
        assert_eq!(frames.fresh(), [(3, Code::Kernel(9))]);
    }

    #[test]
    fn stacks_differ_by_frames_and_end() {
        let mut stacks = StackIds::default();
        assert_eq!(stacks.id(&[], &[], true), 0);
        assert_eq!(stacks.id(&[1], &[2], true), 1);
        assert_eq!(stacks.id(&[1], &[2], false), 2);
        assert_eq!(stacks.id(&[], &[1, 2], true), 1, "the frames are the stack");
        assert_eq!(stacks.fresh()[1], Stack { id: 2, frames: vec![1, 2], complete: false });
        assert_eq!((stacks.id(&[1], &[2], true), stacks.fresh()), (1, vec![]), "each is told once");
    }
}
