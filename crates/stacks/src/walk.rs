//! From a frame to its caller, until the thread's first function.
//!
//! Where an address has call frame information, that is followed; where it has none (Go, code
//! compiled at run time, hand-written assembly), the frame pointer is. One stack may need both.

use std::sync::Arc;

use gimli::UnwindContext;

use crate::{
    golang::{self, Runtime},
    images::Images,
    memory::Memory,
    names::perf_map::PerfMaps,
    process::{Place, Process},
    registers::{BP, Frame, RA, SP},
    row::Row,
    stacks::Unwound,
    table::{Code, Frames},
};

/// Frames of one stack that are kept; deeper ones end as incomplete.
const MAX_DEPTH: usize = 512;

/// A process and all that is needed to make sense of its addresses.
pub(crate) struct Walker<'a> {
    pub(crate) process: &'a mut Process,
    pub(crate) images: &'a mut Images,
    pub(crate) perf_maps: &'a mut PerfMaps,
    pub(crate) frames: &'a mut Frames,
    pub(crate) context: &'a mut UnwindContext<usize>,
}

/// What a frame leads to.
enum Step {
    /// The caller; `exact` = its address is where it was interrupted, not where it returns to.
    Caller {
        frame: Frame,
        exact: bool,
    },
    /// The caller is on another stack.
    Switch {
        frame: Frame,
        stack: Memory<'static>,
    },
    FirstFunction,
    Stuck,
}

