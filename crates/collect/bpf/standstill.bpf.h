/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The longest time in which nobody at a port was answered, although clients waited. */
#pragma once

/*
 * Since when nobody in this group was answered, although this one waited. Answers on two CPUs at once may overlook each
 * other, which is no standstill.
 */
static __always_inline void stood(struct group *g, struct exchange *e, u64 now)
{
	u64 since = g->answered > e->began ? g->answered : e->began;

	if (now > since && now - since > g->stood_ns) {
		g->stood_ns = now - since;
		g->stood_until = now;
		g->stood = 0;
	}
	if (e->began < g->stood_until)
		g->stood++;
	g->answered = now;
}
