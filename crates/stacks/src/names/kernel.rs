// SPDX-License-Identifier: Apache-2.0
//! Names of kernel functions, modules and BPF programs, from `/proc/kallsyms`.

use blazesym::{
    MaybeDefault,
    symbolize::{Input, Symbolizer, source},
};
use recording::tables::Frame;

use super::clip;

/// Names the rows of `frames` that the list gives an address for; without root there are no names.
pub(super) fn name(addresses: &[(usize, u64)], frames: &mut [Frame]) {
    if addresses.is_empty() {
        return;
    }
    // The kernel's own ELF file would only add source lines, for gigabytes of debug information.
    let kernel = source::Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..source::Kernel::default() };
    let symbolizer = Symbolizer::builder().enable_code_info(false).build();
    let only: Vec<u64> = addresses.iter().map(|(_, address)| *address).collect();
    let Ok(symbols) = symbolizer.symbolize(&source::Source::Kernel(kernel), Input::AbsAddr(&only)) else { return };
    for ((row, _), symbol) in addresses.iter().zip(symbols) {
        if let (Some(frame), Some(symbol)) = (frames.get_mut(*row), symbol.as_sym()) {
            frame.symbol = clip(&symbol.name);
        }
    }
}
