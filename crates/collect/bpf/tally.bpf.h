/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Counts of rare events of connections, by what they have in common: a map of at most GROUPS keys, which user space
 * empties. A key has a role, and the port, peer and family that go with it.
 */
#pragma once

#define GROUPS 256
#define OWN_GROUPS 192 /* that name a port or a peer; the rest is for what has no group of its own any more */

enum role { MADE, ACCEPTED, NO_SOCKET, OTHERS };

u32 own_groups; /* in this slice; user space begins anew with each */

/*
 * Counts so many events; with `make`, also the first of their kind, of which the map then has one more (`made`). False
 * = the map has no such kind, or no room.
 */
static __always_inline bool add_to(void *map, const void *key, u64 events, bool make, bool *made)
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

/* Counts so many events, of nobody in particular where there is no room for more groups; false = they are lost. */
#define TALLY(map, key, events)                                                                                        \
	({                                                                                                             \
		bool made = false, kept = add_to(map, key, events, own_groups < OWN_GROUPS, &made);                    \
                                                                                                                       \
		if (made && (key)->role != OTHERS)                                                                     \
			__sync_fetch_and_add(&own_groups, 1);                                                          \
		if (!kept) {                                                                                           \
			__builtin_memset((key)->peer, 0, sizeof((key)->peer));                                         \
			(key)->family = (key)->port = 0;                                                               \
			(key)->role = OTHERS;                                                                          \
			kept = add_to(map, key, events, true, &made);                                                  \
		}                                                                                                      \
		kept;                                                                                                  \
	})