impl Walker<'_> {
    /// Unwinds from `frame` with the bytes in `memory`.
    pub(crate) fn walk(&mut self, mut frame: Frame, mut memory: Memory<'_>) -> Unwound {
        let mut frames = Vec::new();
        let mut exact = true;
        while let Some(ip) = frame.get(RA)
            && frames.len() < MAX_DEPTH
        {
            if ip == 0 && !frames.is_empty() {
                return Unwound { frames, complete: true };
            }
            let place = self.place(if exact { ip } else { ip.wrapping_sub(1) });
            if place.code == Code::Unknown && !frames.is_empty() {
                break; // Not code, so the step that led here was wrong.
            }
            frames.push(place.frame);
            (frame, exact) = match self.step(place, &frame, exact, &memory) {
                Step::Caller { frame, exact } => (frame, exact),
                Step::Switch { frame, stack } => {
                    memory = stack;
                    (frame, false)
                }
                Step::FirstFunction => return Unwound { frames, complete: true },
                Step::Stuck => break,
            };
        }
        Unwound { frames, complete: false }
    }

    /// Names the frames of a stack that was walked already, leaf first.
    pub(crate) fn follow(&mut self, addresses: &[u64]) -> Unwound {
        let mut complete = false;
        let mut frames = Vec::with_capacity(addresses.len());
        for (depth, address) in addresses.iter().take(MAX_DEPTH).enumerate() {
            let place = self.place(if depth == 0 { *address } else { address.wrapping_sub(1) });
            frames.push(place.frame);
            complete = depth + 1 == addresses.len() && self.is_first_function(place);
        }
        Unwound { frames, complete }
    }

    fn place(&mut self, address: u64) -> Place {
        if let Some(place) = self.process.places.get(address) {
            return place;
        }
        let code = self.process.code(address, self.images, self.perf_maps);
        let vaddr = match code {
            Code::Image(id, offset) => self.images.get(id).and_then(|image| image.vaddr(offset)),
            _ => None,
        };
        let place = Place { code, frame: self.frames.id(code), vaddr };
        // What is unknown now may be mapped a moment later.
        if code != Code::Unknown {
            self.process.places.insert(address, place);
        }
        place
    }

    fn row(&mut self, place: Place) -> Option<Arc<Row>> {
        let (Code::Image(id, _), Some(vaddr)) = (place.code, place.vaddr) else { return None };
        self.images.get(id)?.row(vaddr, self.context)
    }

    /// Asks Go's runtime in the image of `place` about its address.
    fn go(&mut self, place: Place, question: impl Fn(&Runtime, u64) -> bool) -> bool {
        let (Code::Image(id, _), Some(vaddr)) = (place.code, place.vaddr) else { return false };
        self.images.get(id).and_then(|image| image.go()).is_some_and(|go| question(go, vaddr))
    }

    fn is_first_function(&mut self, place: Place) -> bool {
        self.row(place).is_some_and(|row| row.first_function) || self.go(place, Runtime::is_first_function)
    }

    fn step(&mut self, place: Place, frame: &Frame, exact: bool, memory: &Memory<'_>) -> Step {
        let Some(row) = self.row(place) else {
            return self.step_without_row(place, frame, exact, memory);
        };
        if row.first_function {
            return Step::FirstFunction;
        }
        let Some(caller) = row.caller(frame, memory) else { return Step::Stuck };
        // Callers are above their callees, except that a signal may have its own stack.
        if !row.signal && caller.get(SP) <= frame.get(SP) {
            return Step::Stuck;
        }
        Step::Caller { frame: caller, exact: row.signal }
    }

    fn step_without_row(&mut self, place: Place, frame: &Frame, exact: bool, memory: &Memory<'_>) -> Step {
        if self.go(place, Runtime::is_first_function) {
            return Step::FirstFunction;
        }
        if self.go(place, Runtime::switches) && !exact {
            return self.cross(frame, memory).unwrap_or(Step::Stuck);
        }
        if exact && let Some(caller) = self.leaf(place, frame, memory) {
            return Step::Caller { frame: caller, exact: false };
        }
        by_frame_pointer(place, frame, memory)
    }

    /// Assembly without a frame: the return address is still on top of the stack. Only where other
    /// code of the image is described, so that Go and JIT code, which have frames, are left alone.
    fn leaf(&mut self, place: Place, frame: &Frame, memory: &Memory<'_>) -> Option<Frame> {
        let described = matches!(place.code, Code::Image(..)) && !self.go(place, |_, _| true);
        let sp = frame.get(SP).filter(|_| described)?;
        let address = memory.word(sp)?;
        let caller = self.place(address.wrapping_sub(1));
        matches!(caller.code, Code::Image(..)).then_some(())?;
        let mut above = frame.kept_by_call();
        above.set(SP, sp.checked_add(8));
        above.set(RA, Some(address));
        Some(above)
    }

    /// From `runtime.asmcgocall` on the system stack to the goroutine that called C.
    fn cross(&mut self, frame: &Frame, memory: &Memory<'_>) -> Option<Step> {
        let goroutine = golang::goroutine(frame.get(SP)?, memory, self.process.mem()?)?;
        let (stack, sp, bp) = (goroutine.stack, goroutine.sp, frame.get(BP)?);
        let address = stack.word(sp)?;
        let place = self.place(address.wrapping_sub(1));
        // The goroutine may have run on since the sample; then this is some other stack.
        let in_call = self.go(place, Runtime::calls_c) || {
            let above = stack.word(bp.checked_add(8)?)?;
            let above = self.place(above.wrapping_sub(1));
            self.go(place, Runtime::wraps_switch) && self.go(above, Runtime::calls_c)
        };
        let mut caller = Frame::default();
        caller.set(SP, sp.checked_add(8));
        caller.set(BP, Some(bp));
        caller.set(RA, Some(address));
        in_call.then_some(Step::Switch { frame: caller, stack })
    }
}

fn by_frame_pointer(place: Place, frame: &Frame, memory: &Memory<'_>) -> Step {
    let (Some(sp), Some(bp)) = (frame.get(SP), frame.get(BP)) else { return Step::Stuck };
    if bp == 0 {
        // The ABI's mark of the outermost frame; code made at run time is never that.
        return if matches!(place.code, Code::Image(..)) { Step::FirstFunction } else { Step::Stuck };
    }
    let above = bp.checked_add(16).zip(bp.checked_add(8));
    let (Some((above, return_at)), true) = (above, bp >= sp && bp.is_multiple_of(8)) else { return Step::Stuck };
    let mut caller = Frame::default();
    caller.set(SP, Some(above));
    caller.set(BP, memory.word(bp));
    caller.set(RA, memory.word(return_at));
    Step::Caller { frame: caller, exact: false }
}
