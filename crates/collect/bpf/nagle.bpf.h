/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What Nagle's algorithm will do with a write that begins. */
#pragma once

/*
 * Whether the last part of what is about to be written has to wait for an acknowledgement: no option overrules Nagle's
 * algorithm, and a segment that was not full is on its way (`tcp_nagle_check`). What waits already is not counted
 * again.
 */
static __always_inline bool will_wait(struct tcp_sock *tcp)
{
	u32 una = tcp->snd_una, small = tcp->snd_sml - una;

	if (!tcp->packets_out || tcp->write_seq != tcp->snd_nxt || BPF_CORE_READ_BITFIELD(tcp, nonagle))
		return false;
	return small > 0 && small <= tcp->snd_nxt - una;
}
