// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * A look at the target's TCP connections: one row for each descriptor that is one. It hangs on no hook; an iterator
 * walks the descriptors of the target's processes when user space asks, and reads without a lock, so that nobody waits
 * for it.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "target.bpf.h"
#include "call.bpf.h"
#include "socket.bpf.h"

#define IPPROTO_TCP 6
#define IPPROTO_MPTCP 262
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2

/* One connection as it stands, or a listener; what it means is told in user space. */
struct connection_row {
	u64 at; /* CLOCK_MONOTONIC, ns */
	u64 touched_us; /* when something was sent or came last, CLOCK_MONOTONIC */
	u64 delivered_us; /* when our data was acknowledged last, likewise */
	u64 inode; /* of a listener, by which descriptors of one are known; else 0 */
	u32 now; /* jiffies */
	u32 received_at; /* jiffies at which data came last */
	u32 sent_at; /* jiffies at which data was sent last */
	u32 unread; /* bytes that came and were not read */
	u32 unsaid; /* bytes that came since we sent anything, were it an acknowledgement */
	u32 in_flight; /* bytes sent and not acknowledged */
	u32 unsent; /* bytes written and not sent */
	u32 prompt; /* data of ours followed what had come within a few jiffies, the last time */
	u32 heard; /* anything ever came */
	u32 tgid;
	u32 awaited; /* a thread of the process waits for what comes next here, and for nothing else */
	u32 limited[3]; /* jiffies in which there was something to send, of that held by the window, by the send buffer
			 */
	u32 retransmits; /* segments sent again */
	u32 segments; /* that came, with data */
	u32 segments_out; /* that were sent with data, also again */
	u32 cwnd; /* segments that may be on their way */
	/* Of one with something unsent or on its way; else zero: */
	u32 options; /* OPTION_* */
	u32 partial; /* what was sent last in less than a full segment is not acknowledged */
	u32 repairing; /* segments held lost, or sent again and not acknowledged */
	u32 packets; /* segments on their way */
	u32 mss;
	u32 window; /* of the other end, bytes */
	u32 widest; /* that one, at its widest */
	u32 srtt_us;
	u32 min_rtt_us;
	u32 slow_start; /* the congestion window has met no limit of the network yet */
	u32 acked; /* bytes that were acknowledged so far; all ones = more than it can hold */
	u32 queued; /* of a listener: connections in its accept queue */
	u8 said; /* data was ever sent */
	u8 closed; /* the other end has closed its side: the last of what came is that, which counts as a byte */
	u16 opening; /* it is asked for, and nobody has answered yet; nothing else is known then */
	struct port_pair ports;
};
LAYOUT_OF(connection_row);

/* Options in force, and what is known besides; the first three as in `nonagle`. */
#define OPTION_NODELAY 1
#define OPTION_CORK 2
#define OPTION_PUSH 4
#define OPTION_OWN_SNDBUF 8 /* the program has sized the buffer itself */
#define OPTION_OWN_RCVBUF 16
#define OPTION_KEEPALIVE 32
#define OPTION_NO_ROOM 64 /* whoever writes found the send buffer full */
#define OPTION_PACED 128 /* pacing lets it send at some later time */

/* Bits, by their places. */
#define SNDBUF_LOCK 0
#define RCVBUF_LOCK 1
#define FLAG_KEEPOPEN 3 /* of a sock */
#define FLAG_NOSPACE 2 /* of a socket */

/* Who waits for a socket is looked for so far. An epoll stands there too, mostly alone. */
#define WAITERS 4
/* A poll of so many descriptors is one for this connection; the other one may be there to be woken by. */
#define ALONE 2

/* A read puts its task there, a poll what it knows of itself, an epoll nothing. */
static __always_inline bool is_of(void *waiter, u32 tgid)
{
	struct task_struct *task = waiter;
	struct poll_wqueues *poll = waiter;

	/* First: where a task keeps its number, a poll has whatever lies beyond it on the stack. */
	if (BPF_CORE_READ(poll, polling_task, tgid) == tgid)
		return BPF_CORE_READ(poll, inline_index) <= ALONE;
	return BPF_CORE_READ(task, tgid) == tgid;
}

