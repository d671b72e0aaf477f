/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Answers that are owed and will not come, because whoever owes them closes; and clients that are sent away. */
#pragma once

/* An end that comes sooner after what was said last, ns, and after the way there and back, answers a goodbye. */
#define HANGS_UP 1000000

/*
 * Whoever owes an answer closes its side first: the target, or whom it asks. (One that is killed, or whose worker is,
 * does so in order: the kernel closes for it.) What came with that end may be the answer, so it counts when the
 * connection is over. A client that said several things said no one question.
 */
static __noinline void note_end(struct sock *sk, struct exchange *e, int now)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	u64 said, way;

	if (!tcp || now != (e->accepted ? TCP_FIN_WAIT1 : TCP_CLOSE_WAIT) || (e->accepted && e->more))
		return;
	way = e->accepted ? 0 : (u64)(tcp->srtt_us >> 3) * 1000;
	said = e->accepted ? e->read : e->written;
	e->hung_up = bpf_ktime_get_ns() - said > HANGS_UP + way;
}

/* A goodbye to one that was silent for so long, ns, is what time limits are for. */
#define DISMISSES 1000000000

/*
 * Whoever was connected to says something and closes, while the other end has not said anything yet: it has no room, or
 * does not want this one. (In protocols in which the server greets; where clients speak first, that resets them.) What
 * came last, or where nothing did the connection itself, is told to the jiffy. The end of whom the target asks mostly
 * comes before the word is read. Of those for which there is no group, nobody knows whether others are answered.
 */
static __noinline void note_dismissal(struct sock *sk, struct exchange *e, int now)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	bool is_one;

	if (!tcp || !(e->group % OTHER_PORTS) || e->dismissed)
		return;
	if ((u64)((u32)bpf_jiffies64() - tcp->inet_conn.icsk_ack.lrcvtime) * tick_ns > DISMISSES)
		return;
	if (e->accepted)
		is_one = now == TCP_FIN_WAIT1 && tcp->bytes_sent && !tcp->bytes_received;
	else
		is_one = now == TCP_CLOSE_WAIT && tcp->bytes_received && !tcp->bytes_sent;
	if (!is_one)
		return;
	e->dismissed = 1;
	__sync_fetch_and_add(&its_group(e)->dismissed, 1);
}
