/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The on-CPU profile: a timer on each CPU asks who runs.
 *
 * For a thread of the target the sample carries the kernel stack, the user registers and a copy of
 * the top of the user stack, because most programs have no frame pointers and are unwound later.
 * The registers also show the system call, its arguments and often its result: enough to suspect a
 * busy poll without a hook on any call.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "target.bpf.h"
#include "snapshot.bpf.h"

LAYOUT_OF(sample);

/* --- settings ------------------------------------------------------------------------------- */

/* Samples of the full rate that one stands for, by CPU; user space raises it with the clock's period. 0 = one. */
u8 weights[1024];

/* --- maps ----------------------------------------------------------------------------------- */

struct neighbour_key {
	u32 tgid;
	u32 cpu;
};

struct neighbour {
	u64 samples;
	char comm[16];
};

/* Samples that found a process outside the target, by CPU. Preallocated: before 6.1 a clock's program may use no other.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct neighbour_key);
	__type(value, struct neighbour);
} neighbours SEC(".maps");

struct profile_counts {
	u64 hits;
	u64 samples;
	u64 lost;
	u64 neighbours; /* samples of other processes */
	u64 neighbours_lost;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct profile_counts);
} profile_counts SEC(".maps");

/* --- helpers -------------------------------------------------------------------------------- */

static __always_inline u8 weight_of(u32 cpu)
{
	return cpu < sizeof(weights) && weights[cpu] ? weights[cpu] : 1;
}

static __always_inline void count_neighbour(struct task_struct *task, struct profile_counts *c)
{
	struct neighbour_key key = {.tgid = task->tgid, .cpu = bpf_get_smp_processor_id()};
	u8 weight = weight_of(key.cpu);
	struct neighbour *row, first = {.samples = weight};

	if (!key.tgid)
		return;
	c->neighbours++;
	row = bpf_map_lookup_elem(&neighbours, &key);
	if (row) {
		__sync_fetch_and_add(&row->samples, weight);
		return;
	}
	bpf_probe_read_kernel_str(first.comm, sizeof(first.comm), task->comm);
	if (bpf_map_update_elem(&neighbours, &key, &first, BPF_NOEXIST))
		c->neighbours_lost++;
}

static __always_inline bool is_after_call(u64 ip)
{
	u16 instruction = 0;

	return !bpf_probe_read_user(&instruction, sizeof(instruction), (void *)(ip - 2)) && instruction == 0x050f;
}

/* --- hook ----------------------------------------------------------------------------------- */

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 zero = 0;
	struct profile_counts *c = bpf_map_lookup_elem(&profile_counts, &zero);
	u64 cs = *(volatile unsigned long *)&ctx->regs[REG_CS]; /* in whole words only */
	struct sample *s;

	if (!c)
		return 0;
	c->hits++;
	if (!watched(task)) {
		count_neighbour(task, c);
		return 0;
	}
	s = snapshot(task);
	if (!s) {
		c->lost++;
		return 0;
	}
	c->samples++;
	s->weight = weight_of(s->cpu);
	s->user_mode = (cs & 3) == 3;
	s->after_call = s->user_mode && is_after_call(s->regs.ip);
	s->kernel_bytes = s->user_mode ? 0 : bpf_get_stack(ctx, s->kernel_ip, sizeof(s->kernel_ip), 0);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
