/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Wakeups: who ended a wait of the target, and what the waker itself had been waiting for.
 *
 * One hook is enough. What a thread did between two of its wakeups is told by the scheduler's own counters: CPU is the
 * growth of se.sum_exec_runtime, waiting for a CPU that of sched_info.run_delay, and the rest it was blocked. A waker
 * of the target is followed from then on like a thread of the target, and so is whoever wakes the waker: that is all
 * that a walk needs, and nobody else on the host pays more than the test of a pointer.
 *
 * Waits are picked as beads on a string of blocked time, one a millisecond on average: a long wait is always picked,
 * short ones in proportion to their length, and a row says how much blocked time it stands for. Stacks are taken of
 * those alone, while the sleeper still sleeps; of a short wait like the thread's last one, of every eighth on average,
 * because two stacks cost more than all the rest of a row. In a burst every wait is picked, and every start of a
 * thread is told: of one that serves a single request, there may be no wait at all.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "target.bpf.h"
#include "stack.bpf.h"
#include "snapshot.bpf.h"
#include "call.bpf.h"
#include "socket.bpf.h"
#include "awaited.bpf.h"
#include "followed.bpf.h"
#include "burst.bpf.h"
#include "birth.bpf.h"

/* --- settings ------------------------------------------------------------------------------- */

/* Blocked time between two rows of a thread, on average. */
const volatile u64 row_every_ns = 1000000;
/* Snapshots asked for in a turn on one CPU: they cost more than all the rest. */
const volatile u32 snapshots_per_turn = 16;
/* Snapshots of wakers outside the target in a turn on one CPU, one of a thread at most. */
const volatile u32 shown_per_turn = 4;
/* Addresses between which the entries of interrupts lie; 0 = unknown. */
const volatile u64 interrupts_from;
const volatile u64 interrupts_until;

/* Waits in other calls for which a wish for a snapshot stays. */
#define MOST_PASSED_OVER 64

/* Rows in a turn of 2^27 ns (0.13 s) on one CPU; beyond, blocked time waits for the thread's next row. Set by user
 * space, also later. */
u32 rows_per_turn;

/* --- maps ----------------------------------------------------------------------------------- */

enum context { WAKER_THREAD, WAKER_KERNEL_THREAD, WAKER_INTERRUPT };

struct wakeup {
	u64 at;
	u64 since; /* wakeup of the thread's row before; the sums are of the time from there to here */
	u64 wait; /* ns of the wait that ended here */
	u64 blocked;
	u64 cpu;
	u64 run_queue;
	u64 stack; /* where the sleeper waited */
	u64 waker_stack;
	u32 waits;
	u32 asked;
	u32 tgid;
	u32 tid;
	u32 waker_tgid;
	u32 waker_tid;
	s32 syscall; /* that the sleeper is in; -1 = none */
	s32 waker_syscall;
	u8 context;
	u8 fd_kind;
	u8 state;
	u8 io_wait;
	u32 file_system; /* of the file that the sleeper waits for, its magic number */
	u64 inode; /* its number */
	u64 args[4]; /* of the sleeper's call, the first four */
	u64 sp; /* its stack pointer in user space */
	struct port_pair ports; /* of the socket that the sleeper waits for */
	struct port_pair waker_ports; /* of the socket that the waker's call is about */
	char comm[16];
	char waker_comm[16];
};
LAYOUT_OF(wakeup);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 2 << 20);
} wakeups SEC(".maps");

struct wakeup_counts {
	u64 hits; /* bystanders' too */
	u64 waits; /* of threads that are looked at */
	u64 rows;
	u64 rows_lost; /* no room in the ring */
	u64 births;
	u64 births_lost; /* likewise */
	u64 put_off; /* no turn left: their time is in a later row */
	u64 stacks;
	u64 stacks_lost;
	u64 followed;
	u64 not_followed; /* too many, or no memory */
	u64 turn;
	u64 rows_in_turn;
	u64 asked_in_turn;
	u64 shown_in_turn;
	u64 snapshots;
	u64 snapshots_lost;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wakeup_counts);
} wakeup_counts SEC(".maps");

/* --- helpers -------------------------------------------------------------------------------- */

/* Books the time since the thread's last wakeup; returns the wait that ends now, 0 = its length is not known. */
static __always_inline u64 book_wait(struct task_struct *task, struct sleeper *s, u64 now)
{
	u64 exec = task->se.sum_exec_runtime, delay = task->sched_info.run_delay;
	u64 cpu = exec - s->exec, queued = delay - s->delay, wall = now - s->woken_at, wait = 0;
	bool known = s->woken_at;

	s->woken_at = now;
	s->exec = exec;
	s->delay = delay;
	if (!known) {
		s->row_at = now;
		return 0;
	}
	if (wall > cpu + queued)
		wait = wall - cpu - queued;
	s->cpu += cpu;
	s->run_queue += queued;
	s->blocked += wait;
	s->waits++;
	return wait;
}

