// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Exchanges on the target's TCP connections: from the first byte of what is asked to the first byte of the answer.
 *
 * Two hooks are enough, and both run in the thread that reads or writes, under the socket's lock: a read took bytes, a
 * write begins. When what is read had arrived needs no hook, for the socket keeps it. Who asks is told by the port:
 * clients ask at those on which somebody listens. Of an exchange that a client began, the wait for the reader and the
 * reader's own time are told apart; of one that the target began, until the answer came.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "target.bpf.h"
#include "socket.bpf.h"
#include "histogram.bpf.h"
#include "burst.bpf.h"
#include "group.bpf.h"
#include "opening.bpf.h"
#include "exchange.bpf.h"
#include "listening.bpf.h"
#include "arrival.bpf.h"
#include "nagle.bpf.h"
#include "streams.bpf.h"
#include "standstill.bpf.h"

static __always_inline struct group *its_group(const struct exchange *e)
{
	u32 number = e->group;

	return &all_groups[number < GROUPS ? number : 0];
}

#include "hang_up.bpf.h"
#include "tell.bpf.h"
#include "tls.bpf.h"

u32 stretch; /* number of the time in which connections are followed: between two of them, nobody knows what was said */

/* Begins to look at a connection; NULL = it is not the target's, or there is no room. */
static __noinline struct exchange *meet(struct sock *sk)
{
	struct port_pair ports = {};
	struct group_key key = {};
	struct exchange_counts *c;
	struct tcp_sock *tcp;
	struct exchange *e;

	if (!watched(bpf_get_current_task_btf()))
		return NULL;
	e = bpf_sk_storage_get(&exchanges, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	c = this_cpu();
	if (!e) {
		if (c)
			c->lost++;
		return NULL;
	}
	if (c)
		c->kept++;
	ports_of_sock(sk, &ports);
	key.port = ports.local;
	key.accepted = is_listening(key.port);
	if (!key.accepted) {
		key.port = ports.remote;
		key.family = ports.family;
		__builtin_memcpy(key.peer, ports.peer, sizeof(key.peer));
	}
	e->accepted = key.accepted;
	e->group = group_of(&key);
	tcp = bpf_skc_to_tcp_sock(sk);
	e->first = tcp && !tcp->data_segs_out;
	e->unseen = !e->first;
	return e;
}

const volatile u32 sock_type = 0; /* the kernel's number of struct sock; 0 = not known */

/* Whether anything is kept of a connection: the test of a pointer, as `is_bystander` has it, and as `untrusted` reads.
 */
static __always_inline bool is_known(struct sock *sk)
{
	if (!sock_type || !bpf_ksym_exists(bpf_rdonly_cast))
		return sk->sk_bpf_storage;
	return ((struct sock *)bpf_rdonly_cast(sk, sock_type))->sk_bpf_storage;
}

/* `owned` = by the thread that runs: where the kernel itself reads, between two packets, whoever runs is a bystander.
 */
static __always_inline struct exchange *of_target(struct sock *sk, bool owned)
{
	struct exchange *e = NULL;

	if (is_known(sk))
		e = bpf_sk_storage_get(&exchanges, sk, NULL, 0);
	if (!e && owned)
		e = meet(sk);
	if (e && e->stretch != stretch) {
		struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

		e->stretch = stretch;
		if (tcp && tcp->data_segs_out)
			e->first = 0; /* that one has been answered meanwhile */
		e->began = 0;
		e->written = 0;
		e->apart = 0;
		e->apart_ns = 0;
		e->late = 0;
		forget_handshake(e);
		if (with_openings)
			e->opening = OPENING_UNSEEN;
	}
	return e;
}

/* --- hooks ---------------------------------------------------------------------------------- */

static __always_inline void begin(struct sock *sk, struct exchange *e, u64 at)
{
	e->began = at;
	e->rest = 0;
	e->more = 0;
	e->hung_up = 0;
	e->tid = bpf_get_current_task_btf()->pid;
	if (with_openings)
		e->opening = begin_opening(sk, e->opening);
	__sync_fetch_and_add(&its_group(e)->began, 1);
}

/*
 * All that was read so far is what the first read of a connection took, which may be nothing, if it only looked
 * (MSG_PEEK); where the target has written before, others may have gone unseen.
 */
static __always_inline void know_start(struct exchange *e, struct tcp_sock *tcp)
{
	if (e->copied || tcp->bytes_sent)
		return;
	e->copied = tcp->rcv_nxt - (u32)tcp->bytes_received;
	if (with_openings && e->opening == OPENING_UNSEEN)
		e->opening = OPENING_NONE;
}

/* A client's request was read, or more of it. */
static __always_inline void asked(struct sock *sk, struct exchange *e, struct tcp_sock *tcp, u32 bytes, u64 now)
{
	u64 came = 0;

	if (!e->began || e->tls || e->aside || now - e->read > LATER)
		came = arrival(tcp, now);
	if (!is_question(sk, e, bytes, came, now))
		return;
	if (e->aside)
		settle(e);
	if (!e->began) {
		begin(sk, e, came);
		e->read = now;
		e->read_jiffies = (u32)bpf_jiffies64();
	} else if (now - e->read > LATER) {
		e->more = 1;
		/* What lay there already was not waited for; the jiffy of the arrival tells, which no acknowledgement
		 * changes. */
		if (came > e->read && (s32)(tcp->inet_conn.icsk_ack.lrcvtime - e->read_jiffies) > 0)
			e->rest = came;
	}
	if (with_openings && e->opening == OPENING_WANTED)
		e->opening = keep_opening(sk, bytes);
}

/* What the target had asked for was read. */
static __always_inline void got_answer(struct sock *sk, struct exchange *e, struct tcp_sock *tcp, u32 bytes, u64 now)
{
	struct group *g = its_group(e);
	u64 came;

	if (!e->began && !e->tls) {
		if (sk->__sk_common.skc_state == TCP_CLOSE_WAIT)
			note_dismissal(sk, e, TCP_CLOSE_WAIT);
		return;
	}
	came = arrival(tcp, now);
	if (came < e->began)
		came = now; /* the answer to what was written before */
	if (may_be_none(e, bytes) && !is_answer(sk, e, bytes, came))
		return;
	e->first = 0;
	count_length(&g->stages[STAGE_WHOLE], came - e->began);
	count_length(&g->stages[STAGE_READ_WAIT], now - came);
	show(sk, e, now, came, bytes, now);
	if (e->more)
		__sync_fetch_and_add(&g->more, 1);
	e->began = 0;
}

SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(on_read, struct sock *sk)
{
	struct exchange_counts *c = this_cpu();
	struct tcp_sock *tcp;
	struct exchange *e;
	u32 copied, bytes;

	if (c)
		c->reads++;
	e = of_target(sk, sk->sk_lock.owned);
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!e || !tcp)
		return 0;
	know_start(e, tcp);
	copied = tcp->copied_seq;
	bytes = copied - e->copied;
	if (bytes && took_end(sk, tcp, copied))
		bytes--;
	if (!bytes)
		return 0; /* only looked at */
	e->copied = copied;
	if (e->accepted)
		asked(sk, e, tcp, bytes, bpf_ktime_get_ns());
	else
		got_answer(sk, e, tcp, bytes, bpf_ktime_get_ns());
	return 0;
}

