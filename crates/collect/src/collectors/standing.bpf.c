// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Waits that go on: a row for each thread of the target that has been blocked for long when user space asks. What ends
 * a wait tells of it; of one that nothing ends only this does. It hangs on no hook.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "target.bpf.h"
#include "stack.bpf.h"
#include "call.bpf.h"
#include "socket.bpf.h"
#include "awaited.bpf.h"

#define REGISTERS (sizeof(struct pt_regs) / sizeof(u64))

/* Those that have gone on for less are left out, ns. */
#define LEAST_NS 500000000ULL

struct standing_row {
	u64 wait; /* ns so far; of one that is older than the watch, since that began */
	u64 stack; /* key of the kernel stack; 0 = not taken */
	u64 inode; /* of the file that it waits for; 0 = none, or a socket */
	u64 regs[REGISTERS]; /* in user mode, as `struct pt_regs` has them */
	u32 tgid;
	u32 tid;
	s32 syscall; /* -1 = none */
	u32 file_system; /* of the file, its magic number */
	u8 fd_kind;
	u8 state;
	u8 io_wait;
	u8 unused;
	struct port_pair ports;
	char comm[16];
	u32 zero;
};
LAYOUT_OF(standing_row);

static __always_inline void fill(struct standing_row *row, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 taken = 0, lost = 0;
	struct file *file;

	row->tgid = task->tgid;
	row->tid = task->pid;
	row->state = state_of(task, task->__state);
	row->io_wait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	row->stack = take_stack(OF_ITERATOR, task, &taken, &lost);
	row->syscall = -1;
	bpf_probe_read_kernel_str(row->comm, sizeof(row->comm), task->comm);
	if (task->flags & PF_KTHREAD)
		return;
	bpf_probe_read_kernel(&row->regs, sizeof(row->regs), regs);
	row->syscall = call_number(regs);
	file = awaited_file(task, row->syscall, regs);
	row->fd_kind = look_at(file, &row->ports);
	row->file_system = row->fd_kind == FD_FILE ? file_system_of(file) : 0;
	row->inode = row->fd_kind == FD_SOCKET ? 0 : inode_of(file);
}

SEC("iter/task")
int read_standing(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct standing_row row = {};
	struct thread_state *t;
	u64 now, off_at;

	if (!task)
		return 0;
	t = watched(task);
	if (!t || t->off != OFF_BLOCKED || t->on_at || task->on_cpu)
		return 0;
	off_at = t->off_at;
	now = bpf_ktime_get_ns();
	if (!off_at || now < off_at + LEAST_NS)
		return 0;
	row.wait = now - off_at;
	fill(&row, task);
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
