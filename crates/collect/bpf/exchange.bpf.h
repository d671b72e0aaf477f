/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What is kept of the exchange on a connection, and the rows in which single ones are told. */
#pragma once

/* What is under way on one connection. */
struct exchange {
	u64 began; /* its first byte arrived or, where the target asks, was written; 0 = none is under way */
	u64 read; /* its first byte was read */
	u64 rest; /* further bytes of what was asked came, after that; 0 = all were there */
	u64 written; /* a write began last; 0 = none was seen */
	u64 apart_ns; /* before each of the next, since the write before it, added up */
	u32 apart; /* writes that nobody had asked for, and that came some time after others, since the last answer */
	u32 copied; /* up to where the program had read */
	u32 stretch; /* in which that was */
	u32 read_jiffies; /* the jiffy of the read */
	u32 tid; /* of the thread that read what was asked, or asked */
	u8 group;
	u8 accepted; /* a client asks */
	u8 more : 1; /* further bytes came later, or were written, before the answer */
	u8 first : 1; /* nothing was said on the connection yet */
	u8 late : 1; /* the last answer took long */
	u8 hung_up : 1; /* whoever owes the answer closed its side */
	u8 dismissed : 1; /* it was said so */
	u8 opening; /* enum opening_state */
	u8 tls; /* enum tls_state */
	u8 secure : 1; /* it began with a handshake of TLS, or goes on with its records */
	u8 unseen : 1; /* how it began was not seen, nor anything since */
	u8 changed : 1; /* whoever asks has said so much of the end of it */
	u8 flown : 1; /* and something that is encrypted */
	u8 tickets : 1; /* they may come before the answer */
	u8 bye : 1; /* of a goodbye of whoever asks the head was read */
	u8 bye_back : 1; /* the same of whoever answers */
	u32 left; /* bytes of the record that whoever asks said last that are still to come */
	u32 ticket_left; /* bytes of the ticket that was read last that are */
	u64 aside; /* what was taken for tickets came, or was written; 0 = nothing was */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct exchange);
} exchanges SEC(".maps");

enum tls_state {
	TLS_NONE, /* no handshake is under way */
	TLS_HELLO, /* a client has begun one */
	TLS_SHAKING, /* it was answered */
	TLS_LEGACY, /* TLS 1.2: the client's end is answered, too, before it asks */
	TLS_SHAKEN, /* it is over, and nothing was asked yet; nothing was said to that */
	TLS_TICKETED, /* likewise, and tickets were */
};

/* One exchange that ended in a burst, or a hello of TLS that was answered in it. */
struct request {
	u64 began; /* as above */
	u64 read; /* a client's question, or the answer to the target's */
	u64 rest; /* the last bytes of a client's question came, after the first were read; 0 = all were there */
	u64 ended; /* the answer was written, or arrived */
	u32 tgid;
	u32 began_tid; /* who read the question, or asked */
	u32 ended_tid; /* who wrote the answer, or read it */
	u16 accepted;
	u16 hello;
	struct port_pair ports;
};
LAYOUT_OF(request);

/* One of which the opening is told too. */
struct opened_request {
	struct request request;
	u32 weight; /* how many exchanges it stands for */
	u32 group;
	u32 told; /* it ended in a burst */
	u32 length;
	u32 answered;
	u8 answer[ANSWER];
	u8 bytes[OPENING];
};
LAYOUT_OF(opened_request);

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

static __always_inline void fill(struct request *row, struct sock *sk, struct exchange *e, u64 read, u64 ended)
{
	struct task_struct *task = bpf_get_current_task_btf();

	row->began = e->began;
	row->read = read;
	row->rest = e->accepted ? e->rest : 0;
	row->ended = ended;
	row->tgid = task->tgid;
	row->began_tid = e->tid;
	row->ended_tid = task->pid;
	row->accepted = e->accepted;
	row->hello = e->tls == TLS_HELLO;
	__builtin_memset(&row->ports, 0, sizeof(row->ports));
	ports_of_sock(sk, &row->ports);
}

/* Room for a row of the ring, which is counted; NULL = there is none. */
static __always_inline void *row_of(u64 size)
{
	struct exchange_counts *c = this_cpu();
	void *row = bpf_ringbuf_reserve(&requests, size, 0);

	if (c && row)
		c->requests++;
	else if (c)
		c->requests_lost++;
	return row;
}