/* An answer to a client begins. */
static __always_inline void answer(struct sock *sk, struct exchange *e, u64 bytes, u64 now)
{
	u64 since = e->written ? now - e->written : 0;
	struct group *g = its_group(e);

	e->written = now;
	if (may_be_none(e, bytes) && !is_answer(sk, e, bytes, now))
		return;
	if (!e->began) {
		push(g, e, since);
		return;
	}
	if (e->apart)
		go_on(g, e, since);
	e->late = now - e->began > LATE;
	stood(g, e, now);
	count_length(&g->stages[STAGE_WHOLE], now - e->began);
	/* Until its first read nothing tells when a connection was accepted. */
	count_length(&g->stages[e->first ? STAGE_FIRST_READ : STAGE_READ_WAIT], e->read - e->began);
	count_length(&g->stages[STAGE_SERVICE], now - e->read);
	if (e->rest)
		count_length(&g->stages[STAGE_REST], e->rest - e->read);
	show(sk, e, e->read, now, ANSWER, now);
	if (e->more)
		__sync_fetch_and_add(&g->more, 1);
	e->began = 0;
	e->first = 0;
}

/* The target asks. Its first write is taken alone: the hook comes for each part of a long one. */
static __always_inline void ask(struct sock *sk, struct exchange *e, u64 now)
{
	begin(sk, e, now);
	e->written = now;
	if (!with_openings || e->opening == OPENING_NONE)
		return;
	keep_opening(sk, OPENING);
	e->opening = OPENING_KEPT;
}

