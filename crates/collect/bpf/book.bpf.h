/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * How the time since a thread last left its CPU is booked: split by the scheduler's own counters into
 * CPU, waiting for a CPU (and behind whom), blocked, held by a quota. Nothing is booked twice.
 */
#pragma once

/* Waits for a CPU under this are not worth naming who was in the way. */
const volatile u64 delay_worth_ns = 50000;
/* Classes of length: the first reaches to 2^17 ns, each further one twice as far, the last has no end. */
#define SHORTEST_DELAY 17
#define DELAY_CLASSES 12

/* Run-queue time of the target behind one process, ns, by the length of the whole wait that it is part of. */
struct delayed {
	u64 by_length[DELAY_CLASSES];
};

/*
 * Run-queue time of the target by the process that ran until the target got the CPU; 0 = those that ran before it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct delayed);
} delayers SEC(".maps");

/* A global function: checked once, and not with all that comes after for each of the twelve classes. */
__noinline u32 delay_class(u64 ns)
{
	u32 class = 0;

	for (u64 rest = ns >> SHORTEST_DELAY; rest && class < DELAY_CLASSES - 1; rest >>= 1)
		class ++;
	return class;
}

static const struct delayed no_delay; /* not on the stack, of which there is little */

static __always_inline void add_delay_behind(u32 tgid, u64 ns, u32 class, struct counts *c)
{
	struct delayed *row = bpf_map_lookup_elem(&delayers, &tgid);

	if (!row) {
		bpf_map_update_elem(&delayers, &tgid, &no_delay, BPF_NOEXIST);
		row = bpf_map_lookup_elem(&delayers, &tgid);
	}
	/* Linux 6.1 does not carry the bound of a number over a call: it is asked here each time. */
	barrier_var(class);
	if (!row)
		c->delays_lost++;
	else if (class < DELAY_CLASSES)
		__sync_fetch_and_add(&row->by_length[class], ns);
}

static __always_inline void add_delay(struct thread_state *t, u64 ns)
{
	struct counts *c;
	u64 earlier = t->earlier < ns ? t->earlier : ns;
	u32 class;

	if (ns < delay_worth_ns || !t->before)
		return;
	c = this_cpu();
	if (!c)
		return;
	c->delays++;
	class = delay_class(ns);
	add_delay_behind(t->before, ns - earlier, class, c);
	if (earlier)
		add_delay_behind(0, earlier, class, c);
}

/* Books the time off the CPU, from off_at to `until`, of which `delay` was waiting for a CPU; returns the blocked part.
 */
__noinline u64 book_off(struct thread_state *t, u64 until, u64 delay)
{
	u64 off, held;

	if (!t)
		return 0; /* the verifier wants to be told */
	off = until - t->off_at;
	if (t->off == OFF_THROTTLED) {
		t->sum.throttled += off;
		return 0;
	}
	if (t->off != OFF_BLOCKED || delay > off)
		delay = off;
	held = t->held < delay ? t->held : delay;
	t->sum.throttled += held;
	if (t->off == OFF_PREEMPTED || t->off == OFF_RUNNING)
		t->sum.preempted += delay - held;
	else
		t->sum.run_queue += delay - held;
	t->sum.blocked += off - delay;
	add_delay(t, delay - held);
	return off - delay;
}

/*
 * CPU time charged before the hook saw the thread arrive: a wakeup that preempts has just read the
 * clock, the switch skips reading it again, so the runtime begins at the wakeup. It is not blocked too. (Global, as
 * above.)
 */
__noinline u64 charged_early(u64 off, u64 on, u64 cpu)
{
	u64 early = cpu > on ? cpu - on : 0;

	return early < off ? early : off;
}

/*
 * When a thread whose arrival was not seen got its CPU: at the latest its CPU time ago. Such are threads that were on
 * their way to a CPU when the watch began, and those that follow a task whose switches the kernel keeps from
 * tracepoints, as some hosts do with a supervisor of their own.
 */
static __always_inline u64 unseen_arrival(const struct thread_state *t, u64 now, u64 cpu)
{
	u64 since = now - t->off_at;

	return now - (cpu < since ? cpu : since);
}

static __always_inline void book_on(struct thread_state *t, u64 on, s64 cpu)
{
	t->sum.cpu += cpu;
	if ((s64)on > cpu)
		t->sum.interrupted += on - cpu;
}

/* Notes when a thread gets its CPU, and behind whom it waited for it. */
static __always_inline void note_arrival(struct task_struct *task, struct thread_state *t, struct task_struct *before,
					 u64 now)
{
	u64 queued = task->sched_info.last_queued, since = before->sched_info.last_arrival;

	t->on_at = now;
	t->before = before->tgid;
	t->earlier = queued && since > queued ? since - queued : 0;
	t->held = held_since(task, t);
}

/* Books all since a thread last left its CPU, when it leaves it again; returns the blocked part. */
static __always_inline u64 book_stay(struct task_struct *task, struct thread_state *t, u64 now, struct counts *c)
{
	u64 exec = task->se.sum_exec_runtime, delay = task->sched_info.run_delay, early, blocked;

	c->stays++;
	if (!t->on_at) {
		c->stays_unseen++;
		t->on_at = unseen_arrival(t, now, exec - t->exec);
		t->before = 0;
		t->held = held_since(task, t);
	} else {
		t->clock_shift = t->on_at - task->sched_info.last_arrival;
	}
	early = charged_early(t->on_at - t->off_at, now - t->on_at, exec - t->exec);
	blocked = book_off(t, t->on_at - early, delay - t->delay);
	book_on(t, now - t->on_at, exec - t->exec);
	t->sum.wall += now - t->off_at;
	t->off_at = now;
	t->on_at = 0;
	t->exec = exec;
	t->delay = delay;
	return blocked;
}

/* For how long a thread that has not got a CPU yet has been waiting for one. */
static __always_inline u64 waiting_now(struct task_struct *task, struct thread_state *t, u64 now)
{
	u64 since = task->sched_info.last_queued + t->clock_shift;

	if (task->__state || !task->sched_info.last_queued || since >= now)
		return 0;
	return now - since;
}

/*
 * Adds what has not been booked yet to a copy of a thread's state. A running thread's runtime
 * counter is brought up to date at the tick or the switch only, so its time since on_at counts as
 * CPU here; the next switch has the exact figure.
 */
static __always_inline void book_open(struct task_struct *task, struct thread_state *copy, u64 now)
{
	copy->before = 0; /* who is in the way is told at the switch, once */
	copy->sum.wall += now - copy->off_at;
	if (copy->on_at) {
		book_off(copy, copy->on_at, task->sched_info.run_delay - copy->delay);
		book_on(copy, now - copy->on_at, now - copy->on_at);
	} else {
		/* what is held now has been since before the thread was woken, or will be booked at the switch */
		copy->held = !holds_tasks() && is_throttled(task) ? now : held_since(task, copy);
		book_off(copy, now, waiting_now(task, copy, now));
	}
}
