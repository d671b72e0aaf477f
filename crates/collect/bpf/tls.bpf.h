/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The handshake of TLS, which is told by the first bytes of a connection. It is one exchange, and no request: it has a
 * stage of its own, from the hello to what is said to that. What the client says then ends it, and its first request
 * may come in the same read; and what the server says to that end are tickets, which nobody waits for, and no answer.
 *
 * What ends it is found by the heads of records. Whatever stands there that is none, or cannot be read, is a question,
 * as it would be without TLS. Some libraries read a head by itself, and then what follows it.
 */
#pragma once

#define RECORD_CHANGE 0x14
#define RECORD_ALERT 0x15
#define RECORD_HANDSHAKE 0x16
#define RECORD_DATA 0x17
#define RECORD_HEAD 5
#define CLIENT_HELLO 1
#define LEAST_HELLO 100 /* the end of a handshake that is resumed is shorter */
/* A client's end of TLS 1.3, after SHA-256 and SHA-384; and in it, a goodbye. */
#define FINISHED_256 53
#define FINISHED_384 69
#define GOODBYE 19
#define MOST_GOODBYE 64 /* bytes of a goodbye with its head, of TLS 1.2 too; what is longer need not be looked at */
#define MOST_RECORDS 6
/* Tickets are no shorter, and no longer with several of them. */
#define LEAST_TICKET 64
#define MOST_TICKETS 2048
/* They come within so long after that end, ns, and after the way there and back: the same call of the library makes
 * both. */
#define TICKETS_WITHIN 5000000

/* What the bytes of whoever asks are. */
enum said { SAID_NOTHING, SAID_HELLO, SAID_QUESTION };

struct record_head {
	u8 type; /* 0 = there is none */
	u8 version[2];
	u8 length[2];
	u8 first; /* of what follows the head: in a handshake that is not encrypted yet, what kind of message it is */
	u64 room; /* of the call's memory */
};

const volatile bool writes_begin = false; /* the kernel shows a write when it begins, under the socket's lock */

/*
 * The head of a record so far from the begin of the thread's call. Where another layer reads the socket, between two
 * packets, whoever runs is a bystander; a call that encrypts in the kernel has bytes there that are no record.
 */
static __noinline u8 head_at(struct sock *sk, u32 at, u64 bytes, struct record_head *head)
{
	struct piece piece = {};

	__builtin_memset(head, 0, sizeof(*head));
	if ((writes_begin && !sk->sk_lock.owned) || !first_piece(&piece))
		return 0;
	head->room = piece.length;
	if (at + RECORD_HEAD > bytes || at + RECORD_HEAD > piece.length)
		return 0;
	if (bpf_probe_read_user(head, RECORD_HEAD, (void *)piece.at + at))
		return 0;
	if (at + RECORD_HEAD < bytes && at + RECORD_HEAD < piece.length)
		bpf_probe_read_user(&head->first, 1, (void *)piece.at + at + RECORD_HEAD);
	if (head->version[0] != 3 || head->version[1] > 4 || head->type < RECORD_CHANGE || head->type > RECORD_DATA)
		head->type = 0;
	return head->type;
}

static __always_inline u32 length_of(const struct record_head *head)
{
	return head->length[0] << 8 | head->length[1];
}

/* --- what is asked -------------------------------------------------------------------------- */

/* What one record says of the handshake, of which another stood before in the same bytes or not. */
static __always_inline void take_record(struct exchange *e, const struct record_head *head, bool is_later)
{
	u32 length = length_of(head);

	switch (head->type) {
	case RECORD_HANDSHAKE:
		/* A second hello; what follows its head may be read later. */
		if (length >= LEAST_HELLO && (head->first == CLIENT_HELLO || (!head->first && e->changed)))
			e->tls = TLS_HELLO;
		else
			e->tls = is_later || e->changed ? TLS_TICKETED : TLS_LEGACY; /* resumed: no tickets come */
		break;
	case RECORD_DATA:
		e->flown = 1;
		if (length == FINISHED_256 || length == FINISHED_384)
			e->tls = TLS_SHAKEN;
		break;
	case RECORD_CHANGE:
		e->changed = 1;
		break;
	}
}