/*
 * Whether somebody stands in a read of this connection, or in a poll of it alone: then no request that came here is in
 * hand, whoever spoke last. Not everything that is said wants an answer (a statement is closed, a log line sent).
 * A global function, as the next ones: checked once, and not with all that comes after for each of the ways through it.
 * Such a one takes the address of a socket for a number.
 */
__noinline bool is_awaited(u64 socket, u32 tgid)
{
	struct sock *sk = (void *)socket;
	struct socket_wq *wq = BPF_CORE_READ(sk, sk_wq);
	struct list_head *first, *at;
	int i;

	if (!wq)
		return false;
	first = __builtin_preserve_access_index(&wq->wait.head);
	at = BPF_CORE_READ(first, next);
	for (i = 0; i < WAITERS && at && at != first; i++) {
		struct wait_queue_entry *entry = (void *)at - bpf_core_field_offset(struct wait_queue_entry, entry);
		void *waiter = BPF_CORE_READ(entry, private);

		if (waiter && is_of(waiter, tgid))
			return true;
		at = BPF_CORE_READ(at, next);
	}
	return false;
}

/* For how long it had something to send, and what held it: the kernel's own sums, and what is on since. */
__noinline int read_limits(u64 socket, struct connection_row *row, bool sends)
{
	struct tcp_sock *tcp = (void *)socket;
	u32 kind, since;

	if (!row)
		return 0; /* the verifier wants to be told */
	BPF_CORE_READ_INTO(&row->limited, tcp, chrono_stat);
	row->retransmits = BPF_CORE_READ(tcp, total_retrans);
	row->segments = BPF_CORE_READ(tcp, data_segs_in);
	row->segments_out = BPF_CORE_READ(tcp, data_segs_out);
	if (!sends)
		return 0;
	kind = BPF_CORE_READ_BITFIELD_PROBED(tcp, chrono_type);
	since = row->now - BPF_CORE_READ(tcp, chrono_start);
	/* By constant places: older verifiers do not see how far `kind` reaches. */
	row->limited[0] += kind == 1 ? since : 0;
	row->limited[1] += kind == 2 ? since : 0;
	row->limited[2] += kind == 3 ? since : 0;
	return 0;
}

/* An option where a bit is set, by shifts: each branch here would double the ways that the verifier follows. */
#define OPTION_AT(bits, at, option) (((bits) >> (at)&1) * (option))

static __always_inline u32 options_of(struct sock *sk, struct tcp_sock *tcp)
{
	u32 options = BPF_CORE_READ_BITFIELD_PROBED(tcp, nonagle) & (OPTION_NODELAY | OPTION_CORK | OPTION_PUSH);
	u32 locks = BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks);

	options |= OPTION_AT(locks, SNDBUF_LOCK, OPTION_OWN_SNDBUF);
	options |= OPTION_AT(locks, RCVBUF_LOCK, OPTION_OWN_RCVBUF);
	options |= OPTION_AT(BPF_CORE_READ(sk, __sk_common.skc_flags), FLAG_KEEPOPEN, OPTION_KEEPALIVE);
	options |= OPTION_AT(BPF_CORE_READ(sk, sk_socket, flags), FLAG_NOSPACE, OPTION_NO_ROOM);
	if (bpf_core_field_exists(tcp->tcp_wstamp_ns))
		options |= OPTION_AT(bpf_ktime_get_ns() - BPF_CORE_READ(tcp, tcp_wstamp_ns), 63, OPTION_PACED);
	return options;
}

