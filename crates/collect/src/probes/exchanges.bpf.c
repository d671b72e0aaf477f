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
};

struct group all_groups[GROUPS]; /* the first is of peers for which there was no group left */
u32 last_group; /* number of the last one that is used */
u32 stretch; /* number of the time in which connections are followed: between two of them, nobody knows what was said */
u64 listening[1024]; /* ports at which somebody listens, a bit each; kept by user space */

struct exchange_counts {
	u64 reads; /* hits, bystanders' too */
	u64 writes;
	u64 states;
	u64 kept; /* connections */
	u64 lost; /* connections without room */
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

/* --- the kernel's clock --------------------------------------------------------------------- */

u64 anchor_ns;
u64 anchor_jiffies;
u64 jiffy_ns; /* 0 = not known yet */

/* The length of a jiffy, from two readings of both clocks. */
static __noinline u64 learn_jiffy(u64 now)
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

/* --- groups --------------------------------------------------------------------------------- */

static __always_inline bool is_asked_at(u16 port)
{
	return listening[port >> 6] >> (port & 63) & 1;
}

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
	key.port = sk->__sk_common.skc_num;
	key.accepted = is_asked_at(key.port);
	if (!key.accepted) {
		key.port = __builtin_bswap16(sk->__sk_common.skc_dport);
		key.family = sk->__sk_common.skc_family;
		if (key.family == AF_INET6)
			bpf_core_read(key.peer, 16, &sk->__sk_common.skc_v6_daddr);
		else
			bpf_core_read(key.peer, 4, &sk->__sk_common.skc_daddr);
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

static __always_inline void begin(struct exchange *e, u64 at)
{
	e->began = at;
	e->more = 0;
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
static __always_inline void got_answer(struct exchange *e, struct tcp_sock *tcp, u64 now)
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
		got_answer(e, tcp, bpf_ktime_get_ns());
	return 0;
}

/* An answer to a client begins. */
static __always_inline void answer(struct exchange *e, u64 now)
{
	struct group *g = its_group(e);

	if (!e->began) {
		__sync_fetch_and_add(&g->pushed, 1);
		return;
	}
	count_length(&g->stages[STAGE_WHOLE], now - e->began);
	count_length(&g->stages[STAGE_READ_WAIT], e->read - e->began);
	count_length(&g->stages[STAGE_SERVICE], now - e->read);
	if (e->more)
		__sync_fetch_and_add(&g->more, 1);
	e->began = 0;
}

static __always_inline int written(struct sock *sk)
{
	struct exchange_counts *c = this_cpu();
	struct exchange *e;

	if (c)
		c->writes++;
	e = of_target(sk);
	if (!e)
		return 0;
	if (e->accepted)
		answer(e, bpf_ktime_get_ns());
	else if (!e->began)
		begin(e, bpf_ktime_get_ns());
	else
		e->more = 1;
	return 0;
}

/* Since 6.16. Further writes of one answer count as pushed: what is told of those is only how many there are. */
SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(on_write, struct sock *sk)
{
	return written(sk);
}

/* Since 6.3, where the other one is not there: once the write is done, and of all protocols. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(on_sent, struct sock *sk, int length)
{
	if (length <= 0 || sk->sk_protocol != 6)
		return 0;
	return written(sk);
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
