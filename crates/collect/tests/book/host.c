/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The ledger's arithmetic outside the kernel: reads what happens to one thread, writes its sums.
 *
 *   new NOW                        the watch of the thread begins, it is blocked
 *   task EXEC DELAY ARRIVAL QUEUED RUNNABLE    the scheduler's counters from here on
 *   arrive NOW                     it gets a CPU
 *   leave NOW blocked|preempted    it leaves it; its sums are written
 *   read NOW                       somebody looks at it; its sums as they are told are written
 */
#include <stdio.h>
#include <string.h>

#define preserve_access_index annotate("kernel")
#include "kernel.h"

#define SEC(name)
#define __ksym
#define __noinline
#define barrier_var(var) asm volatile("" : "+r"(var))
#define __weak __attribute__((weak))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) value *name

static void *find(void *map, const void *key);

#define bpf_map_lookup_elem find
#define bpf_map_update_elem(...) 0
#define bpf_task_storage_get(...) NULL
#define bpf_core_field_exists(...) 0
#define bpf_core_type_id_kernel(...) 0
#define bpf_ksym_exists(...) 0

#include "target.bpf.h"
#include "counts.bpf.h"
#include "held.bpf.h"
#include "book.bpf.h"

static struct counts of_cpu;

static void *find(void *map, const void *key)
{
	return map == &counts ? &of_cpu : NULL;
}

static void print(const struct totals *sum)
{
	printf("%llu %llu %llu %llu %llu %llu %llu\n", sum->wall, sum->cpu, sum->run_queue, sum->preempted,
	       sum->throttled, sum->blocked, sum->interrupted);
}

int main(void)
{
	struct task_struct task = {}, before = {.tgid = 7};
	struct thread_state t = {}, copy;
	char what[16], how[16];
	unsigned long long now;

	while (scanf("%15s", what) == 1) {
		if (!strcmp(what, "task")) {
			unsigned long long exec, delay, arrival, queued;
			int runnable;

			if (scanf("%llu %llu %llu %llu %d", &exec, &delay, &arrival, &queued, &runnable) != 5)
				return 2;
			task.se.sum_exec_runtime = exec;
			task.sched_info.run_delay = delay;
			task.sched_info.last_arrival = arrival;
			task.sched_info.last_queued = queued;
			task.__state = !runnable;
			continue;
		}
		if (scanf("%llu", &now) != 1)
			return 2;
		if (!strcmp(what, "new")) {
			t = (struct thread_state){.off = OFF_BLOCKED, .off_at = now};
			t.exec = task.se.sum_exec_runtime;
			t.delay = task.sched_info.run_delay;
		} else if (!strcmp(what, "arrive")) {
			note_arrival(&task, &t, &before, now);
		} else if (!strcmp(what, "leave") && scanf("%15s", how) == 1) {
			book_stay(&task, &t, now, &of_cpu);
			t.off = strcmp(how, "blocked") ? OFF_PREEMPTED : OFF_BLOCKED;
			print(&t.sum);
		} else if (!strcmp(what, "read")) {
			copy = t;
			book_open(&task, &copy, now);
			print(&copy.sum);
		} else {
			return 2;
		}
	}
	return 0;
}