/* In a burst too: one may last as long as the capture. */
static __always_inline void begin_turn(u64 now, struct wakeup_counts *c)
{
	if (c->turn == now >> 27)
		return;
	c->turn = now >> 27;
	c->rows_in_turn = 0;
	c->asked_in_turn = 0;
	c->shown_in_turn = 0;
}

static __always_inline bool has_turn(struct wakeup_counts *c)
{
	if (c->rows_in_turn >= rows_per_turn) {
		c->put_off++;
		return false;
	}
	c->rows_in_turn++;
	return true;
}

/* Takes the stack of the code that wakes somebody; tells whether an interrupt is on it. */
static __always_inline u64 take_own_stack(void *ctx, bool *interrupt, struct wakeup_counts *c)
{
	struct kernel_stack *stack = empty_stack(OF_HOOK);
	u64 length = interrupts_until - interrupts_from, inside = 0;

	if (!stack || bpf_get_stack(ctx, stack, sizeof(*stack), 0) <= 0)
		return 0;
	for (u32 i = 0; i < STACK_FRAMES; i++) {
		u64 offset = stack->ip[i] - interrupts_from;

		inside |= (offset - length) & ~offset; /* the top bit: 0 <= offset < length */
	}
	*interrupt = inside >> 63;
	return count_stack(OF_HOOK, &c->stacks, &c->stacks_lost);
}

static __always_inline void fill_sleeper(struct wakeup *row, struct task_struct *task, struct sleeper *s)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct file *file;

	row->since = s->row_at;
	row->blocked = s->blocked;
	row->cpu = s->cpu;
	row->run_queue = s->run_queue;
	row->waits = s->waits;
	row->asked = s->asked;
	row->tgid = task->tgid;
	row->tid = task->pid;
	row->syscall = task->flags & PF_KTHREAD ? -1 : call_number(regs);
	file = awaited_file(task, row->syscall, regs);
	row->fd_kind = look_at(file, &row->ports);
	row->file_system = row->fd_kind == FD_FILE ? file_system_of(file) : 0;
	row->inode = row->fd_kind == FD_SOCKET ? 0 : inode_of(file); /* those have no name to look for */
	row->state = state_of(task, task->__state);
	row->io_wait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	row->args[0] = regs->di;
	row->args[1] = regs->si;
	row->args[2] = regs->dx;
	row->args[3] = regs->r10;
	row->sp = regs->sp;
	bpf_probe_read_kernel_str(row->comm, sizeof(row->comm), task->comm);
}

static __always_inline void fill_waker(struct wakeup *row, struct task_struct *waker)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(waker);
	bool kernel = waker->flags & PF_KTHREAD;

	row->context = kernel ? WAKER_KERNEL_THREAD : WAKER_THREAD;
	row->waker_tgid = waker->tgid;
	row->waker_tid = waker->pid;
	row->waker_syscall = kernel ? -1 : call_number(regs);
	look_at(subject_of(row->waker_syscall) == ONE_FILE ? file_of(waker, regs->di) : NULL, &row->waker_ports);
	bpf_probe_read_kernel_str(row->waker_comm, sizeof(row->waker_comm), waker->comm);
}

/* What tells wakeups of one thread apart without a look at the stacks. */
static __always_inline u64 kind_of_wakeup(const struct wakeup *row)
{
	return (u64)row->waker_tid << 32 | (u64)(row->syscall & 0xfff) << 20 | (row->waker_syscall & 0xfff) << 8 |
	       row->fd_kind << 5 | row->io_wait << 4 | row->state;
}

/*
 * Whether a client ended a wait of the target by asking for something: it wrote to the target's port, or the target
 * waited for a connection that it had accepted.
 */
static __always_inline bool is_client(const struct wakeup *row, const struct sleeper *s)
{
	if (s->outside || row->context != WAKER_THREAD)
		return false;
	if (is_our_end(row->waker_ports.family, row->waker_ports.remote, row->waker_ports.local))
		return true;
	return row->syscall >= 0 && row->syscall < CALLS && asks[row->syscall] &&
	       is_our_end(row->ports.family, row->ports.local, row->ports.remote);
}

/* Whether a wakeup may be taken to be from where the thread's last one was. */
static __always_inline bool repeats(const struct wakeup *row, const struct sleeper *s)
{
	return s->stack && row->wait < row_every_ns && s->kind == kind_of_wakeup(row) && bpf_get_prandom_u32() % 8;
}

/*
 * Asks the ledger to show where in its program a thread of the target waits, before its next wait in this call; false =
 * nothing is asked for that was not before. Of calls that alternate each is to be shown: one that was asked for gives
 * way only where it was the last that was shown, or after many others, since it may never be made again.
 */
