/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * What the ledger counts about itself: each kind of event, and how many of them found no room. A
 * verdict rests on what was kept, and must know what was not.
 */
#pragma once

struct counts {
	u64 switches; /* hits, bystanders' too */
	u64 exits;
	u64 exits_lost;
	u64 execs;
	u64 execs_lost;
	u64 forks; /* threads taken into the watch, seeded ones too */
	u64 forks_lost;
	u64 stays; /* of watched threads on a CPU, from arrival to leaving */
	u64 stays_unseen; /* whose arrival was not seen */
	u64 waits;
	u64 waits_lost;
	u64 stacks;
	u64 stacks_lost;
	u64 delays; /* waits for a CPU that are worth a name */
	u64 delays_lost;
	u64 snapshots; /* of threads that are about to wait */
	u64 snapshots_lost;
	u64 stacks_in_second; /* asked for in `second` */
	u64 second;
	struct totals lost; /* ledgers of threads whose exit row was lost */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counts);
} counts SEC(".maps");

static __always_inline struct counts *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&counts, &zero);
}
