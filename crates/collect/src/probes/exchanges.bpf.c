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
#include "listening.bpf.h"
#include "arrival.bpf.h"

#define TCP_CLOSE 7
#define GROUPS 64
#define FOR_PORTS 16 /* groups that only ports at which clients ask may have */
/* Bytes that come so long after the first were read, ns, are more than the rest of one request. */
#define LATER 100000

enum stage { STAGE_WHOLE, STAGE_READ_WAIT, STAGE_SERVICE, STAGES };

/* What is under way on one connection. */
struct exchange {
	u64 began; /* its first byte arrived or, where the target asks, was written; 0 = none is under way */
	u64 read; /* its first byte was read */
	u32 copied; /* up to where the program had read */
	u32 stretch; /* in which that was */
	u32 tid; /* of the thread that read what was asked, or asked */
	u16 group;
	u8 accepted; /* a client asks */
	u8 more; /* further bytes came later, or were written, before the answer */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct exchange);
} exchanges SEC(".maps");

/* One port of the target's at which clients ask, or one peer that the target asks; the number of its group. */
struct group_key {
	u8 peer[16]; /* zero where clients ask */
	u16 family;
	u16 port; /* own, or the peer's */
	u32 accepted;
};
LAYOUT_OF(group_key);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GROUPS);
	__type(key, struct group_key);
	__type(value, u32);
} groups SEC(".maps");

/* What happened in a group since the start. */
struct group {
	struct histogram stages[STAGES];
	u64 began;
	u64 unanswered; /* closed before an answer */
	u64 more; /* answered, after more had been asked meanwhile */
	u64 pushed; /* writes to clients that had asked nothing */
	u64 nagled; /* writes that Nagle's algorithm keeps until what was sent before is acknowledged */
};

struct group all_groups[GROUPS]; /* the first is of peers for which there was no group left */
u32 last_group; /* number of the last one that is used */
u32 stretch; /* number of the time in which connections are followed: between two of them, nobody knows what was said */

/* One exchange that ended in a burst. */
struct request {
	u64 began; /* as above */
	u64 read; /* a client's question, or the answer to the target's */
	u64 ended; /* the answer was written, or arrived */
	u32 tgid;
	u32 began_tid; /* who read the question, or asked */
	u32 ended_tid; /* who wrote the answer, or read it */
	u32 accepted;
	struct port_pair ports;
};
LAYOUT_OF(request);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10);
} requests SEC(".maps");

struct exchange_counts {
	u64 reads; /* hits, bystanders' too */
	u64 writes;
	u64 states;
	u64 kept; /* connections */
	u64 lost; /* connections without room */
	u64 requests; /* told in full */
	u64 requests_lost; /* no room in the ring */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct exchange_counts);
} exchange_counts SEC(".maps");

static __always_inline struct exchange_counts *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&exchange_counts, &zero);
}

/* --- groups --------------------------------------------------------------------------------- */

/* The number of a group; 0 = there are too many. */
static __noinline u32 group_of(const struct group_key *key)
{
	u32 *known = bpf_map_lookup_elem(&groups, key), mine;

	if (known)
		return *known;
	if (last_group >= GROUPS - 1 - (key->accepted ? 0 : FOR_PORTS))
		return 0;
	mine = __sync_fetch_and_add(&last_group, 1) + 1;
	if (mine >= GROUPS)
		return 0;
	if (bpf_map_update_elem(&groups, key, &mine, BPF_NOEXIST)) {
		known = bpf_map_lookup_elem(&groups, key); /* another CPU was faster */
		return known ? *known : 0;
	}
	return mine;
}

static __always_inline struct group *its_group(const struct exchange *e)
{
	u32 number = e->group;

	return &all_groups[number < GROUPS ? number : 0];
}

/* Begins to look at a connection; NULL = it is not the target's, or there is no room. */
static __noinline struct exchange *meet(struct sock *sk)
{
	struct port_pair ports = {};
	struct group_key key = {};
	struct exchange_counts *c;
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
	return e;
}

static __always_inline struct exchange *of_target(struct sock *sk)
{
	struct exchange *e = NULL;

	if (sk->sk_bpf_storage)
		e = bpf_sk_storage_get(&exchanges, sk, NULL, 0);
	if (!e)
		e = meet(sk);
	if (e && e->stretch != stretch) {
		e->stretch = stretch;
		e->began = 0;
	}
	return e;
}

