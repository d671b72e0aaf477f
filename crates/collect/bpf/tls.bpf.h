/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The handshake of TLS, which is told by the first bytes of a connection. It is one exchange, and no request: it has a
 * stage of its own, from the hello to what is said to that. What the client says then ends it, and its first request
 * may come in the same read; and what the server says to that end are tickets, which nobody waits for, and no answer.
 *
 * What ends it is found by the heads of records. Whatever stands there that is none, or cannot be read, is a question,
 * as it would be without TLS.
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
#define MOST_RECORDS 6
/* Tickets come within so long after that end, ns, and after the way there and back: the same call of the library makes
 * both. */
#define TICKETS_WITHIN 5000000

enum tls_state {
	TLS_NONE, /* no handshake is under way */
	TLS_HELLO, /* a client has begun one */
	TLS_SHAKING, /* it was answered */
	TLS_LEGACY, /* TLS 1.2: the client's end is answered, too, before it asks */
	TLS_SHAKEN, /* it is over, and nothing was asked yet; nothing was said to that */
	TLS_TICKETED, /* likewise, and tickets were */
};

/* What the bytes of whoever asks are. */
enum said { SAID_NOTHING, SAID_HELLO, SAID_QUESTION };

struct record_head {
	u8 type;
	u8 version[2];
	u8 length[2];
	u8 first; /* of what follows the head: in a handshake that is not encrypted yet, what kind of message it is */
};

/* The memory of the thread's call, where that holds what came or will be sent. */
static __always_inline bool plain_piece(struct sock *sk, struct piece *piece)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	return tcp && !tcp->inet_conn.icsk_ulp_ops && !sk->sk_user_data && first_piece(piece);
}

/* The head of a record so far from the begin of the thread's call; its type, 0 = there is none. */
static __noinline u8 head_at(struct sock *sk, u32 at, u64 bytes, struct record_head *head)
{
	struct piece piece = {};

	__builtin_memset(head, 0, sizeof(*head));
	if (!plain_piece(sk, &piece) || at + RECORD_HEAD > bytes || at + RECORD_HEAD > piece.length)
		return 0;
	if (bpf_probe_read_user(head, RECORD_HEAD, (void *)piece.at + at))
		return 0;
	if (at + sizeof(*head) <= bytes && at + sizeof(*head) <= piece.length)
		bpf_probe_read_user(&head->first, 1, (void *)piece.at + at + RECORD_HEAD);
	return head->version[0] == 3 && head->version[1] <= 4 ? head->type : 0;
}

static __always_inline u32 length_of(const struct record_head *head)
{
	return head->length[0] << 8 | head->length[1];
}

/* What one record says of the handshake, of which another stood before in the same bytes or not. */
static __always_inline void take_record(struct exchange *e, u8 type, const struct record_head *head, bool is_later)
{
	u32 length = length_of(head);

	if (type == RECORD_HANDSHAKE && head->first == CLIENT_HELLO && length >= LEAST_HELLO)
		e->tls = TLS_HELLO;
	else if (type == RECORD_HANDSHAKE)
		e->tls = is_later || e->changed ? TLS_TICKETED : TLS_LEGACY; /* resumed, which brings no tickets */
	else if (type == RECORD_DATA && (length == FINISHED_256 || length == FINISHED_384))
		e->tls = TLS_SHAKEN;
	else if (type == RECORD_CHANGE)
		e->changed = 1;
}

/* Bytes that follow a hello's answer: takes the records of the handshake out of them; what is left is a question. */
static __noinline enum said take_records(struct sock *sk, struct exchange *e, u64 bytes)
{
	u32 at = e->left;

	if (at >= bytes) {
		e->left -= bytes;
		return SAID_NOTHING;
	}
	for (int i = 0; i < MOST_RECORDS && e->tls == TLS_SHAKING && at < bytes; i++) {
		struct record_head head;
		u8 type = head_at(sk, at, bytes, &head);

		if (!type) {
			e->tls = TLS_NONE;
			return SAID_QUESTION;
		}
		take_record(e, type, &head, at > 0);
		at += RECORD_HEAD + length_of(&head);
	}
	e->left = at > bytes ? at - bytes : 0;
	if (e->tls == TLS_HELLO)
		return SAID_HELLO;
	if (e->tls <= TLS_LEGACY || at >= bytes || bytes - at == RECORD_HEAD + GOODBYE)
		return SAID_NOTHING;
	return SAID_QUESTION;
}

/* Whether it is only a goodbye, of which the rest may be read later. */
static __always_inline bool is_goodbye(struct sock *sk, struct exchange *e, u64 bytes)
{
	struct record_head head;
	u8 type;

	if (e->left) {
		e->left = 0;
		return true;
	}
	type = head_at(sk, 0, bytes, &head);
	if (type != RECORD_ALERT && (type != RECORD_DATA || length_of(&head) != GOODBYE))
		return false;
	e->left = bytes == RECORD_HEAD;
	return true;
}

