/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Whose waits are looked at: threads of the target, those who wake them, those who wake the wakers, and what the
 * process of such a waker starts from then on, because a thread that answers a single request is gone before it could
 * be met. Not clients of the target: until one asks for something the target is idle, and no walk leads there; but they
 * are those who wake it and are woken by it most of all.
 *
 * Nobody is followed for good. On a host that others use too, somebody ends a wait of the target by chance now and then
 * (whoever reads its memory holds a lock that it waits for), and by the wakers of that one, and theirs, one would come
 * to follow everybody. So a chain is followed for a while after it led to the target last, and each waker in it no
 * longer.
 */
#pragma once

#include "target.bpf.h"
#include "call.bpf.h"
#include "listening.bpf.h"

/* Threads outside the target that are followed at once, at most; set by user space. */
const volatile u32 most_followed = 4096;

/* Calls that wait for something to come in; set by user space. */
const volatile bool asks[CALLS];

/* Whether the target accepted this end of a connection; of Unix sockets the one that has a name. As the walk tells it.
 */
static __always_inline bool is_our_end(u16 family, u16 own, u16 peer)
{
	if (family == AF_UNIX)
		return own && !peer;
	return family && is_listening(own);
}

/* A thread whose waits are looked at. */
struct sleeper {
	u64 woken_at; /* its last wakeup; 0 = none seen */
	u64 exec; /* se.sum_exec_runtime then */
	u64 delay; /* sched_info.run_delay then */
	u64 row_at; /* wakeup of its last row */
	u64 blocked; /* since that, and so the next three */
	u64 cpu;
	u64 run_queue;
	u32 waits;
	u32 asked; /* of those that a thread of the target ended */
	u32 next; /* blocked ns at which the next row is due */
	u32 shown; /* turn in which a snapshot was taken of it as a waker */
	u64 kind; /* of its last row's wakeup, and so the next three */
	u64 stack;
	u64 waker_stack;
	bool interrupt;
	bool outside; /* not of the target */
	u64 until; /* of one outside: so long it is followed */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sleeper);
} sleepers SEC(".maps");

/* Processes outside the target of which a thread has woken somebody. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u64); /* so long it is followed what they start */
} wakers SEC(".maps");

/* Threads outside the target that are followed, over all CPUs. */
u32 followed;

/* For how long after it led to the target a chain is followed, ns; set by user space. */
u64 follow_ns;

static __always_inline struct sleeper *create(struct task_struct *task)
{
	return bpf_task_storage_get(&sleepers, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The thread's entry if it is one of the target or followed; NULL = a bystander, after the test of a pointer. */
static __always_inline struct sleeper *looked_at(struct task_struct *task)
{
	struct thread_state *t;
	struct sleeper *s;

	if (is_bystander(task))
		return NULL;
	s = bpf_task_storage_get(&sleepers, task, 0, 0);
	if (s)
		return s;
	t = bpf_task_storage_get(&threads, task, 0, 0);
	if (!t)
		return NULL;
	s = create(task);
	if (!s)
		return NULL;
	/* Its first wait may be its only one: of a thread for each request, the life is known from its birth; of one
	 * that is older, the wait that ends now, or what of it is in the capture. */
	s->woken_at = s->row_at = t->born ?: t->off_at;
	if (!t->born) {
		s->exec = t->exec;
		s->delay = t->delay;
	}
	return s;
}

/*
 * The entry of a thread that is followed from now on, which is its birth or while it runs; NULL = it is not. What it
 * is blocked until its next wakeup is known already then. (The counters of one that runs are from its last tick or
 * switch: that wait may come out a bit short.) `taken` counts such threads, `lost` those for which there is no room.
 */
static __always_inline struct sleeper *follow(struct task_struct *task, u64 now, u64 until, u64 *taken, u64 *lost)
{
	struct sleeper *s = looked_at(task);

	if (s) {
		if (s->until < until)
			s->until = until;
		return s;
	}
	/* It still wakes others while it ends, but when the hook of its end is behind it, nobody makes room again. */
	if (task->flags & PF_EXITING)
		return NULL;
	if (followed < most_followed)
		s = create(task);
	if (!s) {
		(*lost)++;
		return NULL;
	}
	__sync_fetch_and_add(&followed, 1);
	(*taken)++;
	s->outside = true;
	s->until = until;
	s->woken_at = s->row_at = now;
	s->exec = task->se.sum_exec_runtime;
	s->delay = task->sched_info.run_delay;
	return s;
}

/*
 * Whether a thread of the target wakes somebody in a system call of its own. An interrupt that happens to find it in a
 * call counts too; what is made of this must stand a few of those.
 */
static __always_inline bool is_asking(struct task_struct *waker)
{
	return watched(waker) && call_number((struct pt_regs *)bpf_task_pt_regs(waker)) >= 0;
}

/* Until when whoever wakes this thread now is followed. */
static __always_inline u64 follow_until(const struct sleeper *s, u64 now)
{
	return s->outside ? s->until : now + follow_ns;
}

/* Notes that a process has woken somebody. */
static __always_inline void note_waker(u32 tgid, u64 until)
{
	u64 *known = bpf_map_lookup_elem(&wakers, &tgid);

	if (!known)
		bpf_map_update_elem(&wakers, &tgid, &until, BPF_ANY);
	else if (*known < until)
		*known = until;
}

/* Until when what a thread outside the target starts is followed, which may be over; 0 = not at all. */
static __always_inline u64 starts_followed(struct task_struct *parent)
{
	u32 tgid = parent->tgid;
	u64 *until = bpf_map_lookup_elem(&wakers, &tgid);

	return until ? *until : 0;
}

/* Makes room for another, when a thread ends or its time is over. */
static __always_inline void unfollow(struct task_struct *task)
{
	struct sleeper *s = is_bystander(task) ? NULL : bpf_task_storage_get(&sleepers, task, 0, 0);

	if (s && s->outside && !bpf_task_storage_delete(&sleepers, task))
		__sync_fetch_and_add(&followed, -1);
}
