/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * System calls of the target, counted by arguments and results.
 *
 * A hook on system calls taxes every process of the host and no filter spares the bystanders, so
 * user space attaches these programs for short windows only, and first the exit hook alone: it sees
 * number, arguments and result. The entry hook is for windows that measure how long calls take.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "target.bpf.h"
#include "bitness.bpf.h"

#define CALLS 512
#define BUCKETS 40

/* --- settings ------------------------------------------------------------------------------- */

enum argument_kind {
	ARG_NONE,
	ARG_SIZE, /* bytes */
	ARG_TIMEOUT_MS, /* int milliseconds, < 0 = endless */
	ARG_TIMESPEC, /* pointer, NULL = endless */
	ARG_TIMEVAL, /* pointer, NULL = endless */
};

struct call_shape {
	u8 takes_fd; /* the first argument is a descriptor */
	u8 argument_kind;
	u8 argument; /* 0 to 5 */
	u8 zero;
};

const volatile struct call_shape shapes[CALLS];
/* Calls copied as examples in one window. */
const volatile u32 max_examples = 24;

/* --- maps ----------------------------------------------------------------------------------- */

struct call_key {
	u32 tgid;
	u32 tid;
	s32 fd;
	s16 syscall;
	s8 argument; /* -2 = none, -1 = endless, 0 = zero, n = bit length of ns or bytes */
	u8 zero;
	s32 result; /* -errno, 0, or bit length of the result */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct call_key);
	__type(value, u64);
} calls SEC(".maps");

struct latency_key {
	u32 tgid;
	u32 tid;
	s32 syscall;
	u32 bucket; /* bit length of ns */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct latency_key);
	__type(value, u64);
} latencies SEC(".maps");

struct example {
	u64 at;
	u32 tgid;
	u32 tid;
	s64 syscall;
	s64 result;
	u64 args[6];
};
LAYOUT_OF(example);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} examples SEC(".maps");

struct call_counts {
	u64 hits; /* bystanders' too */
	u64 calls;
	u64 lost;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct call_counts);
} call_counts SEC(".maps");

u32 examples_taken;
/* When the window began that is open; 0 = it does not measure how long calls take. Set by user space. */
u64 timed_from;

/* --- helpers -------------------------------------------------------------------------------- */

static __always_inline u32 bit_length(u64 value)
{
	u32 bits = 0;

	for (u32 step = 32; step; step >>= 1)
		if (value >> step) {
			value >>= step;
			bits += step;
		}
	return bits + !!value;
}

static __always_inline u64 argument_of(const struct pt_regs *regs, u8 index)
{
	switch (index) {
	case 0:
		return regs->di;
	case 1:
		return regs->si;
	case 2:
		return regs->dx;
	case 3:
		return regs->r10;
	case 4:
		return regs->r8;
	default:
		return regs->r9;
	}
}

static __always_inline s8 time_bucket(u64 pointer, u64 ns_per_fraction)
{
	struct {
		s64 seconds;
		s64 fraction;
	} time;

	if (!pointer)
		return -1;
	if (bpf_probe_read_user(&time, sizeof(time), (void *)pointer))
		return -2;
	return bit_length(time.seconds * 1000000000ULL + time.fraction * ns_per_fraction);
}

static __always_inline s8 argument_bucket(const struct pt_regs *regs, u8 kind, u8 index)
{
	u64 value = argument_of(regs, index);

	switch (kind) {
	case ARG_SIZE:
		return bit_length(value);
	case ARG_TIMEOUT_MS:
		return (s32)value < 0 ? -1 : bit_length((u64)(s32)value * 1000000);
	case ARG_TIMESPEC:
		return time_bucket(value, 1);
	case ARG_TIMEVAL:
		return time_bucket(value, 1000);
	default:
		return -2;
	}
}

static __always_inline void take_example(const struct pt_regs *regs, struct task_struct *task, s64 nr, s64 result)
{
	struct example *e;

	if (examples_taken >= max_examples)
		return;
	e = bpf_ringbuf_reserve(&examples, sizeof(*e), 0);
	if (!e)
		return;
	__sync_fetch_and_add(&examples_taken, 1);
	e->at = bpf_ktime_get_ns();
	e->tgid = task->tgid;
	e->tid = task->pid;
	e->syscall = nr;
	e->result = result;
	for (u32 i = 0; i < 6; i++)
		e->args[i] = argument_of(regs, i);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

static __always_inline void add_one(void *map, const void *key, struct call_counts *c)
{
	u64 one = 1, *count = bpf_map_lookup_elem(map, key);

	if (count)
		__sync_fetch_and_add(count, 1);
	else if (bpf_map_update_elem(map, key, &one, BPF_NOEXIST))
		c->lost++;
}

static __always_inline void count_call(struct pt_regs *regs, struct task_struct *task, s64 nr, s64 result,
				       struct call_counts *c)
{
	struct call_key key = {.tgid = task->tgid, .tid = task->pid, .fd = -1, .syscall = nr, .argument = -2};

	key.result = result < 0 ? (s32)result : (s32)bit_length(result);
	if (nr < CALLS) {
		const volatile struct call_shape *shape = &shapes[nr];

		if (shape->takes_fd)
			key.fd = (s32)regs->di;
		key.argument = argument_bucket(regs, shape->argument_kind, shape->argument);
	}
	add_one(&calls, &key, c);
}

static __always_inline void count_latency(struct task_struct *task, struct thread_state *t, s64 nr,
					  struct call_counts *c)
{
	struct latency_key key = {.tgid = task->tgid, .tid = task->pid, .syscall = nr};
	u64 from = t->call_at;

	t->call_at = 0;
	/* An older entry is that of a call that was on when another window closed, and nobody saw when it ended. */
	if (!timed_from || from < timed_from)
		return;
	key.bucket = bit_length(bpf_ktime_get_ns() - from);
	add_one(&latencies, &key, c);
}

/* --- hooks ---------------------------------------------------------------------------------- */

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *t = watched(task);
	u32 zero = 0;
	struct call_counts *c = bpf_map_lookup_elem(&call_counts, &zero);
	s64 nr = regs->orig_ax;

	if (!c)
		return 0;
	c->hits++;
	if (!t || nr < 0 || is_32_bit(regs))
		return 0;
	c->calls++;
	if (t->call_at)
		count_latency(task, t, nr, c);
	count_call(regs, task, nr, result, c);
	take_example(regs, task, nr, result);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long nr)
{
	struct thread_state *t = watched(bpf_get_current_task_btf());

	if (t)
		t->call_at = bpf_ktime_get_ns();
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