static __always_inline bool want_snapshot(struct task_struct *task, s32 syscall)
{
	struct thread_state *t = bpf_task_storage_get(&threads, task, 0, 0);

	if (!t || syscall < 0 || t->wanted == syscall + 1)
		return false;
	if (t->wanted && t->wanted != t->shown && t->passed_over++ < MOST_PASSED_OVER)
		return false;
	t->wanted = syscall + 1;
	t->passed_over = 0;
	return true;
}

/* Takes both stacks, and asks for where in its program the sleeper waits. */
static __always_inline void take_stacks(void *ctx, struct wakeup *row, struct task_struct *task, struct sleeper *s,
					struct wakeup_counts *c)
{
	s->kind = kind_of_wakeup(row);
	s->interrupt = false;
	s->stack = take_stack(OF_HOOK, task, &c->stacks, &c->stacks_lost);
	s->waker_stack = take_own_stack(ctx, &s->interrupt, c);
	if (c->asked_in_turn < snapshots_per_turn && want_snapshot(task, row->syscall))
		c->asked_in_turn++;
}

/* An interrupt only happens to find the running thread in its call. */
static __always_inline void disown(struct wakeup *row)
{
	row->context = WAKER_INTERRUPT;
	row->waker_syscall = -1;
	__builtin_memset(&row->waker_ports, 0, sizeof(row->waker_ports));
}

/* Where in its program a followed thread is when it wakes somebody. */
static __always_inline void show_waker(struct task_struct *waker, struct sleeper *s, struct wakeup_counts *c)
{
	struct sample *sample;

	if (!s || s->shown == (u32)c->turn || c->shown_in_turn >= shown_per_turn || watched(waker))
		return;
	s->shown = c->turn;
	c->shown_in_turn++;
	sample = snapshot(waker);
	if (!sample) {
		c->snapshots_lost++;
		return;
	}
	c->snapshots++;
	sample->moment = BEFORE_WAKEUP;
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
}

/* --- hooks ---------------------------------------------------------------------------------- */

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct sleeper *s = looked_at(task);
	u32 zero = 0;
	struct wakeup_counts *c = bpf_map_lookup_elem(&wakeup_counts, &zero);
	struct task_struct *waker;
	struct wakeup *row;
	u64 now, wait, until;

	if (!c)
		return 0;
	c->hits++;
	/* Woken while it was on its way to sleep: no wait. */
	if (!s || task->on_cpu)
		return 0;
	now = bpf_ktime_get_ns();
	if (s->outside && s->until < now) {
		unfollow(task);
		return 0;
	}
	waker = bpf_get_current_task_btf();
	wait = book_wait(task, s, now);
	c->waits++;
	if (is_asking(waker))
		s->asked++;
	begin_turn(now, c);
	if (!wait || !(in_burst(now) || (s->blocked >= s->next && has_turn(c))))
		return 0;
	row = bpf_ringbuf_reserve(&wakeups, sizeof(*row), 0);
	if (!row) {
		c->rows_lost++;
		return 0;
	}
	c->rows++;
	row->at = now;
	row->wait = wait;
	fill_sleeper(row, task, s);
	fill_waker(row, waker);
	if (!repeats(row, s))
		take_stacks(ctx, row, task, s, c);
	row->stack = s->stack;
	row->waker_stack = s->waker_stack;
	if (s->interrupt)
		disown(row);
	if (row->context == WAKER_THREAD && !is_client(row, s)) {
		until = follow_until(s, now);
		note_waker(waker->tgid, until);
		show_waker(waker, follow(waker, now, until, &c->followed, &c->not_followed), c);
	}
	bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
	s->row_at = now;
	s->blocked = s->cpu = s->run_queue = 0;
	s->waits = s->asked = 0;
	s->next = bpf_get_prandom_u32() % (2 * (u32)row_every_ns);
	return 0;
}

SEC("tp_btf/task_newtask")
int BPF_PROG(on_fork, struct task_struct *child, u64 flags)
{
	u32 zero = 0;
	struct wakeup_counts *c = bpf_map_lookup_elem(&wakeup_counts, &zero);
	struct task_struct *parent = bpf_get_current_task_btf();
	u64 now, until;

	if (!c)
		return 0;
	if (watched(parent)) {
		tell_birth(child, parent, &c->births, &c->births_lost);
		return 0;
	}
	until = starts_followed(parent);
	if (!until)
		return 0;
	now = bpf_ktime_get_ns();
	if (now < until && follow(child, now, until, &c->followed, &c->not_followed)) {
		/* It wakes nobody of the target itself, and takes what those do that it starts. */
		follow(parent, now, until, &c->followed, &c->not_followed);
		tell_birth(child, parent, &c->births, &c->births_lost);
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	unfollow(task);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
