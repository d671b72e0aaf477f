/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Snapshots of a running thread: registers and the top of its user stack, to be unwound later, because most programs
 * have no frame pointers. The clock takes them of threads that run, the ledger of threads that are about to wait.
 */
#pragma once

#define KERNEL_FRAMES 48
#define CHUNK 4096
#define MAX_CHUNKS 8

/* Pieces of CHUNK bytes of user stack that are copied, 1 to MAX_CHUNKS. */
const volatile u32 stack_chunks = 4;

struct sample {
	u64 at;
	u32 tgid;
	u32 tid;
	u32 cpu;
	u8 user_mode;
	u8 after_call; /* user mode, just behind a system call instruction: ax is its result */
	u8 before_wait; /* taken at the switch away from the thread: it is about to wait in its system call */
	u8 zero;
	s32 kernel_bytes; /* of kernel_ip; < 0: errno */
	u32 stack_bytes; /* of stack */
	char comm[16];
	struct user_regs {
		u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
		u64 ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
	} regs;
	u64 kernel_ip[KERNEL_FRAMES];
	u8 stack[]; /* from sp upwards */
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} samples SEC(".maps");

/* Copies the user stack upwards from sp; a piece that ends in an unmapped page is cut at the page. */
static __always_inline u32 copy_stack(u8 *to, u64 sp)
{
	u32 done = 0;

	for (u32 i = 0; i < MAX_CHUNKS && i < stack_chunks; i++) {
		u64 from = sp + i * CHUNK;
		u32 rest = (CHUNK - (from & (CHUNK - 1))) & (CHUNK - 1);

		if (!bpf_probe_read_user(to + i * CHUNK, CHUNK, (void *)from)) {
			done += CHUNK;
			continue;
		}
		if (rest && !bpf_probe_read_user(to + i * CHUNK, rest, (void *)from))
			done += rest;
		break;
	}
	return done;
}

/* A snapshot of the current thread with its user part filled in; NULL = the ring is full. */
static __always_inline struct sample *snapshot(struct task_struct *task)
{
	struct sample *s = bpf_ringbuf_reserve(&samples, sizeof(*s) + stack_chunks * CHUNK, 0);

	if (!s)
		return NULL;
	s->at = bpf_ktime_get_ns();
	s->tgid = task->tgid;
	s->tid = task->pid;
	s->cpu = bpf_get_smp_processor_id();
	s->user_mode = s->after_call = s->before_wait = s->zero = 0;
	s->kernel_bytes = 0;
	bpf_probe_read_kernel_str(s->comm, sizeof(s->comm), task->comm);
	bpf_probe_read_kernel(&s->regs, sizeof(s->regs), (void *)bpf_task_pt_regs(task));
	s->stack_bytes = task->mm ? copy_stack(s->stack, s->regs.sp) : 0;
	return s;
}
