/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Openings: the first bytes of what is asked, from which user space makes a label, and of its answer, which may say
 * that it failed. They are taken out of the memory of the thread that reads or writes them, within its call and in the
 * hooks that are there anyway: by the time of the hook at a read the kernel has copied them there. Unless they are
 * asked for, the verifier leaves all of it out.
 */
#pragma once

#define OPENING 128 /* a power of two */
#define ANSWER 12 /* HTTP/1.1 503 */
#define MSG_TRUNC 0x20 /* what is read is thrown away */
#define UNDER_WAY (-38) /* what the register of the result holds until a call ends: -ENOSYS */

const volatile bool with_openings = false;
u32 opening_every; /* of so many exchanges one is labelled, at random; 0 = each. Set by user space. */
u32 openings_begun; /* labelled since user space looked last */

#define A_STEP 256 /* after so many, one in twice as many is labelled: the next look may be late */
#define MOST_STEPS 8

/* What is known of the opening of a connection's exchange. */
enum opening_state {
	OPENING_NONE, /* nobody wants it */
	OPENING_WANTED, /* more of it may come */
	OPENING_KEPT, /* as much as will be; perhaps nothing */
	OPENING_UNSEEN, /* how much the next read takes cannot be told: others before may have gone unseen */
};

struct opening {
	u32 weight; /* how many exchanges it stands for; 0 = it is told for the burst alone */
	u32 length;
	u32 answered; /* bytes of the answer; 0 = they are not known, or too few to say that anything failed */
	u8 answer[ANSWER];
	u8 bytes[2 * OPENING]; /* the second half is never used: it shows the verifier that no copy ends beyond */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct opening);
} openings SEC(".maps");

/* A piece of user memory, as `struct iovec` has it. */
struct piece {
	u64 at;
	u64 length;
};

/* The memory that the thread's call reads into or writes from, its first piece; false = there is none that is known. */
static __always_inline bool first_piece(struct piece *piece)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 list = 0;

	if ((s64)regs->ax != UNDER_WAY)
		return false; /* work that is done at the end of another call, as io_uring does it */
	switch (regs->orig_ax) {
	case 45: /* recvfrom */
		if (regs->r10 & MSG_TRUNC)
			return false;
		/* fallthrough */
	case 0: /* read */
	case 1: /* write */
	case 44: /* sendto */
		piece->at = regs->si;
		piece->length = regs->dx;
		return true;
	case 47: /* recvmsg */
		if (regs->dx & MSG_TRUNC)
			return false;
		/* fallthrough */
	case 46: /* sendmsg: the list stands in `struct user_msghdr` */
		if (bpf_probe_read_user(&list, sizeof(list), (void *)(regs->si + 16)))
			return false;
		break;
	case 19: /* readv */
	case 20: /* writev */
		list = regs->si;
		break;
	default:
		return false;
	}
	return !bpf_probe_read_user(piece, sizeof(*piece), (void *)list);
}

/* Of how many exchanges one is labelled now. */
static __always_inline u32 pace(void)
{
	u32 steps = openings_begun / A_STEP;

	return (opening_every ?: 1) << (steps < MOST_STEPS ? steps : MOST_STEPS);
}

/* Whether an exchange that begins is to be labelled. */
static __noinline u8 begin_opening(struct sock *sk, u8 before)
{
	u32 every = pace(), weight = bpf_get_prandom_u32() % every ? 0 : every;
	struct opening *o;

	if (!weight && !burst_is_on())
		return OPENING_NONE;
	o = bpf_sk_storage_get(&openings, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!o)
		return OPENING_NONE;
	o->weight = weight;
	o->length = 0;
	o->answered = 0;
	if (weight)
		__sync_fetch_and_add(&openings_begun, 1);
	return before == OPENING_UNSEEN ? OPENING_KEPT : OPENING_WANTED;
}

/*
 * Keeps what was just read, or is about to be written: `bytes` at most. A read that got all it had room for may be that
 * of a head of a few bytes, as MySQL's server reads it, so that the next one's go on with it. Another one in the same
 * call does not come between: the call is full.
 */
static __noinline u8 keep_opening(struct sock *sk, u64 bytes)
{
	struct opening *o = bpf_sk_storage_get(&openings, sk, NULL, 0);
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct piece piece = {};
	u64 length = bytes;
	u32 at;

	/* Where another layer reads the socket, what is in the memory of the thread is not what came. */
	if (!o || !tcp || tcp->inet_conn.icsk_ulp_ops || sk->sk_user_data || !first_piece(&piece))
		return OPENING_KEPT;
	at = o->length & (OPENING - 1);
	if (length > piece.length)
		length = piece.length;
	if (length > OPENING)
		length = OPENING;
	if (bpf_probe_read_user(o->bytes + at, length, (void *)piece.at))
		return OPENING_KEPT;
	o->length = at + length;
	return bytes == piece.length && o->length < OPENING ? OPENING_WANTED : OPENING_KEPT;
}

/* Keeps how an answer begins, of which so much was just read, or is about to be written. */
static __noinline int keep_answer(struct sock *sk, u32 bytes)
{
	struct opening *o = bpf_sk_storage_get(&openings, sk, NULL, 0);
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct piece piece = {};

	if (!o || !tcp || tcp->inet_conn.icsk_ulp_ops || sk->sk_user_data || !first_piece(&piece))
		return 0;
	if (bytes < ANSWER || piece.length < ANSWER || bpf_probe_read_user(o->answer, ANSWER, (void *)piece.at))
		return 0;
	o->answered = ANSWER;
	return 0;
}
