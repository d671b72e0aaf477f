/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* When what is read from a TCP socket had arrived, and whether it is the end of it, told by what the socket keeps. */
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

/*
 * Whether the last of what was taken is that the other end has closed its side, which counts as a byte: a splice takes
 * it before it tells what it took, a read after that.
 */
static __always_inline bool took_end(struct sock *sk, struct tcp_sock *tcp, u32 copied)
{
	u8 state = sk->__sk_common.skc_state;

	return copied == tcp->rcv_nxt && (state == TCP_CLOSE_WAIT || state == TCP_LAST_ACK || state == TCP_CLOSING);
}
