/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Lengths of time, counted by size: sixteen bins to each doubling, so that any value is known within 3 %. Up to 16 us a
 * bin is a microsecond (2^10 ns).
 */
#pragma once

#define BINS 384 /* up to 2^37 ns, 137 s; what is longer falls into the last one */

struct histogram {
	u64 sum; /* ns */
	u32 bins[BINS];
};

/* Position of the highest bit that is set, of a number above 0. */
static __always_inline u32 highest_bit(u64 v)
{
	u32 n = 0;

	if (v >> 32) {
		n += 32;
		v >>= 32;
	}
	if (v >> 16) {
		n += 16;
		v >>= 16;
	}
	if (v >> 8) {
		n += 8;
		v >>= 8;
	}
	if (v >> 4) {
		n += 4;
		v >>= 4;
	}
	if (v >> 2) {
		n += 2;
		v >>= 2;
	}
	return n + (u32)(v >> 1);
}

/* A global function: checked once, and not with all that comes after for each of the ways through it. */
__noinline u32 bin_of(u64 ns)
{
	u64 us = ns >> 10;
	u32 bit;

	if (us < 16)
		return us;
	bit = highest_bit(us);
	return (bit - 3) * 16 + ((us >> (bit - 4)) & 15);
}

static __always_inline void count_length(struct histogram *h, u64 ns)
{
	u32 bin = bin_of(ns);

	if (bin >= BINS)
		bin = BINS - 1;
	__sync_fetch_and_add(&h->bins[bin], 1);
	__sync_fetch_and_add(&h->sum, ns);
}