/* And goes on. */
static __always_inline void ask_more(struct exchange *e, u64 now)
{
	e->more = 1;
	e->written = now;
}

/* The target asks, or goes on to. */
static __always_inline void say(struct sock *sk, struct exchange *e, u64 bytes, u64 now)
{
	if (!is_question(sk, e, bytes, now, now))
		return;
	if (e->aside)
		settle(e);
	if (e->began)
		ask_more(e, now);
	else
		ask(sk, e, now);
}

/* A connection of the target on which a write of so many bytes begins; NULL = it is another's. */
static __always_inline struct exchange *written(struct sock *sk, u64 bytes)
{
	struct exchange_counts *c = this_cpu();
	struct exchange *e;

	if (c)
		c->writes++;
	e = of_target(sk, true);
	if (!e)
		return NULL;
	if (e->accepted)
		answer(sk, e, bytes, bpf_ktime_get_ns());
	else
		say(sk, e, bytes, bpf_ktime_get_ns());
	return e;
}

/* A write goes on that began before: it has waited for room, or is a long one. */
static __noinline int goes_on(struct sock *sk)
{
	struct exchange *e = of_target(sk, true);

	if (e && (e->accepted || e->began))
		e->written = bpf_ktime_get_ns();
	return 0;
}

/* Since 6.16. Further writes of one answer count as pushed: what is told of those is only how many there are. */
SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(on_write, struct sock *sk, struct msghdr *msg)
{
	struct tcp_sock *tcp;
	struct exchange *e;

	/* The hook comes for each part of a write. */
	if (msg->msg_iter.iov_offset)
		return goes_on(sk);
	e = written(sk, msg->msg_iter.count);
	if (!e)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp && will_wait(tcp))
		__sync_fetch_and_add(&its_group(e)->nagled, 1);
	return 0;
}

/* Since 6.3, where the other one is not there: once the write is done, and of all protocols. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(on_sent, struct sock *sk, int length)
{
	if (length > 0 && sk->sk_protocol == 6)
		written(sk, length);
	return 0;
}

/*
 * The target begins to listen: its first clients come before user space has looked. (Who asks the kernel for any port
 * has none yet.)
 */
static __noinline void opens(struct sock *sk)
{
	struct port_pair ports = {};

	if (!watched(bpf_get_current_task_btf()))
		return;
	ports_of_sock(sk, &ports);
	now_listens(ports.local);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, struct sock *sk, int before, int now)
{
	struct exchange_counts *c = this_cpu();
	struct exchange *e;

	if (c)
		c->states++;
	if (now == TCP_LISTEN)
		opens(sk);
	if ((now != TCP_CLOSE && before != TCP_ESTABLISHED) || !is_known(sk))
		return 0;
	e = bpf_sk_storage_get(&exchanges, sk, NULL, 0);
	if (!e || e->stretch != stretch)
		return 0;
	if (!e->began) {
		note_dismissal(sk, e, now);
		return 0;
	}
	if (now != TCP_CLOSE) {
		note_end(sk, e, now);
		return 0;
	}
	if (e->aside) {
		settle(e);
		return 0;
	}
	if (e->tls)
		__sync_fetch_and_add(&its_group(e)->began, 1); /* a hello to which nobody said anything */
	__sync_fetch_and_add(&its_group(e)->unanswered, 1);
	if (e->hung_up)
		__sync_fetch_and_add(&its_group(e)->hung_up, 1);
	e->began = 0;
	return 0;
}

#include "in_hand.bpf.h"

char LICENSE[] SEC("license") = "GPL";
