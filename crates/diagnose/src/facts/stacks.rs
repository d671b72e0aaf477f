// SPDX-License-Identifier: Apache-2.0
//! Call stacks with their frames resolved, and whom a leaf's time is credited to.
//!
//! A **helper** (libc, allocator, assembly leaf, a runtime's helper) works for its caller: its self
//! time is credited to the nearest frame up the stack that is not one. An interpreter's loop is
//! credited to a frame of the interpreted program where the stack has one right above it.

use std::collections::BTreeMap;

use recording::tables;

use crate::answer::Gap;
use crate::case::{Case, Fact};
pub use crate::runtimes::code::Code;
use crate::runtimes::{self, Part};

/// All stacks of the recording.
pub struct Stacks {
    code: Vec<Code>,
    stacks: BTreeMap<u32, (Vec<usize>, bool)>,
}

impl Fact for Stacks {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let mut by_id = BTreeMap::new();
        let mut code = Vec::new();
        // A frame may have a second row, with the source line that was asked for after the first.
        let rows: BTreeMap<u32, &tables::Frame> =
            case.recording.rows::<tables::Frame>().iter().map(|frame| (frame.id, frame)).collect();
        for frame in rows.into_values() {
            by_id.insert(frame.id, code.len());
            code.push(Code {
                symbol: frame.symbol.clone(),
                module: frame.module.clone(),
                offset: frame.offset,
                kind: frame.kind.clone(),
                source: frame.source.clone(),
                part: runtimes::part(&frame.symbol, &frame.module),
            });
        }
        let known =
            |s: &tables::Stack| -> Vec<usize> { s.frames.iter().filter_map(|f| by_id.get(f).copied()).collect() };
        let resolve = |s: &tables::Stack| -> Vec<usize> {
            known(s).into_iter().skip_while(|&i: &usize| code.get(i).is_some_and(is_of_hook)).collect()
        };
        let stacks = case.recording.rows::<tables::Stack>().iter().map(|s| (s.id, (resolve(s), s.complete))).collect();
        Ok(Stacks { code, stacks })
    }
}

/// Whether a frame is of the hook that took the stack, which calls itself from where it hangs.
fn is_of_hook(code: &Code) -> bool {
    const HOOK: [&str; 5] = ["bpf_prog_", "bpf_trampoline_", "bpf_trace_run", "__bpf_trace_", "__traceiter_"];
    code.is_kernel() && HOOK.iter().any(|part| code.symbol.starts_with(part))
}

impl Stacks {
    /// Functions on stacks with code that was compiled at run time; all functions where none is on such a stack.
    pub fn beside_jit(&self) -> impl Iterator<Item = &Code> {
        let with_jit = self.stacks.keys().filter(|id| self.user(**id).any(Code::is_jit));
        with_jit.flat_map(|id| self.user(*id)).chain(&self.code)
    }

    /// Frames of a stack, leaf first; none for an unknown id.
    pub fn frames(&self, id: u32) -> impl Iterator<Item = &Code> {
        self.stacks.get(&id).map_or(&[][..], |(frames, _)| frames).iter().filter_map(|&i| self.code.get(i))
    }

    /// User frames of a stack, leaf first.
    pub fn user(&self, id: u32) -> impl Iterator<Item = &Code> {
        self.frames(id).filter(|c| !c.is_kernel())
    }

    /// Whether the unwinder reached the thread's first function.
    pub fn is_complete(&self, id: u32) -> bool {
        self.stacks.get(&id).is_some_and(|(_, complete)| *complete)
    }

    /// The user frame that a sample with this stack is credited to, and the part it plays there.
    pub fn credited(&self, id: u32) -> Option<(&Code, Part)> {
        let mut frames = self.user(id).peekable();
        let leaf = *frames.peek()?;
        while let Some(frame) = frames.next() {
            match frame.part {
                Part::Helper => continue,
                // A collector's helper is the collector's, whatever program function it interrupts.
                Part::Runtime | Part::Lock | Part::Own => return Some((frame, frame.part)),
                Part::Interpreter => {
                    let program =
                        frames.peek().filter(|f| f.kind == "jit" && f.part == Part::Own && !f.symbol.is_empty());
                    return Some(program.map_or((frame, Part::Interpreter), |f| (*f, Part::Own)));
                }
            }
        }
        Some((leaf, Part::Helper))
    }

    /// The program's own functions of a stack, from the innermost: helpers and glue left out.
    pub fn callers(&self, id: u32) -> impl Iterator<Item = &Code> {
        self.user(id).filter(|c| c.part != Part::Helper && !runtimes::is_glue(&c.symbol))
    }

    /// The same without those that take a lock: everybody knows that.
    pub fn callers_of_locks(&self, id: u32) -> impl Iterator<Item = &Code> {
        self.callers(id).filter(|code| code.part != Part::Lock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn credited(frames: &[(&str, &str, &str)]) -> (String, Part) {
        let mut text = String::new();
        let ids: Vec<String> = (1..=frames.len()).map(|i| i.to_string()).collect();
        for (i, (symbol, module, kind)) in frames.iter().enumerate() {
            text += &format!("frame id={} symbol=\"{symbol}\" module=\"{module}\" kind={kind}\n", i + 1);
        }
        text += &format!("stack id=7 frames=[{}]", ids.join(","));
        let recording = parse(&text).unwrap();
        let stacks = Case::new(&recording).fact::<Stacks>().unwrap();
        let (code, part) = stacks.credited(7).unwrap();
        (code.label(), part)
    }

    #[test]
    fn helpers_work_for_their_caller() {
        let libc = ("__memmove_avx", "libc.so.6", "native");
        assert_eq!(
            credited(&[libc, ("copy_rows", "svc", "native"), ("main", "svc", "native")]),
            ("copy_rows".into(), Part::Own)
        );
        assert_eq!(
            credited(&[("memeqbody", "svc", "native"), ("main.find", "svc", "native")]),
            ("main.find".into(), Part::Own)
        );
        // No caller known: the leaf itself, but never as the program's own.
        assert_eq!(credited(&[libc]), ("__memmove_avx".into(), Part::Helper));
    }

    #[test]
    fn runtimes_and_interpreters_are_not_the_program() {
        let scan = ("runtime.scanobject", "svc", "native");
        assert_eq!(
            credited(&[("runtime.memclrNoHeapPointers", "svc", "native"), scan, ("main.f", "svc", "native")]).1,
            Part::Runtime
        );
        let eval = ("_PyEval_EvalFrameDefault", "python3.12", "native");
        assert_eq!(credited(&[eval, eval]).1, Part::Interpreter);
        assert_eq!(credited(&[eval, ("py::score:/app.py", "[jit]", "jit")]), ("py::score:/app.py".into(), Part::Own));
    }

    #[test]
    fn odd_stacks() {
        let recording = parse("frame id=1 symbol=f\nstack id=1 frames=[9,1,9]\nstack id=2").unwrap();
        let stacks = Case::new(&recording).fact::<Stacks>().unwrap();
        assert_eq!(stacks.frames(1).count(), 1);
        assert!(stacks.credited(2).is_none() && stacks.credited(99).is_none());
    }
}
