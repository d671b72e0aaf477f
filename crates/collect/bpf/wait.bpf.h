/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * What a blocked thread waits for, and the rows that add waits up. What it means is told later, in user space.
 */
#pragma once

#include "call.bpf.h"

#define YOUNG_NS 1000000000ULL

struct wait_key {
	u64 stack;
	u32 tid; /* 0 = threads that are younger than a second, together */
	s32 syscall;
	u8 fd_kind;
	u8 state;
	u8 io_wait;
	u8 zero;
	u32 file_system; /* of a file, its magic number */
};

struct wait_value {
	u64 count;
	u64 total;
	u64 max;
	u32 tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct wait_key);
	__type(value, struct wait_value);
} waits SEC(".maps");

/* Notes what a thread that leaves its CPU is about to wait for. */
static __always_inline void note_wait(struct task_struct *task, struct thread_state *t, u8 state)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct file *file;
	s32 nr = task->flags & PF_KTHREAD ? -1 : call_number(regs);

	t->off = OFF_BLOCKED;
	t->state = state;
	t->io_wait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	t->syscall = nr;
	t->fd_kind = FD_NONE;
	t->file_system = 0;
	t->stack = 0;
	t->polled = -1;
	switch (subject_of(nr)) {
	case ONE_FILE:
		file = file_of(task, regs->di);
		t->fd_kind = kind_at((u64)file);
		if (t->fd_kind == FD_FILE)
			t->file_system = file_system_of(file);
		break;
	case POLL_SET: /* only the thread itself can read its memory, so it is kept for whoever ends the wait */
		if (regs->si == 1)
			bpf_probe_read_user(&t->polled, sizeof(t->polled), (void *)regs->di);
		break;
	}
}

/* What tells waits of one thread apart without a look at its stack. */
static __always_inline u32 kind_of_wait(const struct thread_state *t)
{
	return (u32)(t->syscall & 0xffff) << 16 | t->fd_kind << 8 | (u32)t->io_wait << 7 | t->state;
}

/* Of the wait that is on, or has just ended, what earlier slices have told. */
static __always_inline u64 told_of_wait(const struct thread_state *t)
{
	return t->told_of == t->off_at ? t->told : 0;
}

/*
 * Adds `part` of a wait that took `whole` so far to its row, and to the number of waits whether it `ended`; false =
 * there is no room. A global function: checked once, and not with all that comes after for each of the ways through it.
 */
__noinline bool add_to_wait(const struct wait_key *key, u64 whole, u64 part, bool ended, u32 tgid)
{
	struct wait_value first = {.count = ended, .total = part, .max = whole, .tgid = tgid};
	struct wait_value *row;
	struct wait_key own;

	if (!key)
		return false; /* the verifier wants to be told */
	own = *key; /* Linux 6.1 looks for keys on the function's own stack */
	row = bpf_map_lookup_elem(&waits, &own);
	if (!row && !bpf_map_update_elem(&waits, &own, &first, BPF_NOEXIST))
		return true;
	if (!row)
		row = bpf_map_lookup_elem(&waits, &own); /* another CPU may have been faster */
	if (!row)
		return false;
	__sync_fetch_and_add(&row->count, ended);
	__sync_fetch_and_add(&row->total, part);
	if (whole > row->max)
		row->max = whole;
	return true;
}

/* The same of the wait that a thread is in, or has just ended; `lost` counts waits that find no room. */
static __always_inline void add_wait(struct task_struct *task, struct thread_state *t, u64 whole, u64 part, bool ended,
				     u64 now, u64 *lost)
{
	struct wait_key key = {
		.stack = t->stack,
		.tid = t->born && now - t->born < YOUNG_NS ? 0 : task->pid,
		.syscall = t->syscall,
		.fd_kind = t->fd_kind,
		.state = t->state,
		.io_wait = t->io_wait,
		.file_system = t->file_system,
	};

	if (!add_to_wait(&key, whole, part, ended, key.tid ? task->tgid : 0))
		(*lost)++;
}
