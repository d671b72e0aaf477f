// SPDX-License-Identifier: Apache-2.0
//! Frames and stacks as numbers, so that the same code or the same stack is kept once.

use std::collections::HashMap;

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

    /// All frames, the first has id 1.
    pub(crate) fn into_codes(self) -> Vec<Code> {
        self.codes
    }
}

/// Numbers, from 1, of stacks.
#[derive(Default)]
pub(crate) struct StackIds {
    ids: HashMap<(Box<[u32]>, bool), u32>,
    pub(crate) lost: u64,
}

impl StackIds {
    /// 0 for the empty stack, and for stacks beyond the bound.
    pub(crate) fn id(&mut self, kernel: &[u32], user: &[u32], complete: bool) -> u32 {
        let frames: Box<[u32]> = [kernel, user].concat().into();
        if frames.is_empty() {
            return 0;
        }
        let (next, full) = (self.ids.len() as u32 + 1, self.ids.len() >= MAX_STACKS);
        let key = (frames, complete);
        match self.ids.get(&key) {
            Some(id) => *id,
            None if full => {
                self.lost += 1;
                0
            }
            None => {
                self.ids.insert(key, next);
                next
            }
        }
    }

    /// Frames and completeness of all stacks, the first has id 1.
    pub(crate) fn into_rows(self) -> Vec<(u32, Box<[u32]>, bool)> {
        let mut rows: Vec<_> = self.ids.into_iter().map(|((frames, complete), id)| (id, frames, complete)).collect();
        rows.sort_unstable_by_key(|row| row.0);
        rows
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
        assert_eq!(frames.into_codes(), [Code::Kernel(1), Code::Image(0, 1)]);
    }

    #[test]
    fn stacks_differ_by_frames_and_end() {
        let mut stacks = StackIds::default();
        assert_eq!(stacks.id(&[], &[], true), 0);
        assert_eq!(stacks.id(&[1], &[2], true), 1);
        assert_eq!(stacks.id(&[1], &[2], false), 2);
        assert_eq!(stacks.id(&[], &[1, 2], true), 1, "the frames are the stack");
        assert_eq!(stacks.into_rows()[1], (2, Box::from([1, 2]), false));
    }
}
