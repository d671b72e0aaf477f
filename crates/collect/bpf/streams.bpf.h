/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Writes to clients beyond the first of an answer: its rest, its next part, or the next one of a stream. */
#pragma once

/*
 * Bytes that come so long after the first were read, ns, are more than the rest of one request; and a write that comes
 * so long after the one before it is more than the rest of one answer.
 */
#define LATER 100000

/* An answer that takes so long is one that somebody waits for, ns; so many writes after it are more than its rest. */
#define LATE 10000000
#define STREAM 2

/* A write that nobody asked for: the next part of an answer, or of a stream. */
static __always_inline void push(struct group *g, struct exchange *e, u64 since)
{
	__sync_fetch_and_add(&g->pushed, 1);
	e->first = 0;
	if (since <= LATER)
		return;
	e->apart++;
	e->apart_ns += since;
	if (e->late && e->apart == STREAM) {
		__sync_fetch_and_add(&g->streams, 1);
		__sync_fetch_and_add(&g->streams_ns, e->apart_ns);
	}
}

/* An answer in the midst of such writes: whether it comes in their rhythm is told by the times before it and them. */
static __always_inline void go_on(struct group *g, struct exchange *e, u64 since)
{
	__sync_fetch_and_add(&g->continued, 1);
	__sync_fetch_and_add(&g->continued_ns, since);
	__sync_fetch_and_add(&g->apart, e->apart);
	__sync_fetch_and_add(&g->apart_ns, e->apart_ns);
	e->apart = 0;
	e->apart_ns = 0;
}
