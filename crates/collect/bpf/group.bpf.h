/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Groups of connections: a port of the target's at which clients ask, or a peer that the target asks. */
#pragma once

#define GROUPS 65
#define TICKET_LENGTHS 4
#define FOR_PORTS 16 /* groups that only ports at which clients ask may have */
#define OTHER_PEERS 0 /* peers for which there was no group left */
#define OTHER_PORTS (GROUPS - 1) /* ports, likewise */

enum stage { STAGE_WHOLE, STAGE_READ_WAIT, STAGE_SERVICE, STAGE_FIRST_READ, STAGE_REST, STAGE_HANDSHAKE, STAGES };

/* One port of the target's at which clients ask, or one peer that the target asks; the number of its group. */
struct group_key {
	u8 peer[16]; /* zero where clients ask */
	u16 family;
	u16 port; /* own, or the peer's */
	u32 accepted;
};
LAYOUT_OF(group_key);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GROUPS);
	__type(key, struct group_key);
	__type(value, u32);
} groups SEC(".maps");

/* What happened in a group since the start. */
struct group {
	struct histogram stages[STAGES];
	u64 began;
	u64 unanswered; /* closed before an answer */
	u64 hung_up; /* whoever owed one was the first to close, in order, and not at once */
	u64 dismissed; /* who was connected to said something and closed, before the other end had said anything */
	u64 more; /* answered, after more had been asked meanwhile */
	u64 pushed; /* writes to clients that had asked nothing */
	u64 continued; /* answers after writes that nobody had asked for, and that came some time after others */
	u64 apart; /* those writes */
	u64 apart_ns; /* before each of them, since the write before it */
	u64 continued_ns; /* before those answers, likewise */
	u64 streams; /* answers that took long, and that further writes followed */
	u64 streams_ns; /* before the first STREAM of these writes, likewise */
	u64 answered; /* a client, last */
	u64 stood_ns; /* the longest time without an answer to anybody, while somebody waited for one; user space clears
			 it */
	u64 stood_until; /* its end */
	u64 stood; /* requests that waited then */
	u32 ticket[TICKET_LENGTHS]; /* lengths of tickets of TLS that were seen when nothing was asked yet */
	u32 tickets_known; /* how many were, or that there are none; 0 = nothing is known */
	u64 nagled; /* writes that Nagle's algorithm keeps until what was sent before is acknowledged */
};

struct group all_groups[GROUPS];
u32 last_group; /* number of the last one that is used */

/* The number of a group. */
static __noinline u32 group_of(const struct group_key *key)
{
	u32 *known = bpf_map_lookup_elem(&groups, key), mine;
	u32 none = key->accepted ? OTHER_PORTS : OTHER_PEERS;

	if (known)
		return *known;
	if (last_group >= OTHER_PORTS - 1 - (key->accepted ? 0 : FOR_PORTS))
		return none;
	mine = __sync_fetch_and_add(&last_group, 1) + 1;
	if (mine >= OTHER_PORTS)
		return none;
	if (bpf_map_update_elem(&groups, key, &mine, BPF_NOEXIST)) {
		known = bpf_map_lookup_elem(&groups, key); /* another CPU was faster */
		return known ? *known : none;
	}
	return mine;
}