/* Bytes that follow a hello's answer: takes the records of the handshake out of them; what is left is a question. */
static __noinline enum said take_records(struct sock *sk, struct exchange *e, u64 bytes, u64 now)
{
	u32 at = e->left;

	if (at >= bytes) {
		e->left -= bytes;
		return SAID_NOTHING;
	}
	e->left = 0;
	for (int i = 0; i < MOST_RECORDS && e->tls == TLS_SHAKING && at < bytes; i++) {
		struct record_head head;

		if (!head_at(sk, at, bytes, &head)) {
			/* In the midst of a read of several packets, nobody knows where this one stands. */
			if (at)
				return SAID_NOTHING;
			e->tls = TLS_NONE;
			return SAID_QUESTION;
		}
		take_record(e, &head, at > 0);
		at += RECORD_HEAD + length_of(&head);
		if (e->tls == TLS_SHAKEN && e->accepted)
			e->read = now;
	}
	e->left = at > bytes ? at - bytes : 0;
	if (e->tls == TLS_HELLO)
		return SAID_HELLO;
	/* What says so much and no more, behind the end, is a goodbye. */
	if (e->tls <= TLS_LEGACY || at >= bytes || bytes - at == RECORD_HEAD + GOODBYE)
		return SAID_NOTHING;
	return SAID_QUESTION;
}

static __always_inline bool is_goodbye(const struct record_head *head)
{
	return head->type == RECORD_ALERT || (head->type == RECORD_DATA && length_of(head) == GOODBYE);
}

/* The first question after a handshake: whether tickets are still to come, and whether there are any. */
static __always_inline void end_handshake(struct exchange *e, u64 now)
{
	struct group *g = its_group(e);

	e->tickets = e->tls == TLS_SHAKEN;
	/* Whoever reads the end by itself has written them before it reads on; two packets of one read follow closely.
	 */
	if (e->tickets && e->accepted && !g->tickets_known && now - e->read > 2 * LATER)
		g->tickets_known = 1;
	e->tls = TLS_NONE;
}

/* What was read from whoever asks, or is about to be written to whom the target asks. */
static __noinline enum said said_of(struct sock *sk, struct exchange *e, u64 bytes, u64 now)
{
	struct record_head head;
	enum said said;

	if (e->tls == TLS_HELLO || e->tls == TLS_LEGACY)
		return SAID_NOTHING;
	if (e->bye) {
		e->bye = 0;
		return SAID_NOTHING;
	}
	said = e->tls ? take_records(sk, e, bytes, now) : SAID_QUESTION;
	if (said != SAID_QUESTION)
		return said;
	head_at(sk, 0, bytes, &head);
	if (e->unseen)
		e->secure = head.type != 0;
	e->unseen = 0;
	if (e->first && head.type == RECORD_HANDSHAKE)
		return SAID_HELLO;
	if (e->secure && is_goodbye(&head)) {
		e->bye = head.room == RECORD_HEAD;
		return SAID_NOTHING;
	}
	if (e->tls)
		end_handshake(e, now);
	return SAID_QUESTION;
}

/* Whether it is a question. A hello begins an exchange that does not count as one. */
static __always_inline bool is_question(struct sock *sk, struct exchange *e, u64 bytes, u64 at, u64 now)
{
	enum said said;

	/* First what nearly all are. */
	if (!e->tls && e->began && !e->aside)
		return true;
	if (!e->tls && !e->first && !e->unseen && (!e->secure || bytes > MOST_GOODBYE))
		return true;
	said = said_of(sk, e, bytes, now);
	if (said == SAID_HELLO) {
		e->tls = TLS_HELLO;
		e->secure = 1;
		e->left = 0;
		e->began = at;
		e->read = now;
		e->tid = bpf_get_current_task_btf()->pid;
		if (!e->accepted)
			e->written = now;
	}
	return said == SAID_QUESTION;
}

/* --- what is said to it --------------------------------------------------------------------- */

/* A hello is answered. */
static __always_inline void shake(struct sock *sk, struct group *g, struct exchange *e, u64 ended)
{
	u64 now = e->accepted ? ended : bpf_ktime_get_ns();

	/* A client waits for it before it can ask, and a request of another for that of whom the target asks. */
	show(sk, e, e->accepted ? e->read : now, ended, 0, now);
	count_length(&g->stages[STAGE_HANDSHAKE], ended - e->began);
	if (e->accepted && e->first)
		count_length(&g->stages[STAGE_FIRST_READ], e->read - e->began);
	e->tls = TLS_SHAKING;
	e->flown = 0;
	e->began = 0;
	e->first = 0;
}

/* Whether tickets in this group have this length: such were seen when nothing was asked yet. */
static __always_inline bool is_ticket(const struct group *g, u32 length)
{
	for (int i = 0; i < TICKET_LENGTHS; i++)
		if (g->ticket[i] == length)
			return true;
	return false;
}

