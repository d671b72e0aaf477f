// SPDX-License-Identifier: Apache-2.0
//! From a frame to its caller, until the thread's first function.
//!
//! Where an address is described (by `.eh_frame`, or by Go's own table), that is followed; where it
//! is not (code compiled at run time, hand-written assembly), the frame pointer is. One stack may
//! need all of them.

use gimli::UnwindContext;

use crate::{
    golang::{self, Cgo},
    images::Images,
    memory::Memory,
    names::perf_map::PerfMaps,
    process::{Place, Process},
    registers::{BP, Frame, RA, SP},
    row::Row,
    table::{Code, Frames},
};

/// Frames of one stack that are kept; deeper ones end as incomplete.
const MAX_DEPTH: usize = 512;

/// A user stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwound {
    /// Frame ids, leaf first.
    pub frames: Vec<u32>,
    /// The last frame is the thread's first function.
    pub complete: bool,
}

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
            (frame, exact) = match self.step(&place, &frame, exact, &memory) {
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

    fn place(&mut self, address: u64) -> Place {
        if let Some(place) = self.process.places.get(address) {
            return place;
        }
        let code = self.process.code(address, self.images, self.perf_maps);
        let (mut vaddr, mut row) = (None, None);
        if let Code::Image(id, offset) = code
            && let Some(image) = self.images.get(id)
        {
            vaddr = image.vaddr(offset);
            row = vaddr.and_then(|vaddr| image.row(vaddr, self.context));
        }
        let place = Place { code, frame: self.frames.id(code), vaddr, row };
        // What is unknown now may be mapped a moment later.
        if code != Code::Unknown {
            self.process.places.insert(address, place.clone());
        }
        place
    }

    /// Which of the functions around a call from Go to C this is.
    fn cgo(&mut self, place: &Place) -> Option<Cgo> {
        let (Code::Image(id, _), Some(vaddr)) = (place.code, place.vaddr) else { return None };
        self.images.get(id)?.go()?.cgo(vaddr)
    }

    fn step(&mut self, place: &Place, frame: &Frame, exact: bool, memory: &Memory<'_>) -> Step {
        let Some(row) = &place.row else {
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

    fn step_without_row(&mut self, place: &Place, frame: &Frame, exact: bool, memory: &Memory<'_>) -> Step {
        if !exact && self.cgo(place) == Some(Cgo::Switch) {
            return self.cross(frame, memory).unwrap_or(Step::Stuck);
        }
        if exact && let Some(caller) = self.leaf(place, frame, memory) {
            return Step::Caller { frame: caller, exact: false };
        }
        by_frame_pointer(place, frame, memory)
    }

    /// Assembly without a frame: the return address is still on top of the stack. Not for code
    /// compiled at run time, which has frames, and pushes what looks like addresses.
    fn leaf(&mut self, place: &Place, frame: &Frame, memory: &Memory<'_>) -> Option<Frame> {
        let sp = frame.get(SP).filter(|_| matches!(place.code, Code::Image(..)))?;
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
        let golang::Goroutine { stack, sp } = golang::goroutine(frame.get(SP)?, memory, self.process.mem()?)?;
        // The function has a frame (it pushed the frame pointer) in newer versions of Go.
        let frame = [0, 8].into_iter().find_map(|size| {
            let callee = Frame::with_sp(sp);
            let caller = Row::of_frame_size(size).caller(&callee, &stack)?;
            self.calls_c(&caller, &stack).then_some(caller)
        })?;
        Some(Step::Switch { frame, stack })
    }

    /// Is this frame `runtime.cgocall`, or the wrapper it calls? If not, the goroutine has run on
    /// since the sample was taken, and this is some other stack.
    fn calls_c(&mut self, frame: &Frame, stack: &Memory<'_>) -> bool {
        let mut within = |frame: &Frame| {
            let place = self.place(frame.get(RA)?.wrapping_sub(1));
            let function = self.cgo(&place)?;
            Some((function, place.row.and_then(|row| row.caller(frame, stack))))
        };
        match within(frame) {
            Some((Cgo::Call, _)) => true,
            Some((Cgo::Wrapper, Some(above))) => within(&above).is_some_and(|(function, _)| function == Cgo::Call),
            _ => false,
        }
    }
}

fn by_frame_pointer(place: &Place, frame: &Frame, memory: &Memory<'_>) -> Step {
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
