/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Who started a thread that is looked at, told in bursts: of one that is there for a single request there may be no
 * wait at all, and what it did not wait for, whoever starts it was at before.
 */
#pragma once

#include "burst.bpf.h"

/* A thread that was started. */
struct birth {
	u64 at;
	u32 tgid;
	u32 tid;
	u32 parent_tgid; /* of the thread that started it, and so the next */
	u32 parent_tid;
	char comm[16];
};
LAYOUT_OF(birth);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10);
} births SEC(".maps");

/* Tells that a thread was started. */
static __always_inline void tell_birth(struct task_struct *child, struct task_struct *parent, u64 *told, u64 *lost)
{
	u64 now = bpf_ktime_get_ns();
	struct birth *row;

	if (!in_burst(now))
		return;
	row = bpf_ringbuf_reserve(&births, sizeof(*row), 0);
	if (!row) {
		(*lost)++;
		return;
	}
	(*told)++;
	row->at = now;
	row->tgid = child->tgid;
	row->tid = child->pid;
	row->parent_tgid = parent->tgid;
	row->parent_tid = parent->pid;
	bpf_probe_read_kernel_str(row->comm, sizeof(row->comm), child->comm);
	bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
}