/* Learns the length of tickets: those of different clients differ. */
static __noinline void learn_ticket(struct sock *sk, struct group *g, u64 bytes)
{
	struct record_head head;
	u32 length;

	head_at(sk, 0, bytes, &head);
	length = length_of(&head);
	if (head.type != RECORD_DATA || length < LEAST_TICKET || is_ticket(g, length))
		return;
	g->ticket[g->tickets_known % TICKET_LENGTHS] = length;
	g->tickets_known++;
}

/* Whether what was said is tickets and nothing else. Only of a call that is full the rest of one is read later. */
static __noinline bool are_tickets(struct sock *sk, struct exchange *e, u64 bytes)
{
	struct group *g = its_group(e);
	struct record_head head = {};
	u32 at = e->ticket_left;

	if (at >= bytes) {
		e->ticket_left -= bytes;
		return true;
	}
	for (int i = 0; i < MOST_RECORDS && at < bytes; i++) {
		if (head_at(sk, at, bytes, &head) != RECORD_DATA || !is_ticket(g, length_of(&head)))
			return false;
		at += RECORD_HEAD + length_of(&head);
	}
	if (at > bytes && bytes != head.room)
		return false;
	e->ticket_left = at - bytes;
	return at >= bytes;
}

/* Whether what came after a handshake, before the first answer, may be tickets of a length that nobody knows. */
static __always_inline bool may_be_tickets(struct sock *sk, const struct exchange *e, u64 bytes, u64 ended)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	s64 since = ended - (e->accepted ? e->read : e->written);
	s64 way = tcp && !e->accepted ? (s64)(tcp->srtt_us >> 3) * 1000 : 0;

	return bytes <= MOST_TICKETS && since <= TICKETS_WITHIN + way;
}

/* Whether it is a goodbye, or the rest of one. */
static __always_inline bool says_goodbye(struct sock *sk, struct exchange *e, u64 bytes)
{
	struct record_head head;

	if (e->bye_back) {
		e->bye_back = 0;
		return true;
	}
	if (bytes > MOST_GOODBYE)
		return false;
	head_at(sk, 0, bytes, &head);
	e->bye_back = is_goodbye(&head) && head.room == RECORD_HEAD;
	return is_goodbye(&head);
}

/* What is said while a handshake is under way, or over and nothing asked. */
static __always_inline void go_on_shaking(struct sock *sk, struct exchange *e, u64 bytes, u64 ended)
{
	struct group *g = its_group(e);

	if (e->tls == TLS_HELLO) {
		shake(sk, g, e, ended);
		return;
	}
	if (e->tls == TLS_SHAKEN)
		learn_ticket(sk, g, bytes);
	/* Where the end has a length that nobody knows, as behind a certificate in one record, what is said to it
	 * tells. */
	if (e->tls != TLS_SHAKING || e->flown) {
		e->tls = TLS_TICKETED;
		e->left = 0;
	}
}

/* Whether what was written to whoever asked, or came from whom the target asked, need be looked at. */
static __always_inline bool may_be_none(const struct exchange *e, u64 bytes)
{
	return e->tls || e->tickets || (e->secure && bytes <= MOST_GOODBYE);
}

/* Whether it is an answer. */
static __noinline bool is_answer(struct sock *sk, struct exchange *e, u64 bytes, u64 ended)
{
	struct group *g = its_group(e);

	if (e->tls) {
		go_on_shaking(sk, e, bytes, ended);
		return false;
	}
	if (says_goodbye(sk, e, bytes))
		return false;
	if (e->began && e->tickets && g->tickets_known && are_tickets(sk, e, bytes))
		return false;
	if (e->began && e->tickets && !g->tickets_known && may_be_tickets(sk, e, bytes, ended)) {
		e->aside = ended;
		return false;
	}
	e->tickets = 0;
	e->aside = 0;
	e->ticket_left = 0;
	return true;
}

/* Ends an exchange with what was taken for tickets, where nothing else came: it was the answer, or went with it. */
static __noinline void settle(struct exchange *e)
{
	struct group *g = its_group(e);

	count_length(&g->stages[STAGE_WHOLE], e->aside - e->began);
	if (e->accepted) {
		count_length(&g->stages[STAGE_READ_WAIT], e->read - e->began);
		count_length(&g->stages[STAGE_SERVICE], e->aside - e->read);
		if (e->aside > g->answered)
			g->answered = e->aside;
	}
	e->began = 0;
	e->aside = 0;
	e->tickets = 0;
}

/* What was seen before is not known any more. */
static __always_inline void forget_handshake(struct exchange *e)
{
	e->tls = TLS_NONE;
	e->tickets = 0;
	e->bye = 0;
	e->bye_back = 0;
	e->left = 0;
	e->ticket_left = 0;
	e->aside = 0;
}
