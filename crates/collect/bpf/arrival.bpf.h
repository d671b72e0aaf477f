/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* When what is read from a TCP socket had arrived, told by what the socket keeps anyway. */
#pragma once

u64 anchor_ns;
u64 anchor_jiffies;
u64 jiffy_ns; /* 0 = not known yet */

/* The length of a jiffy, from two readings of both clocks. */
__noinline u64 learn_jiffy(u64 now)
{
	u64 jiffies = bpf_jiffies64(), passed = now - anchor_ns, rate;

	if (!anchor_ns) {
		anchor_jiffies = jiffies;
		anchor_ns = now;
		return 0;
	}
	if (passed < 100000000)
		return 0;
	rate = (jiffies - anchor_jiffies) * 1000000000 / passed;
	jiffy_ns = rate > 600 ? 1000000 : rate > 275 ? 3333333 : rate > 170 ? 4000000 : 10000000;
	return jiffy_ns;
}

/*
 * When what is read had arrived. The socket keeps when something was sent or came last, to the ns; where that was our
 * own late acknowledgement, the jiffy in which data came is much older.
 */
static __always_inline u64 arrival(struct tcp_sock *tcp, u64 now)
{
	u64 at = tcp->tcp_clock_cache, tick = jiffy_ns ?: learn_jiffy(now), age;

	if (!at || at > now)
		at = now;
	if (tick) {
		age = (u64)((u32)bpf_jiffies64() - tcp->inet_conn.icsk_ack.lrcvtime) * tick;
		if (age > now - at + 2 * tick && age < now)
			at = now - age;
	}
	return at;
}
