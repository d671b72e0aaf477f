/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The thread ledger: where the wall time of every thread of the target goes, exactly.
 *
 * One hook is enough. At each switch the leaving thread's time since it last left a CPU is split by
 * the scheduler's own counters: CPU is the growth of se.sum_exec_runtime, waiting for a CPU the
 * growth of sched_info.run_delay, and what remains of the time off the CPU was blocked (or held by
 * a quota). The arriving thread only gets a time stamp and, once per millisecond of blocked time, a
 * stack. Threads that never switch are seeded and read by iterators.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "target.bpf.h"
#include "stack.bpf.h"
#include "wait.bpf.h"
#include "held.bpf.h"

/* --- settings ------------------------------------------------------------------------------- */

/* A stack is taken when so much blocked time has passed without one. */
const volatile u64 stack_every_ns = 1000000;
/* Waits for a CPU under this are not worth naming who was in the way. */
const volatile u64 delay_worth_ns = 50000;
/* Set by user space before the last read: waits that have not ended are booked then. */
bool last_read;

/* --- maps ----------------------------------------------------------------------------------- */

/* Run-queue time of the target, ns, by the process that ran until the target got the CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u64);
} delayers SEC(".maps");

/* Processes to seed from. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u8);
} seeds SEC(".maps");

enum row_kind { ROW_LIVING, ROW_EXITED, ROW_EXECED };

struct thread_row {
	u32 tgid;
	u32 tid;
	u32 ppid;
	u32 what; /* enum row_kind */
	u64 at;
	u64 born;
	char comm[16];
	struct totals sum;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} exits SEC(".maps");

struct counts {
	u64 switches; /* hits, bystanders' too */
	u64 exits;
	u64 exits_lost;
	u64 execs;
	u64 execs_lost;
	u64 forks; /* threads taken into the watch, seeded ones too */
	u64 forks_lost;
	u64 waits;
	u64 waits_lost;
	u64 stacks;
	u64 stacks_lost;
	u64 delays; /* waits for a CPU that are worth a name */
	u64 delays_lost;
	struct totals lost; /* ledgers of threads whose exit row was lost */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counts);
} counts SEC(".maps");

/* --- helpers -------------------------------------------------------------------------------- */

static __always_inline struct counts *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&counts, &zero);
}

static __always_inline void add_delay(struct thread_state *t, u64 ns)
{
	struct counts *c;
	u64 *row;

	if (ns < delay_worth_ns || !t->before)
		return;
	c = this_cpu();
	if (!c)
		return;
	c->delays++;
	row = bpf_map_lookup_elem(&delayers, &t->before);
	if (row)
		__sync_fetch_and_add(row, ns);
	else if (bpf_map_update_elem(&delayers, &t->before, &ns, BPF_NOEXIST))
		c->delays_lost++;
}

/* Books the time off the CPU, from off_at to `until`, of which `delay` was waiting for a CPU; returns the blocked part.
 */
