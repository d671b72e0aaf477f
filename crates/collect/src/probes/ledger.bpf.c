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
#include "counts.bpf.h"
#include "stack.bpf.h"
#include "snapshot.bpf.h"
#include "wait.bpf.h"
#include "held.bpf.h"
#include "book.bpf.h"

/* --- settings ------------------------------------------------------------------------------- */

/* A stack is taken when so much blocked time has passed without one. */
const volatile u64 stack_every_ns = 1000000;
/* Beyond so many on one CPU, a wait of the same kind as the thread's last one counts as at the same place. */
const volatile u64 stacks_per_second = 1000;
/* Set by user space before the last read: waits that have not ended count as ended then. */
bool last_read;

/* --- maps ----------------------------------------------------------------------------------- */

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
	u32 signal; /* that ended it; 0 = none */
	u32 unused;
	u64 at;
	u64 born;
	char comm[16];
	struct totals sum;
};
LAYOUT_OF(thread_row);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} exits SEC(".maps");

/* --- helpers -------------------------------------------------------------------------------- */

static __always_inline void fill_row(struct thread_row *row, struct task_struct *task, struct thread_state *t, u64 now)
{
	row->tgid = task->tgid;
	row->tid = t->tid;
	row->ppid = BPF_CORE_READ(task, real_parent, tgid);
	row->signal = row->unused = 0;
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
		row->signal = BPF_CORE_READ(task, exit_code) & 0x7f;
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

/* Where in its program a thread is about to wait, if its last wait in this call was long enough for somebody to ask. */
static __always_inline void show_wait(struct task_struct *task, struct thread_state *t, struct counts *c)
{
	struct sample *s;

	if (!t->wanted || t->wanted != t->syscall + 1)
		return;
	t->shown = t->wanted;
	t->wanted = 0;
	s = snapshot(task);
	if (!s) {
		c->snapshots_lost++;
		return;
	}
	c->snapshots++;
	s->moment = BEFORE_WAIT;
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
}

/*
 * Where a blocked thread waits; `ctx` of the hook where it leaves its CPU now, NULL = it sleeps already. A stack costs
 * microseconds, and ten thousand threads that sleep in turns would pay for as many a second, each for the same one as
 * before.
 */
static __always_inline u64 place_of(void *ctx, struct task_struct *task, struct thread_state *t, u64 now,
				    struct counts *c)
{
	u32 kind = kind_of_wait(t);

	if (c->second != now >> 30) {
		c->second = now >> 30;
		c->stacks_in_second = 0;
	}
	if (t->place && t->place_kind == kind && c->stacks_in_second >= stacks_per_second)
		return t->place;
	c->stacks_in_second++;
	t->place = ctx ? take_leaving_stack(ctx, &c->stacks, &c->stacks_lost)
		       : take_stack(OF_HOOK, task, &c->stacks, &c->stacks_lost);
	t->place_kind = kind;
	return t->place;
}

/* A thread leaves its CPU: books all since it last did. */
static __always_inline void leave(void *ctx, struct task_struct *task, struct thread_state *t, u32 state, bool preempt,
				  u64 now, struct counts *c)
{
	u8 asleep = state_of(task, state);
	u64 blocked, told;

	if (!t->off_at)
		return;
	told = told_of_wait(t);
	blocked = book_stay(task, t, now, c);
	if (t->off == OFF_BLOCKED) {
		t->stackless = t->stack ? 0 : t->stackless + blocked;
		c->waits++;
		if (!t->closed)
			add_wait(task, t, blocked, blocked > told ? blocked - told : 0, true, now, &c->waits_lost);
	}
	note_queue(task, t);
	if (state & TASK_DEAD) {
		report_exit(task, t, now, c);
		t->off_at = 0; /* a zombie stays in the list of tasks until it is reaped */
	} else if (preempt || !asleep) {
		/* Held threads stay runnable. A thread that goes to sleep in a group that is held waits for itself. */
		t->off = is_throttled(task) ? OFF_THROTTLED : OFF_PREEMPTED;
		t->sum.involuntary++;
	} else {
		note_wait(task, t, asleep);
		/* Uninterruptible, but not for I/O: for a lock of the kernel, mostly. */
		if (asleep == TASK_UNINTERRUPTIBLE && !t->io_wait)
			t->stack = place_of(ctx, task, t, now, c);
		show_wait(task, t, c);
		t->sum.voluntary++;
	}
}

/* A thread gets a CPU. Its counters are brought up to date only after this hook. */
static __always_inline void arrive(struct task_struct *task, struct thread_state *t, struct task_struct *before,
				   u64 now, struct counts *c)
{
	if (!t->off_at)
		return;
	note_arrival(task, t, before, now);
	if (t->off == OFF_BLOCKED && !t->stack && t->stackless + (now - t->off_at) >= stack_every_ns)
		t->stack = place_of(NULL, task, t, now, c);
}

/* --- hooks ---------------------------------------------------------------------------------- */

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct thread_state *leaving = watched(prev);
	struct thread_state *arriving = watched(next);
	struct counts *c = this_cpu();
	u64 now = 0;

	if (!c)
		return 0;
	c->switches++;
	/* Most switches are between bystanders: they do not even pay for the clock. */
	if (leaving) {
		now = bpf_ktime_get_ns();
		leave(ctx, prev, leaving, prev_state, preempt, now, c);
	}
	if (arriving)
		arrive(next, arriving, prev, now ?: bpf_ktime_get_ns(), c);
	return 0;
}

