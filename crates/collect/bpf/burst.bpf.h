/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Bursts of full detail: for some thousand events every wait and every exchange gets a row, so that what happened to
 * single requests can be told from end to end. User space begins one; the kernel ends it when the events are used up.
 */
#pragma once

struct burst {
	s64 left; /* events; 0 or less = none is on */
	u64 ended_at; /* CLOCK_MONOTONIC, ns; 0 = it goes on */
};
LAYOUT_OF(burst);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct burst);
} bursts SEC(".maps");

/* Whether a burst is on; that does not use an event up. */
static __always_inline bool burst_is_on(void)
{
	u32 zero = 0;
	struct burst *b = bpf_map_lookup_elem(&bursts, &zero);

	return b && b->left > 0;
}

/* Whether the event that happens `now` is to be told in full. */
static __always_inline bool in_burst(u64 now)
{
	u32 zero = 0;
	struct burst *b = bpf_map_lookup_elem(&bursts, &zero);
	s64 left;

	if (!b || b->left <= 0)
		return false;
	left = __sync_fetch_and_add(&b->left, -1);
	if (left == 1)
		b->ended_at = now;
	return left > 0;
}