static __always_inline u64 book_off(struct thread_state *t, u64 until, u64 delay)
{
	u64 off = until - t->off_at, held;

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
 * clock, the switch skips reading it again, so the runtime begins at the wakeup. It is not blocked too.
 */
static __always_inline u64 charged_early(const struct thread_state *t, u64 now, u64 cpu)
{
	u64 on = now - t->on_at, off = t->on_at - t->off_at;
	u64 early = cpu > on ? cpu - on : 0;

	return early < off ? early : off;
}

static __always_inline void book_on(struct thread_state *t, u64 on, s64 cpu)
{
	t->sum.cpu += cpu;
	if ((s64)on > cpu)
		t->sum.interrupted += on - cpu;
}

/* For how long a thread that has not got a CPU yet has been waiting for one. */
static __always_inline u64 waiting_now(struct task_struct *task, struct thread_state *t, u64 now)
{
	u64 since = task->sched_info.last_queued + t->clock_shift;

	if (task->__state || !task->sched_info.last_queued || since >= now)
		return 0;
	return now - since;
}

static __always_inline void fill_row(struct thread_row *row, struct task_struct *task, struct thread_state *t, u64 now)
{
	row->tgid = task->tgid;
	row->tid = task->pid;
	row->ppid = BPF_CORE_READ(task, real_parent, tgid);
	row->at = now;
	row->born = t->born;
	row->sum = t->sum;
	bpf_probe_read_kernel_str(row->comm, sizeof(row->comm), task->comm);
}

static __always_inline void report_exit(struct task_struct *task, struct thread_state *t, u64 now, struct counts *c)
{
	struct thread_row *row = bpf_ringbuf_reserve(&exits, sizeof(*row), 0);

	c->exits++;
	if (row) {
		fill_row(row, task, t, now);
		row->what = ROW_EXITED;
		bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
		return;
	}
	c->exits_lost++;
	c->lost.wall += t->sum.wall;
	c->lost.cpu += t->sum.cpu;
	c->lost.run_queue += t->sum.run_queue;
	c->lost.preempted += t->sum.preempted;
	c->lost.throttled += t->sum.throttled;
	c->lost.blocked += t->sum.blocked;
	c->lost.interrupted += t->sum.interrupted;
}

/* A thread leaves its CPU: books all since it last did. */
static __always_inline void leave(struct task_struct *task, u32 state, bool preempt, u64 now, struct counts *c)
{
	struct thread_state *t = bpf_task_storage_get(&threads, task, 0, 0);
	u64 exec, delay, blocked, early;

	if (!t || !t->off_at)
		return;
	if (!t->on_at) /* it got its CPU before the watch saw arrivals */
		t->on_at = t->off_at;
	exec = task->se.sum_exec_runtime;
	delay = task->sched_info.run_delay;
	early = charged_early(t, now, exec - t->exec);
	blocked = book_off(t, t->on_at - early, delay - t->delay);
	if (t->off == OFF_BLOCKED) {
		t->stackless = t->stack ? 0 : t->stackless + blocked;
		c->waits++;
		add_wait(task, t, blocked, t->on_at, &c->waits_lost);
	}
	book_on(t, now - t->on_at, exec - t->exec);
	t->sum.wall += now - t->off_at;
	t->clock_shift = t->on_at - task->sched_info.last_arrival;
	t->off_at = now;
	t->on_at = 0;
	t->exec = exec;
	t->delay = delay;
	note_queue(task, t);
	if (state & TASK_DEAD) {
		report_exit(task, t, now, c);
		t->off_at = 0; /* a zombie stays in the list of tasks until it is reaped */
	} else if (preempt || !(state & STATE_MASK)) {
		/* Held threads stay runnable. A thread that goes to sleep in a group that is held waits for itself. */
		t->off = is_throttled(task) ? OFF_THROTTLED : OFF_PREEMPTED;
		t->sum.involuntary++;
	} else {
		note_wait(task, t, state);
		t->sum.voluntary++;
	}
}

/* A thread gets a CPU. Its counters are brought up to date only after this hook. */
static __always_inline void arrive(struct task_struct *task, struct task_struct *before, u64 now, struct counts *c)
{
	struct thread_state *t = bpf_task_storage_get(&threads, task, 0, 0);

	if (!t || !t->off_at)
		return;
	t->on_at = now;
	t->before = before->tgid;
	t->held = held_since(task, t);
	if (t->off == OFF_BLOCKED && t->stackless + (now - t->off_at) >= stack_every_ns)
		t->stack = take_stack(task, &c->stacks, &c->stacks_lost);
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

/* --- hooks ---------------------------------------------------------------------------------- */

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct counts *c = this_cpu();
	u64 now = bpf_ktime_get_ns();

	if (!c)
		return 0;
	c->switches++;
	leave(prev, prev_state, preempt, now, c);
	arrive(next, prev, now, c);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct thread_state *t;
	struct counts *c = this_cpu();

	if (!c || !bpf_task_storage_get(&threads, parent, 0, 0))
		return 0;
	t = bpf_task_storage_get(&threads, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		c->forks_lost++;
		return 0;
	}
	c->forks++;
	t->off = OFF_NEW;
	t->exec = child->se.sum_exec_runtime;
	t->delay = child->sched_info.run_delay;
	t->born = t->off_at = bpf_ktime_get_ns();
	return 0;
}

/* Tells user space that what it knows of a process's mappings is void. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	struct thread_state *t = bpf_task_storage_get(&threads, task, 0, 0);
	struct counts *c = this_cpu();
	struct thread_row *row;

	if (!t || !c)
		return 0;
	c->execs++;
	row = bpf_ringbuf_reserve(&exits, sizeof(*row), 0);
	if (!row) {
		c->execs_lost++;
		return 0;
	}
	fill_row(row, task, t, bpf_ktime_get_ns());
	row->what = ROW_EXECED;
	bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Starts the watch of every thread of the processes in `seeds`. */
SEC("iter/task")
int seed_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct counts *c = this_cpu();
	struct thread_state *t;
	u32 tgid;
	u64 now;

	if (!task || !c)
		return 0;
	tgid = task->tgid;
	if (!bpf_map_lookup_elem(&seeds, &tgid) || bpf_task_storage_get(&threads, task, 0, 0))
		return 0;
	t = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		c->forks_lost++;
		return 0;
	}
	c->forks++;
	now = bpf_ktime_get_ns();
	t->exec = task->se.sum_exec_runtime;
	t->delay = task->sched_info.run_delay;
	if (task->on_cpu) {
		t->off = OFF_RUNNING;
		t->on_at = now;
	} else if (task->__state & STATE_MASK) {
		note_wait(task, t, task->__state);
	} else {
		t->off = is_throttled(task) ? OFF_THROTTLED : OFF_PREEMPTED;
	}
	note_queue(task, t);
	t->off_at = now; /* last: hooks leave a thread alone until this is set */
	return 0;
}

/*
 * Writes the row of every watched thread, as it stands now. It works on a copy, because the thread
 * may be switching on another CPU meanwhile. The last call also books the waits that are still open.
 */
SEC("iter/task")
int read_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_state *t, copy;
	struct thread_row row = {};
	struct counts *c = this_cpu();
	u64 now = bpf_ktime_get_ns();
	u64 blocked;

	if (!task || !c)
		return 0;
	t = bpf_task_storage_get(&threads, task, 0, 0);
	if (!t || !t->off_at)
		return 0;
	copy = *t;
	if (now < copy.off_at || now < copy.on_at) /* it switched after `now` was read */
		now = bpf_ktime_get_ns();
	blocked = copy.sum.blocked;
	book_open(task, &copy, now);
	if (last_read && copy.off == OFF_BLOCKED) {
		if (!copy.on_at && !copy.stack)
			copy.stack = take_stack(task, &c->stacks, &c->stacks_lost);
		c->waits++;
		add_wait(task, &copy, copy.sum.blocked - blocked, now, &c->waits_lost);
	}
	fill_row(&row, task, &copy, now);
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
