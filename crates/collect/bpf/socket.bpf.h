/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Which socket a system call works on, as far as its ports tell: enough to know whether a wakeup came from a client of
 * the target or from a service that the target itself asks.
 */
#pragma once

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define TCP_ESTABLISHED 1
#define TCP_FIN_WAIT1 4
#define TCP_CLOSE 7
#define TCP_CLOSE_WAIT 8
#define TCP_LAST_ACK 9
#define TCP_LISTEN 10
#define TCP_CLOSING 11

struct port_pair {
	u8 peer[16]; /* address of the other end, in network order; of an IPv4 socket the first four */
	u16 family; /* 0 = not a socket */
	u16 local; /* port; of a Unix socket 1 = it has a name, as those have that were accepted */
	u16 remote; /* likewise of the other end */
	u16 zero;
};

static __always_inline void names_of(struct sock *sk, struct port_pair *ports)
{
	struct unix_sock *own = (struct unix_sock *)sk;
	struct unix_sock *peer = (struct unix_sock *)BPF_CORE_READ(own, peer);

	ports->local = BPF_CORE_READ(own, addr) ? 1 : 0;
	ports->remote = peer && BPF_CORE_READ(peer, addr) ? 1 : 0;
}

/* Fills in the ports of a socket. */
static __always_inline void ports_of_sock(struct sock *sk, struct port_pair *ports)
{
	ports->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (ports->family == AF_UNIX)
		names_of(sk, ports);
	if (ports->family != AF_INET && ports->family != AF_INET6)
		return;
	ports->local = BPF_CORE_READ(sk, __sk_common.skc_num);
	ports->remote = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (ports->family == AF_INET)
		bpf_core_read(ports->peer, 4, &sk->__sk_common.skc_daddr);
	else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr))
		bpf_core_read(ports->peer, 16, &sk->__sk_common.skc_v6_daddr);
}

/* The ports of the socket that a file is. */
static __always_inline void ports_of(struct file *file, struct port_pair *ports)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);

	ports_of_sock(BPF_CORE_READ(socket, sk), ports);
}

/* The own port, also of a socket that is closed and has given it up. */
static __always_inline u16 own_port(const struct sock *sk, u8 state)
{
	u16 port = BPF_CORE_READ(sk, __sk_common.skc_num);

	if (port || state != TCP_CLOSE)
		return port;
	return __builtin_bswap16(BPF_CORE_READ((const struct inet_sock *)sk, inet_sport));
}
