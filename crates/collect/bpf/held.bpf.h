/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Whether a CPU quota holds a thread, and for how long it did while the thread waited. Kernels differ in what a quota
 * takes off the CPU.
 */
#pragma once

/* Since 6.18 a quota holds single tasks; before, it takes whole run queues off their CPUs. */
static __always_inline bool holds_tasks(void)
{
	return bpf_core_field_exists(struct task_struct, throttled);
}

static __always_inline bool is_throttled(struct task_struct *task)
{
	if (holds_tasks())
		return task->throttled;
	if (bpf_core_field_exists(struct cfs_rq, throttle_count))
		return untrusted(task)->se.cfs_rq->throttle_count > 0;
	return false;
}

/* For how long a thread's run queue has been held, ever. */
static __always_inline u64 queue_held(struct task_struct *task)
{
	if (holds_tasks() || !bpf_core_field_exists(struct cfs_rq, throttled_clock_pelt_time))
		return 0;
	return untrusted(task)->se.cfs_rq->throttled_clock_pelt_time;
}

/* Whether threads have run queues of their cgroups, which a quota may hold. */
static __always_inline bool has_queues(void)
{
	return bpf_core_field_exists(((struct sched_entity *)0)->cfs_rq);
}

/* Notes the run queue that a thread leaves: whether it is held until the thread is back is told by its own clock. */
static __always_inline void note_queue(struct task_struct *task, struct thread_state *t)
{
	if (holds_tasks() || !has_queues())
		return;
	t->queue = (u64)untrusted(task)->se.cfs_rq;
	t->queue_held = queue_held(task);
}

/*
 * For how long the run queue was held since the thread left it. A thread that is woken there meanwhile waits like any
 * other by the scheduler's counters. One that was moved to another queue tells nothing: 0.
 */
static __always_inline u64 held_since(struct task_struct *task, struct thread_state *t)
{
	if (!has_queues())
		return 0;
	return t->queue == (u64)untrusted(task)->se.cfs_rq ? queue_held(task) - t->queue_held : 0;
}
