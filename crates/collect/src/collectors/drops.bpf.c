// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Packets that the kernel dropped, of one network namespace: added up by reason, place and whose they were. The hook is
 * of the whole host. Of very many, as in a flood, each 64th stands for the others, so that what they cost is
 * bounded; those of other network namespaces do not count among them, or their flood would hide the few of ours.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "socket.bpf.h"
#include "listening.bpf.h"
#include "tally.bpf.h"

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define NO_HEADER 0xffff /* of an offset: it is not known yet */
#define LATER_FRAGMENT 0x1fff /* bits of the offset in a packet that is cut */
#define SYN 0x02
#define ACK 0x10
#define IN_FULL 2000 /* on one CPU in a turn of 2^27 ns (0.13 s) */
#define ONE_IN 64 /* of the others; a power of two */

struct drop_key {
	u64 place; /* address of the code that drops */
	u8 peer[16]; /* of a connection that was made */
	u32 reason; /* as the kernel numbers them */
	u16 family; /* of the peer */
	u16 port; /* own, or that peer's */
	u8 protocol; /* of IP */
	u8 role;
	u8 begins; /* it is the first segment of a connection */
	u8 unused[5];
};
LAYOUT_OF(drop_key);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GROUPS);
	__type(key, struct drop_key);
	__type(value, u64);
} drops SEC(".maps");

struct drop_counts {
	u64 hits; /* those of other network namespaces too, and what is no packet */
	u64 kept;
	u64 lost;
	u64 turn;
	u64 in_turn;
};
LAYOUT_OF(drop_counts);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct drop_counts);
} drop_counts SEC(".maps");

const volatile u32 network; /* number of the network namespace */
const volatile bool tells_reason; /* the kernel says why */
const volatile bool tells_receiver; /* and which socket it was for */
const volatile u32 no_socket; /* the reason of what came for a port without one */
const volatile u32 purged, closed; /* those of what was in a socket that ends: that is no drop on the way */

/* What a packet says of itself. */
struct packet {
	const unsigned char *ip;
	const unsigned char *transport; /* NULL = it is not known yet */
	u16 family;
	u8 protocol;
};

/* How many packets this one stands for; 0 = it is told by a later one. */
static __always_inline u64 weight(struct drop_counts *c)
{
	u64 turn = bpf_ktime_get_ns() >> 27;

	if (c->turn != turn) {
		c->turn = turn;
		c->in_turn = 0;
	}
	if (c->in_turn++ < IN_FULL)
		return 1;
	return c->in_turn % ONE_IN ? 0 : ONE_IN;
}

/* Into how many segments it would have been cut. */
static __always_inline u64 segments(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = (void *)(BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, end));

	return BPF_CORE_READ(info, gso_segs) ?: 1;
}

/* Reads where the headers are; false = it is no IP packet, or not yet. */
static __always_inline bool look(const struct sk_buff *skb, struct packet *packet)
{
	const unsigned char *head = BPF_CORE_READ(skb, head);
	u16 network_header = BPF_CORE_READ(skb, network_header), transport = BPF_CORE_READ(skb, transport_header);
	u16 protocol = __builtin_bswap16(BPF_CORE_READ(skb, protocol));
	bool is_ip = protocol == ETH_P_IP;
	u16 fragment = 0;
	u8 version = 0;

	if (!is_ip && protocol != ETH_P_IPV6)
		return false;
	packet->ip = head + network_header;
	bpf_probe_read_kernel(&version, 1, packet->ip);
	if (version >> 4 != (is_ip ? 4 : 6))
		return false;
	bpf_probe_read_kernel(&packet->protocol, 1, packet->ip + (is_ip ? 9 : 6));
	packet->family = is_ip ? AF_INET : AF_INET6;
	if (is_ip)
		bpf_probe_read_kernel(&fragment, sizeof(fragment), packet->ip + 6);
	if (transport != NO_HEADER && transport > network_header && !(__builtin_bswap16(fragment) & LATER_FRAGMENT))
		packet->transport = head + transport;
	return true;
}

static __always_inline u16 port_at(const unsigned char *at)
{
	u16 port = 0;

	bpf_probe_read_kernel(&port, sizeof(port), at);
	return __builtin_bswap16(port);
}