/* --- hooks ---------------------------------------------------------------------------------- */

/* Tells all of an exchange that ends, in a burst. */
static __always_inline void show(struct sock *sk, struct exchange *e, u64 read, u64 ended, u64 now)
{
	struct exchange_counts *c;
	struct task_struct *task;
	struct request *row;

	/* First: mostly none is on. */
	if (!in_burst(now))
		return;
	c = this_cpu();
	if (!c)
		return;
	row = bpf_ringbuf_reserve(&requests, sizeof(*row), 0);
	if (!row) {
		c->requests_lost++;
		return;
	}
	c->requests++;
	task = bpf_get_current_task_btf();
	row->began = e->began;
	row->read = read;
	row->ended = ended;
	row->tgid = task->tgid;
	row->began_tid = e->tid;
	row->ended_tid = task->pid;
	row->accepted = e->accepted;
	__builtin_memset(&row->ports, 0, sizeof(row->ports));
	ports_of_sock(sk, &row->ports);
	bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
}

static __always_inline void begin(struct exchange *e, u64 at)
{
	e->began = at;
	e->more = 0;
	e->tid = bpf_get_current_task_btf()->pid;
	__sync_fetch_and_add(&its_group(e)->began, 1);
}

/* A client's request was read, or more of it. */
static __always_inline void asked(struct exchange *e, struct tcp_sock *tcp, u64 now)
{
	if (!e->began) {
		begin(e, arrival(tcp, now));
		e->read = now;
	} else if (now - e->read > LATER) {
		e->more = 1;
	}
}

/* What the target had asked for was read. */
static __always_inline void got_answer(struct sock *sk, struct exchange *e, struct tcp_sock *tcp, u64 now)
{
	struct group *g = its_group(e);
	u64 came;

	if (!e->began)
		return;
	came = arrival(tcp, now);
	if (came < e->began)
		came = now; /* the answer to what was written before */
	count_length(&g->stages[STAGE_WHOLE], came - e->began);
	count_length(&g->stages[STAGE_READ_WAIT], now - came);
	show(sk, e, now, came, now);
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
	u32 copied;

	if (c)
		c->reads++;
	e = of_target(sk);
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!e || !tcp)
		return 0;
	copied = tcp->copied_seq;
	if (copied == e->copied)
		return 0; /* only looked at */
	e->copied = copied;
	if (e->accepted)
		asked(e, tcp, bpf_ktime_get_ns());
	else
		got_answer(sk, e, tcp, bpf_ktime_get_ns());
	return 0;
}

/* An answer to a client begins. */
static __always_inline void answer(struct sock *sk, struct exchange *e, u64 now)
{
	struct group *g = its_group(e);

	if (!e->began) {
		__sync_fetch_and_add(&g->pushed, 1);
		return;
	}
	count_length(&g->stages[STAGE_WHOLE], now - e->began);
	count_length(&g->stages[STAGE_READ_WAIT], e->read - e->began);
	count_length(&g->stages[STAGE_SERVICE], now - e->read);
	show(sk, e, e->read, now, now);
	if (e->more)
		__sync_fetch_and_add(&g->more, 1);
	e->began = 0;
}

/* A connection of the target on which a write begins; NULL = it is another's. */
static __always_inline struct exchange *written(struct sock *sk)
{
	struct exchange_counts *c = this_cpu();
	struct exchange *e;

	if (c)
		c->writes++;
	e = of_target(sk);
	if (!e)
		return NULL;
	if (e->accepted)
		answer(sk, e, bpf_ktime_get_ns());
	else if (!e->began)
		begin(e, bpf_ktime_get_ns());
	else
		e->more = 1;
	return e;
}

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

/* Since 6.16. Further writes of one answer count as pushed: what is told of those is only how many there are. */
SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(on_write, struct sock *sk)
{
	struct exchange *e = written(sk);
	struct tcp_sock *tcp;

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
		written(sk);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, struct sock *sk, int before, int now)
{
	struct exchange_counts *c = this_cpu();
	struct exchange *e;

	if (c)
		c->states++;
	if (now != TCP_CLOSE || !sk->sk_bpf_storage)
		return 0;
	e = bpf_sk_storage_get(&exchanges, sk, NULL, 0);
	if (e && e->began && e->stretch == stretch) {
		__sync_fetch_and_add(&its_group(e)->unanswered, 1);
		e->began = 0;
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
