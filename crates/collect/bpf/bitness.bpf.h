/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Whether code is of 32 or of 64 bits. */
#pragma once

#define USER32_CS 0x23 /* arch/x86/include/asm/segment.h */

/* Whether a thread runs 32-bit code, of which calls have other numbers, and arguments in other registers. */
static __always_inline bool is_32_bit(const struct pt_regs *regs)
{
	return (u16)regs->cs == USER32_CS;
}