/* Not sched_process_fork, which does not come for the threads that io_uring makes. */
SEC("tp_btf/task_newtask")
int BPF_PROG(on_fork, struct task_struct *child, u64 flags)
{
	struct thread_state *t;
	struct counts *c = this_cpu();

	if (!c || !watched(bpf_get_current_task_btf()))
		return 0;
	t = bpf_task_storage_get(&threads, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		c->forks_lost++;
		return 0;
	}
	c->forks++;
	t->tid = child->pid;
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
	struct thread_state *t = watched(task);
	struct counts *c = this_cpu();
	struct thread_row *row;

	if (!t || !c)
		return 0;
	c->execs++;
	/* Whichever thread starts a program goes on under the first one's id: its time until then stays its own. */
	if (t->tid != task->pid) {
		report_exit(task, t, bpf_ktime_get_ns(), c);
		t->tid = task->pid;
		__builtin_memset(&t->sum, 0, sizeof(t->sum));
	}
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
	struct thread_state *t = NULL;
	u32 tgid;
	u64 now;

	if (!task || !c)
		return 0;
	tgid = task->tgid;
	if (!bpf_map_lookup_elem(&seeds, &tgid) || watched(task))
		return 0;
	/* The kernel gives up at once where another capture is doing the same to this task. */
	for (int i = 0; i < 3 && !t; i++)
		t = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		c->forks_lost++;
		return 0;
	}
	c->forks++;
	now = bpf_ktime_get_ns();
	t->tid = task->pid;
	t->exec = task->se.sum_exec_runtime;
	t->delay = task->sched_info.run_delay;
	if (task->on_cpu) {
		t->off = OFF_RUNNING;
		t->on_at = now;
	} else if (state_of(task, task->__state)) {
		note_wait(task, t, state_of(task, task->__state));
		t->polled = -1; /* that would be read from the memory of whoever runs this */
	} else {
		t->off = is_throttled(task) ? OFF_THROTTLED : OFF_PREEMPTED;
	}
	note_queue(task, t);
	t->off_at = now; /* last: hooks leave a thread alone until this is set */
	return 0;
}

/*
 * Books what is new of a wait that is still on, so that waits and the time blocked agree in each slice. `copy` is the
 * thread as it stood `now`, `blocked` for so long; where it has gone on meanwhile its own hook has booked all.
 */
static __always_inline void book_open_wait(struct task_struct *task, struct thread_state *t, struct thread_state *copy,
					   u64 blocked, u64 now, struct counts *c)
{
	u64 told = told_of_wait(copy);

	if (copy->off != OFF_BLOCKED || (blocked <= told && !last_read))
		return;
	if (!copy->on_at && !copy->stack)
		copy->stack = take_stack(OF_ITERATOR, task, &c->stacks, &c->stacks_lost);
	t->told = blocked;
	t->told_of = copy->off_at;
	barrier();
	if (t->off_at != copy->off_at)
		return;
	t->stack = copy->stack;
	c->waits++;
	add_wait(task, copy, blocked, blocked > told ? blocked - told : 0, last_read, now, &c->waits_lost);
}

/*
 * Writes the row of every watched thread, as it stands now. It works on a copy, because the thread
 * may be switching on another CPU meanwhile. The last call counts the waits that are still open as ended.
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
	t = watched(task);
	if (!t || !t->off_at)
		return 0;
	t->closed = last_read;
	copy = *t;
	if (now < copy.off_at || now < copy.on_at) /* it switched after `now` was read */
		now = bpf_ktime_get_ns();
	blocked = copy.sum.blocked;
	book_open(task, &copy, now);
	fill_row(&row, task, &copy, now);
	/* Where the reader's buffer is full the row is dropped, and this thread comes once more. */
	if (bpf_seq_write(ctx->meta->seq, &row, sizeof(row)))
		return 0;
	book_open_wait(task, t, &copy, copy.sum.blocked - blocked, now, c);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
