/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Which threads belong to the target, and what is known of each: one task-storage map, made by the
 * ledger and reused by the other probes. A thread without an entry is a bystander; finding that out
 * is one pointer test, which is all that the rest of the host pays.
 */
#pragma once

/* Why a thread last left its CPU. */
enum off {
	OFF_NEW, /* forked, has not run yet */
	OFF_RUNNING, /* it was on a CPU when the watch began */
	OFF_BLOCKED,
	OFF_PREEMPTED,
	OFF_THROTTLED,
};

/* Sums since the watch of the thread began, ns unless said. */
struct totals {
	u64 wall;
	u64 cpu;
	u64 run_queue;
	u64 preempted;
	u64 throttled;
	u64 blocked;
	u64 interrupted;
	u64 voluntary; /* count */
	u64 involuntary; /* count */
};

struct thread_state {
	u64 born; /* fork within the capture; 0 = older */
	u64 off_at; /* when it last left a CPU: from here on nothing is booked yet; 0 = being made */
	u64 on_at; /* when it got a CPU after that; 0 = it has not */
	s64 clock_shift; /* ktime minus the scheduler's clock, at its last arrival */
	u64 exec; /* se.sum_exec_runtime at off_at */
	u64 delay; /* sched_info.run_delay at off_at */
	u64 stack; /* key of the wait's kernel stack; 0 = not taken */
	u64 stackless; /* blocked time since the last stack was taken */
	u64 told_of; /* off_at of the wait of which a part is booked already, because a slice ended in it */
	u64 told; /* that part, ns */
	u64 queue; /* address of the run queue that it left, where quotas hold whole queues */
	u64 queue_held; /* for how long that one had been held then */
	u64 held; /* part of the wait for a CPU in which its run queue was held */
	u64 earlier; /* part of it that had passed when the process `before` got the CPU */
	u64 call_at; /* entry of the system call, in latency windows only */
	u64 place; /* key of the last stack that was taken */
	u32 place_kind; /* kind of the wait that it belongs to */
	u32 file_system; /* of the file that the wait's call is about: its magic number; 0 = none */
	u32 tid; /* under which it is told: that of the first thread is taken by whichever starts another program */
	u32 before; /* process that ran on the CPU until this thread got it */
	s32 syscall; /* of the wait; -1 = none */
	u8 off; /* enum off */
	u8 fd_kind; /* enum fd_kind */
	u8 state; /* task state bits of the wait */
	u8 io_wait;
	u8 closed; /* its last row is written: waits that end later are of no capture */
	s32 wanted; /* call before whose next wait a snapshot is to be taken, plus one; 0 = none */
	s32 shown; /* the last one of which one was taken, likewise */
	u32 passed_over; /* waits in other calls since it is wanted */
	s32 polled; /* descriptor that the wait's call polls, if it is one only; -1 = it does not, or polls several */
	struct totals sum;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

const volatile u32 task_type = 0; /* the kernel's number of struct task_struct; 0 = not known */

extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym __weak; /* since 6.2; no code, only a note to it */

/*
 * A task to read pointers from, not to hand on. For each pointer that a program may read from a task that the verifier
 * trusts, it looks for names among all types of the kernel, four times: half of the time that loading took.
 */
static __always_inline struct task_struct *untrusted(struct task_struct *task)
{
	if (!task_type || !bpf_ksym_exists(bpf_rdonly_cast))
		return task;
	return bpf_rdonly_cast(task, task_type);
}

/* Whether nothing is kept of a task: the test of a pointer, because a helper's call is most of what it would pay. */
static __always_inline bool is_bystander(struct task_struct *task)
{
	return bpf_core_field_exists(task->bpf_storage) && !untrusted(task)->bpf_storage;
}

/* What is known of a thread; NULL = it is not of the target. */
static __always_inline struct thread_state *watched(struct task_struct *task)
{
	if (is_bystander(task))
		return NULL;
	return bpf_task_storage_get(&threads, task, 0, 0);
}
