/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Counts of rare events, by what they have in common: a map of bounded size, which user space empties. */
#pragma once

/*
 * Counts so many events; with `make`, also the first of their kind, of which the map then has one more (`made`). False
 * = the map has no such kind, or no room.
 */
static __always_inline bool tally(void *map, const void *key, u64 events, bool make, bool *made)
{
	u64 *count = bpf_map_lookup_elem(map, key);

	if (!count && make && !bpf_map_update_elem(map, key, &events, BPF_NOEXIST)) {
		*made = true;
		return true;
	}
	if (!count && make)
		count = bpf_map_lookup_elem(map, key); /* another CPU has just made it */
	if (!count)
		return false;
	__sync_fetch_and_add(count, events);
	return true;
}
