/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Snapshots of a running thread: registers and the top of its user stack, to be unwound later, because most programs
 * have no frame pointers. The clock takes them of threads that run, the ledger of threads that are about to wait, and
 * the probe of wakeups of threads outside the target that are about to wake somebody.
 */
#pragma once

#define KERNEL_FRAMES 48
#define CHUNK 4096
#define MAX_CHUNKS 8

/* Pieces of CHUNK bytes of user stack that are copied, 1 to MAX_CHUNKS. */
const volatile u32 stack_chunks = 4;

/* What the thread was doing; the numbers are known to user space. */
enum moment {
	AT_CLOCK, /* it ran */
	BEFORE_WAIT, /* it was about to wait in its system call */
	BEFORE_WAKEUP, /* its system call was about to wake another thread */
};

struct sample {
	u64 at;
	u32 tgid;
	u32 tid;
	u32 cpu;
	u8 user_mode;
	u8 after_call; /* user mode, just behind a system call instruction: ax is its result */
	u8 moment; /* enum moment */
	u8 weight; /* samples of the full rate that it stands for */
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

/*
 * Copies the user stack upwards from sp: the rest of its page, then whole pages, of the first thread up to where its
 * stack begins. A page that is not there, as of a large buffer that nobody has used yet, is left zero; what lies above
 * it is still of use. Returns how far there was something.
 */
static __always_inline u32 copy_stack(u8 *to, u64 sp, u64 begin)
{
	u32 rest = CHUNK - (sp & (CHUNK - 1)), done = 0;

	if (!bpf_probe_read_user(to, rest, (void *)sp))
		done = rest;
	for (u32 i = 0; i < MAX_CHUNKS - 1 && i + 1 < stack_chunks; i++) {
		u64 page = sp + rest + i * CHUNK;

		/* Arguments and environment lie there, and nothing behind them. */
		if (sp < begin && begin <= page)
			break;
		if (!bpf_probe_read_user(to + rest + i * CHUNK, CHUNK, (void *)page))
			done = rest + (i + 1) * CHUNK;
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
	s->user_mode = s->after_call = s->moment = 0;
	s->weight = 1;
	s->kernel_bytes = 0;
	bpf_probe_read_kernel_str(s->comm, sizeof(s->comm), task->comm);
	bpf_probe_read_kernel(&s->regs, sizeof(s->regs), (void *)bpf_task_pt_regs(task));
	s->stack_bytes = 0;
	if (!(task->flags & PF_KTHREAD))
		s->stack_bytes = copy_stack(s->stack, s->regs.sp, untrusted(task)->mm->start_stack);
	return s;
}
