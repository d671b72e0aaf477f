/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Answers that are owed and will not come, because whoever owes them closes. */
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
