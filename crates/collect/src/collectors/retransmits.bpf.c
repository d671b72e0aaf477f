// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * TCP segments that were sent again, and connections that were reset, of one network namespace: added up by what they
 * have in common. The hooks are of the whole host and rare: what is sent again has waited for a timer or for
 * acknowledgements.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "socket.bpf.h"
#include "listening.bpf.h"
#include "tally.bpf.h"

#define TCP_TIME_WAIT 6
#define TCP_NEW_SYN_RECV 12

enum event { RETRANSMIT, RESET_SENT, RESET_RECEIVED, EVENTS };

struct retransmit_key {
	u8 peer[16]; /* of a connection that was made */
	u16 family; /* likewise */
	u16 port; /* own, or that peer's */
	u16 reason; /* of a reset that was sent, as the kernel numbers them, plus one; 0 = it tells none */
	u8 event;
	u8 role;
	u8 state; /* of the connection; 0 = there is none */
	u8 failed;
	u8 unanswered; /* likewise, to a client to whom nothing had been sent on the connection */
	u8 unused;
};
LAYOUT_OF(retransmit_key);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GROUPS);
	__type(key, struct retransmit_key);
	__type(value, u64);
} retransmits SEC(".maps");

struct retransmit_counts {
	u64 hits[EVENTS]; /* those of other network namespaces too */
	u64 kept;
	u64 lost;
};
LAYOUT_OF(retransmit_counts);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct retransmit_counts);
} retransmit_counts SEC(".maps");

const volatile u32 network; /* number of the network namespace */
const volatile bool tells_error; /* the kernel says whether a segment could be sent again */
const volatile bool tells_reason; /* and why it resets */

static __noinline int add(struct retransmit_key *key)
{
	struct retransmit_counts *c;
	bool is_kept;
	u32 zero = 0;

	if (!key)
		return 0;
	is_kept = TALLY(&retransmits, key, 1);
	c = bpf_map_lookup_elem(&retransmit_counts, &zero);
	if (c && is_kept)
		c->kept++;
	else if (c)
		c->lost++;
	return 0;
}

static __always_inline void hit(enum event event)
{
	u32 zero = 0;
	struct retransmit_counts *c = bpf_map_lookup_elem(&retransmit_counts, &zero);

	if (c)
		c->hits[event]++;
}

/*
 * Whether nothing was ever sent on it, or but a word before anything was read: that there is no room. Of what is left
 * of a connection in TIME_WAIT, and before it is made, nobody can tell.
 */
static __always_inline bool is_unanswered(const struct sock *sk, u8 state)
{
	const struct tcp_sock *tcp = (const struct tcp_sock *)sk;
	u32 first;

	if (state == TCP_TIME_WAIT || state == TCP_LISTEN || state == TCP_NEW_SYN_RECV)
		return false;
	first = BPF_CORE_READ(tcp, rcv_nxt) - (u32)BPF_CORE_READ(tcp, bytes_received);
	return !BPF_CORE_READ(tcp, data_segs_out) || BPF_CORE_READ(tcp, copied_seq) == first;
}

/* Counts what happened to a connection, if it is of the network namespace. */
static __always_inline void of_connection(const struct sock *sk, struct retransmit_key *key)
{
	struct port_pair ports = {};
	u16 own;

	if (BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum) != network)
		return;
	key->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	own = own_port(sk, key->state);
	if (is_listening(own) || key->state == TCP_LISTEN) {
		key->role = ACCEPTED;
		key->port = own;
		key->unanswered = key->event == RESET_SENT && is_unanswered(sk, key->state);
	} else {
		key->role = MADE;
		ports_of_sock((struct sock *)sk, &ports);
		key->family = ports.family;
		key->port = ports.remote;
		__builtin_memcpy(key->peer, ports.peer, sizeof(key->peer));
	}
	add(key);
}

/* The same of a segment that came for no socket: all that is known is the port that it was sent to. */
static __always_inline void of_segment(const struct sk_buff *skb, struct retransmit_key *key)
{
	void *header;
	u16 port = 0;

	if (BPF_CORE_READ(skb, dev, nd_net.net, ns.inum) != network)
		return;
	header = BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, transport_header);
	bpf_probe_read_kernel(&port, sizeof(port), header + 2);
	key->role = NO_SOCKET;
	key->port = __builtin_bswap16(port);
	add(key);
}

/* Arguments: socket, segment, and in newer kernels the error with which it was not sent. */
SEC("tp_btf/tcp_retransmit_skb")
int on_retransmit(u64 *ctx)
{
	const struct sock *sk = (void *)ctx[0];
	struct retransmit_key key = {.event = RETRANSMIT};

	hit(RETRANSMIT);
	if (!sk)
		return 0;
	if (tells_error)
		key.failed = (int)ctx[2] != 0;
	of_connection(sk, &key);
	return 0;
}

/* Arguments: socket or none, the segment that is answered or none, and in newer kernels the reason. */
SEC("tp_btf/tcp_send_reset")
int on_send_reset(u64 *ctx)
{
	struct retransmit_key key = {.event = RESET_SENT};
	const struct sk_buff *skb = NULL;
	const struct sock *sk = NULL;

	/* As numbers: some kernels tell the verifier that there always is one, and the question would be left out. */
	bpf_probe_read_kernel(&sk, sizeof(sk), &ctx[0]);
	bpf_probe_read_kernel(&skb, sizeof(skb), &ctx[1]);
	hit(RESET_SENT);
	if (tells_reason)
		key.reason = (u16)ctx[2] + 1;
	if (sk)
		of_connection(sk, &key);
	else if (skb)
		of_segment(skb, &key);
	return 0;
}

SEC("tp_btf/tcp_receive_reset")
int on_receive_reset(u64 *ctx)
{
	const struct sock *sk = (void *)ctx[0];
	struct retransmit_key key = {.event = RESET_RECEIVED};

	hit(RESET_RECEIVED);
	if (sk)
		of_connection(sk, &key);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
