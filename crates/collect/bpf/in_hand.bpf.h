/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What clients have asked and nobody has answered yet, for whoever wants to know at this moment. */
#pragma once

#include "exchange.bpf.h"

/* One request. */
struct in_hand {
	u64 began; /* its first byte arrived */
	u32 tid; /* who read the question */
	u32 unused;
};
LAYOUT_OF(in_hand);

SEC("iter/bpf_sk_storage_map")
int read_in_hand(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct exchange *e = ctx->value;
	struct in_hand row = {};

	if (!ctx->sk || !e || !e->accepted || !e->began || e->stretch != stretch)
		return 0;
	row.began = e->began;
	row.tid = e->tid;
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}