/* What may keep it from sending. */
__noinline int read_sending(u64 socket, struct connection_row *row)
{
	struct tcp_sock *tcp = (void *)socket;
	u32 una = BPF_CORE_READ(tcp, snd_una), small = BPF_CORE_READ(tcp, snd_sml) - una;
	u32 sacked = BPF_CORE_READ(tcp, sacked_out), lost = BPF_CORE_READ(tcp, lost_out);
	u32 again = BPF_CORE_READ(tcp, retrans_out);
	u64 acked;

	if (!row)
		return 0;
	row->options = options_of((void *)socket, tcp);
	row->partial = small > 0 && small <= row->in_flight;
	row->repairing = lost + again;
	row->packets = BPF_CORE_READ(tcp, packets_out) + again - sacked - lost;
	row->mss = BPF_CORE_READ(tcp, mss_cache);
	row->window = BPF_CORE_READ(tcp, snd_wnd);
	row->widest = BPF_CORE_READ(tcp, max_window);
	row->srtt_us = BPF_CORE_READ(tcp, srtt_us) >> 3;
	row->min_rtt_us = BPF_CORE_READ(tcp, rtt_min.s[0].v);
	row->slow_start = row->cwnd < BPF_CORE_READ(tcp, snd_ssthresh);
	acked = BPF_CORE_READ(tcp, bytes_acked);
	row->acked = acked < ~0U ? acked : ~0U;
	return 0;
}

/* What is known of a connection. */
static __always_inline void read_connection(struct sock *sk, u32 tgid, struct connection_row *row)
{
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	u32 copied, acknowledged, una, next; /* first what is behind: between two readings all of them move on */

	row->now = (u32)bpf_jiffies64();
	row->touched_us = BPF_CORE_READ(tcp, tcp_mstamp);
	row->delivered_us = BPF_CORE_READ(tcp, delivered_mstamp);
	row->received_at = BPF_CORE_READ(tcp, inet_conn.icsk_ack.lrcvtime);
	row->sent_at = BPF_CORE_READ(tcp, lsndtime);
	copied = BPF_CORE_READ(tcp, copied_seq);
	acknowledged = BPF_CORE_READ(tcp, rcv_wup);
	una = BPF_CORE_READ(tcp, snd_una);
	next = BPF_CORE_READ(tcp, snd_nxt);
	barrier();
	row->unread = BPF_CORE_READ(tcp, rcv_nxt) - copied;
	row->unsaid = BPF_CORE_READ(tcp, rcv_nxt) - acknowledged;
	row->in_flight = next - una;
	row->unsent = BPF_CORE_READ(tcp, write_seq) - next;
	row->prompt = BPF_CORE_READ(tcp, inet_conn.icsk_ack.pingpong) > 0;
	row->heard = BPF_CORE_READ(tcp, bytes_received) > row->closed;
	row->said = BPF_CORE_READ(tcp, data_segs_out) > 0;
	row->tgid = tgid;
	row->awaited = is_awaited((u64)sk, tgid);
	row->cwnd = BPF_CORE_READ(tcp, snd_cwnd);
	read_limits((u64)sk, row, row->in_flight > 0 || row->unsent > 0);
	if (row->in_flight > 0 || row->unsent > 0)
		read_sending((u64)sk, row);
}

/* The TCP socket that has the state of one; NULL = it is something else. */
static __always_inline struct sock *tcp_of(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	u16 protocol = BPF_CORE_READ(sk, sk_protocol);

	if (protocol == IPPROTO_MPTCP && bpf_core_field_exists(struct mptcp_sock, first) &&
	    BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN)
		return BPF_CORE_READ((struct mptcp_sock *)sk, first);
	return protocol == IPPROTO_TCP ? sk : NULL;
}

SEC("iter/task_file")
int read_connections(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct connection_row row = {};
	struct sock *sk;
	u8 state;

	if (!task || !file || !watched(task) || kind_of_file(file) != FD_SOCKET)
		return 0;
	sk = tcp_of(file);
	if (!sk)
		return 0;
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (state != TCP_ESTABLISHED && state != TCP_SYN_SENT && state != TCP_CLOSE_WAIT && state != TCP_LISTEN)
		return 0;
	ports_of_sock(sk, &row.ports);
	if (row.ports.family != AF_INET && row.ports.family != AF_INET6)
		return 0;
	row.at = bpf_ktime_get_ns();
	if (state == TCP_LISTEN) {
		row.inode = BPF_CORE_READ(file, f_inode, i_ino);
		row.queued = BPF_CORE_READ(sk, sk_ack_backlog);
	} else if (state == TCP_SYN_SENT) {
		row.opening = 1;
		row.tgid = BPF_CORE_READ(task, tgid);
	} else {
		row.closed = state == TCP_CLOSE_WAIT;
		read_connection(sk, BPF_CORE_READ(task, tgid), &row);
	}
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
