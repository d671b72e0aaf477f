/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Ports at which somebody listens: who is at such an end of a connection accepted it. */
#pragma once

u64 listening[1024]; /* a bit each; kept by user space, which may be late, and by who sees one begin */

static __always_inline bool is_listening(u16 port)
{
	return listening[port >> 6] >> (port & 63) & 1;
}

static __always_inline void now_listens(u16 port)
{
	listening[port >> 6] |= 1ULL << (port & 63);
}
