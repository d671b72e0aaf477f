/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* When what is read from a TCP socket had arrived, told by what the socket keeps anyway. */
#pragma once

const volatile u64 tick_ns = 0; /* length of a jiffy; set by user space */

/*
 * When what is read had arrived. The socket keeps when something was sent or came last, to the ns; where that was our
 * own late acknowledgement, the jiffy in which data came is much older.
 */
static __always_inline u64 arrival(struct tcp_sock *tcp, u64 now)
{
	u64 at = tcp->tcp_clock_cache, age;

	if (!at || at > now)
		at = now;
	age = (u64)((u32)bpf_jiffies64() - tcp->inet_conn.icsk_ack.lrcvtime) * tick_ns;
	if (age > now - at + 2 * tick_ns && age < now)
		at = now - age;
	return at;
}