/* The other end of a packet that came. */
static __always_inline void take_sender(struct drop_key *key, const struct packet *packet, u16 port)
{
	key->role = MADE;
	key->port = port;
	key->family = packet->family;
	if (packet->family == AF_INET)
		bpf_probe_read_kernel(key->peer, 4, packet->ip + 12);
	else
		bpf_probe_read_kernel(key->peer, 16, packet->ip + 8);
}

static __always_inline bool begins(const struct packet *packet)
{
	u8 flags = 0;

	if (packet->protocol != IPPROTO_TCP || !packet->transport)
		return false;
	bpf_probe_read_kernel(&flags, sizeof(flags), packet->transport + 13);
	return (flags & (SYN | ACK)) == SYN;
}

/* Whose a packet was, by the socket that it was of or for. */
static __always_inline void take_socket(struct drop_key *key, const struct packet *packet, struct sock *sk)
{
	struct port_pair ports = {};

	ports_of_sock(sk, &ports);
	ports.local = own_port(sk, BPF_CORE_READ(sk, __sk_common.skc_state));
	if (packet->protocol == IPPROTO_UDP) {
		key->role = NO_SOCKET;
		key->port = ports.local;
	} else if (is_listening(ports.local)) {
		key->role = ACCEPTED;
		key->port = ports.local;
	} else {
		key->role = MADE;
		key->family = ports.family;
		key->port = ports.remote;
		__builtin_memcpy(key->peer, ports.peer, sizeof(key->peer));
	}
}

/* The same by the ports in it. Nobody knows then whether it came or was sent. */
static __always_inline void take_ports(struct drop_key *key, const struct packet *packet)
{
	u16 from = port_at(packet->transport), to = port_at(packet->transport + 2);

	if (packet->protocol == IPPROTO_UDP || key->reason == no_socket) {
		key->role = NO_SOCKET;
		key->port = to;
	} else if (is_listening(to) || is_listening(from)) {
		key->role = ACCEPTED;
		key->port = is_listening(to) ? to : from;
	} else {
		take_sender(key, packet, from);
	}
}

/* The number of its network namespace; 0 = there is nothing on it that would tell. */
static __always_inline u32 network_of(const struct sk_buff *skb, struct sock *owner)
{
	return owner ? BPF_CORE_READ(owner, __sk_common.skc_net.net, ns.inum)
		     : BPF_CORE_READ(skb, dev, nd_net.net, ns.inum);
}

/*
 * Arguments: packet, place, and in newer kernels the reason, and the socket that it was for. That may be none, which
 * some kernels do not tell the verifier, so it is read as a number.
 */
SEC("tp_btf/kfree_skb")
int on_drop(u64 *ctx)
{
	const struct sk_buff *skb = (void *)ctx[0];
	struct drop_key key = {.place = ctx[1], .role = OTHERS};
	struct packet packet = {};
	struct sock *owner = NULL;
	struct drop_counts *c;
	u32 zero = 0, net;
	bool has_ports;
	u64 packets;

	c = bpf_map_lookup_elem(&drop_counts, &zero);
	if (!c || !skb)
		return 0;
	c->hits++;
	if (tells_reason)
		key.reason = (u32)ctx[2];
	if (key.reason && (key.reason == purged || key.reason == closed))
		return 0;
	if (tells_receiver)
		bpf_probe_read_kernel(&owner, sizeof(owner), &ctx[3]);
	if (!owner)
		owner = BPF_CORE_READ(skb, sk);
	net = network_of(skb, owner);
	if (net && net != network)
		return 0;
	packets = weight(c);
	if (!packets || !look(skb, &packet))
		return 0;
	key.protocol = packet.protocol;
	key.begins = begins(&packet);
	has_ports = packet.protocol == IPPROTO_TCP || packet.protocol == IPPROTO_UDP;
	if (net && has_ports && owner)
		take_socket(&key, &packet, owner);
	else if (net && has_ports && packet.transport)
		take_ports(&key, &packet);
	if (TALLY(&drops, &key, packets * segments(skb)))
		c->kept++;
	else
		c->lost++;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