/* What was read from whoever asks, or is about to be written to whom the target asks, while nothing else is under way.
 */
static __noinline enum said said_of(struct sock *sk, struct exchange *e, u64 bytes)
{
	struct record_head head;
	enum said said = SAID_QUESTION;

	if (e->tls == TLS_HELLO || e->tls == TLS_LEGACY)
		return SAID_NOTHING;
	if (e->unseen) {
		e->unseen = 0;
		e->secure = head_at(sk, 0, bytes, &head) >= RECORD_CHANGE && head.type <= RECORD_DATA;
	}
	if (e->first && head_at(sk, 0, bytes, &head) == RECORD_HANDSHAKE)
		return SAID_HELLO;
	if (e->tls == TLS_SHAKING || e->left)
		said = e->tls ? take_records(sk, e, bytes) : said;
	if (said == SAID_QUESTION && e->secure && is_goodbye(sk, e, bytes))
		return SAID_NOTHING;
	if (said == SAID_QUESTION && e->tls) {
		e->tickets = e->tls == TLS_SHAKEN;
		e->tls = TLS_NONE;
	}
	return said;
}

/* Whether it is a question. A hello begins an exchange that does not count as one. */
static __always_inline bool is_question(struct sock *sk, struct exchange *e, u64 bytes, u64 at, u64 now)
{
	enum said said;

	/* First what nearly all are. */
	if (!e->tls && (e->began || !(e->first || e->secure || e->unseen)))
		return true;
	said = said_of(sk, e, bytes);
	if (said == SAID_HELLO) {
		e->tls = TLS_HELLO;
		e->secure = 1;
		e->left = 0;
		e->began = at;
		e->read = now;
		if (!e->accepted)
			e->written = now;
	}
	return said == SAID_QUESTION;
}

/* A hello is answered. */
static __always_inline void shake(struct group *g, struct exchange *e, u64 ended)
{
	count_length(&g->stages[STAGE_HANDSHAKE], ended - e->began);
	if (e->accepted && e->first)
		count_length(&g->stages[STAGE_FIRST_READ], e->read - e->began);
	e->tls = TLS_SHAKING;
	e->began = 0;
	e->first = 0;
}

/* Whether tickets in this group have this length: those that were seen when nothing was asked yet. */
static __always_inline bool is_ticket(const struct group *g, u32 length)
{
	return length == g->ticket || length == g->other_ticket;
}

/* Learns the length of tickets: those of two kinds of clients differ. */
static __noinline void learn_ticket(struct sock *sk, struct group *g, u64 bytes)
{
	struct record_head head;

	if (head_at(sk, 0, bytes, &head) != RECORD_DATA || is_ticket(g, length_of(&head)))
		return;
	g->other_ticket = g->ticket;
	g->ticket = length_of(&head);
}

/* Whether what was said is tickets and nothing else. */
static __noinline bool are_tickets(struct sock *sk, struct exchange *e, u64 bytes)
{
	struct group *g = its_group(e);
	u32 at = e->left;

	for (int i = 0; i < MOST_RECORDS && at < bytes; i++) {
		struct record_head head;

		if (head_at(sk, at, bytes, &head) != RECORD_DATA || !is_ticket(g, length_of(&head)))
			return false;
		at += RECORD_HEAD + length_of(&head);
	}
	e->left = at > bytes ? at - bytes : 0;
	return at >= bytes;
}

/* Whether what came after a handshake, before the first answer, may be tickets of a length that nobody knows. */
static __always_inline bool may_be_tickets(struct sock *sk, const struct exchange *e, u64 ended)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	s64 since = ended - (e->accepted ? e->read : e->written);
	s64 way = tcp && !e->accepted ? (s64)(tcp->srtt_us >> 2) * 1000 : 0;

	return since <= TICKETS_WITHIN + way;
}

/* Whether what was written to whoever asked, or came from whom the target asked, is an answer. */
static __noinline bool is_answer(struct sock *sk, struct exchange *e, u64 bytes, u64 ended)
{
	struct group *g = its_group(e);

	if (e->tls == TLS_HELLO)
		shake(g, e, ended);
	else if (e->tls == TLS_SHAKEN && !e->left)
		learn_ticket(sk, g, bytes);
	if (e->tls > TLS_SHAKING && !e->left)
		e->tls = TLS_TICKETED;
	if (e->tls)
		return false;
	if (e->began && g->ticket && are_tickets(sk, e, bytes))
		return false;
	if (e->began && !g->ticket && may_be_tickets(sk, e, ended)) {
		e->aside = ended;
		return false;
	}
	e->tickets = 0;
	e->aside = 0;
	e->left = 0;
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
