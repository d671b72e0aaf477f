/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Exchanges that are told one by one: all of a burst, and those that are labelled. */
#pragma once

/* Tells an exchange with its opening. */
static __noinline void show_opened(struct sock *sk, struct exchange *e, u64 read, u64 ended, bool told)
{
	struct opening *o = bpf_sk_storage_get(&openings, sk, NULL, 0);
	struct opened_request *row;

	if (!o || (!o->weight && !told))
		return;
	row = row_of(sizeof(*row));
	if (!row)
		return;
	fill(&row->request, sk, e, read, ended);
	row->weight = o->weight;
	row->group = e->group % OTHER_PORTS; /* 0 = of several that are not told apart */
	row->told = told;
	row->length = o->length;
	row->answered = o->answered;
	__builtin_memcpy(row->answer, o->answer, ANSWER);
	__builtin_memcpy(row->bytes, o->bytes, OPENING);
	bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
}

/* Tells all of an exchange that ends with so many bytes, in a burst; or of one that is labelled, always. */
static __always_inline void show(struct sock *sk, struct exchange *e, u64 read, u64 ended, u32 bytes, u64 now)
{
	/* First: mostly none is on. */
	bool told = in_burst(now);
	struct request *row;

	if (with_openings && (e->opening == OPENING_WANTED || e->opening == OPENING_KEPT)) {
		keep_answer(sk, bytes);
		show_opened(sk, e, read, ended, told);
	} else if (told && (row = row_of(sizeof(*row)))) {
		fill(row, sk, e, read, ended);
		bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
	}
}
