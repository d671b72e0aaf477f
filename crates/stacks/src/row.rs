// SPDX-License-Identifier: Apache-2.0
//! One row of call frame information: how the caller's registers follow from the callee's.

use gimli::{
    CfaRule, Encoding, EndianSlice, Evaluation, EvaluationResult, Expression, LittleEndian, Location, RegisterRule,
    UnwindExpression, UnwindTableRow, Value,
};

use crate::{
    memory::Memory,
    registers::{BP, Frame, RA, SP},
};

/// Bytes of a section, read as DWARF.
pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Operations that one expression may run. Real ones (PLT stubs, signal frames) need under 20;
/// without a limit a backward jump in a hostile file would never end.
const MAX_OPERATIONS: u32 = 256;

/// Longest expression that is kept.
const MAX_EXPRESSION_BYTES: usize = 256;

/// An expression, copied out of its section.
#[derive(Debug, PartialEq)]
pub(crate) struct Formula {
    bytes: Box<[u8]>,
    encoding: Encoding,
}

#[derive(Debug, PartialEq)]
enum Cfa {
    Register(usize, i64),
    Formula(Formula),
}

#[derive(Debug, PartialEq)]
enum Saved {
    Same,
    Lost,
    At(i64),
    Is(i64),
    Register(usize),
    AtFormula(Formula),
    IsFormula(Formula),
    Constant(u64),
}

/// A row, independent of the section it was read from.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    cfa: Cfa,
    saved: Vec<(usize, Saved)>,
    /// This frame was entered by a signal: what is below it was interrupted, not calling.
    pub(crate) signal: bool,
    /// The return address is said to be undefined: this is the thread's first function.
    pub(crate) first_function: bool,
}

impl Row {
    /// Copies what matters out of `row`; `None` when it uses something no x86-64 compiler emits.
    pub(crate) fn new(
        section: &gimli::EhFrame<Slice<'_>>,
        row: &UnwindTableRow<usize>,
        encoding: Encoding,
        signal: bool,
    ) -> Option<Row> {
        let formula = |e: &UnwindExpression<usize>| Formula::new(section, e, encoding);
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Cfa::Register(register.0.into(), *offset),
            CfaRule::Expression(e) => Cfa::Formula(formula(e)?),
        };
        let mut saved = Vec::new();
        for (register, rule) in row.registers() {
            let rule = match rule {
                RegisterRule::Undefined => Saved::Lost,
                RegisterRule::SameValue => Saved::Same,
                RegisterRule::Offset(offset) => Saved::At(*offset),
                RegisterRule::ValOffset(offset) => Saved::Is(*offset),
                RegisterRule::Register(other) => Saved::Register(other.0.into()),
                RegisterRule::Expression(e) => Saved::AtFormula(formula(e)?),
                RegisterRule::ValExpression(e) => Saved::IsFormula(formula(e)?),
                RegisterRule::Constant(value) => Saved::Constant(*value),
                _ => return None,
            };
            // Vector and flag registers do not help to find a caller.
            if usize::from(register.0) <= RA {
                saved.push((register.0.into(), rule));
            }
        }
        let first_function = saved.iter().any(|(register, rule)| *register == RA && matches!(rule, Saved::Lost));
        Some(Row { cfa, saved, signal, first_function })
    }

    /// Of a function that nothing calls.
    pub(crate) fn first_function() -> Row {
        Row { cfa: Cfa::Register(SP, 0), saved: Vec::new(), signal: false, first_function: true }
    }

    /// Of code whose return address is `bytes` above the stack pointer, the caller's frame pointer
    /// (if there is a frame) below it.
    pub(crate) fn of_frame_size(bytes: u32) -> Row {
        let mut saved = vec![(RA, Saved::At(-8))];
        if bytes > 0 {
            saved.push((BP, Saved::At(-16)));
        }
        Row { cfa: Cfa::Register(SP, i64::from(bytes) + 8), saved, signal: false, first_function: false }
    }

    /// The caller's registers, its address in register [`RA`]; registers that cannot be read are lost.
    pub(crate) fn caller(&self, callee: &Frame, memory: &Memory<'_>) -> Option<Frame> {
        let cfa = match &self.cfa {
            Cfa::Register(register, offset) => callee.get(*register)?.checked_add_signed(*offset)?,
            Cfa::Formula(formula) => formula.value(callee, memory, None)?,
        };
        let mut caller = callee.kept_by_call();
        caller.set(SP, Some(cfa));
        for (register, rule) in &self.saved {
            let value = match rule {
                Saved::Same => callee.get(*register),
                Saved::Lost => None,
                Saved::At(offset) => cfa.checked_add_signed(*offset).and_then(|a| memory.word(a)),
                Saved::Is(offset) => cfa.checked_add_signed(*offset),
                Saved::Register(other) => callee.get(*other),
                Saved::AtFormula(f) => f.value(callee, memory, Some(cfa)).and_then(|a| memory.word(a)),
                Saved::IsFormula(f) => f.value(callee, memory, Some(cfa)),
                Saved::Constant(value) => Some(*value),
            };
            caller.set(*register, value);
        }
        Some(caller)
    }
}

impl Formula {
    fn new(section: &gimli::EhFrame<Slice<'_>>, e: &UnwindExpression<usize>, encoding: Encoding) -> Option<Formula> {
        let bytes = e.get(section).ok()?.0.slice();
        (bytes.len() <= MAX_EXPRESSION_BYTES).then(|| Formula { bytes: bytes.into(), encoding })
    }

    /// Evaluates with `initial` on the stack; the result is a number (an address, usually).
    fn value(&self, frame: &Frame, memory: &Memory<'_>, initial: Option<u64>) -> Option<u64> {
        let expression = Expression(EndianSlice::new(&self.bytes, LittleEndian));
        let mut evaluation: Evaluation<Slice<'_>> = expression.evaluation(self.encoding);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = frame.get(register.0.into())?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    evaluation.resume_with_memory(Value::Generic(memory.word(address)?)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result() {
            [piece] => match piece.location {
                Location::Address { address } => Some(address),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registers;

    fn value(bytes: &[u8]) -> Option<u64> {
        let encoding = Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
        let formula = Formula { bytes: bytes.into(), encoding };
        let frame = Frame::from(&Registers { sp: 0x1000, ip: 0x2b, ..Registers::default() });
        formula.value(&frame, &Memory::new(0x1000, &7_u64.to_le_bytes()), None)
    }

    #[test]
    fn the_expression_of_a_plt_stub() {
        // rsp + 8 + ((rip & 15) >= 11) << 3
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(value(&plt), Some(0x1010));
        assert_eq!(value(&[0x77, 0, 0x06]), Some(7), "a word on the stack");
        assert_eq!(value(&[0x77, 1, 0x06]), None, "past the copy");
    }

    #[test]
    fn an_expression_that_jumps_back_ends() {
        assert_eq!(value(&[0x2f, 0xfd, 0xff]), None);
        assert_eq!(value(&[0x30, 0x2f, 0xfc, 0xff]), None, "and one that grows its stack");
    }
}
