/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reactor has three sources, each an epoll descriptor of its own: sockets handed over, viewers'
 * reports, and sockets that have room again. Each is polled for one event at a time.
 */
#define _GNU_SOURCE /* pthread_setname_np */
#include "mediaio.h"
#include "session.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define MIO_MAX_SESSIONS 4096
#define MIO_NOTHING_DUE INT64_MAX

enum mio_source { SOURCE_HANDOVER, SOURCE_REPORTS, SOURCE_ROOM, SOURCES };

struct mio_reactor {
	struct mio_options options;
	int epoll[SOURCES];
	int epoll_any; /* watches the three above */
	int handover; /* eventfd */
	uint32_t last_moved;
	int64_t next_due_ns;
	struct mio_session *sessions[MIO_MAX_SESSIONS];

	pthread_mutex_t lock; /* guards the queue below */
	int queue[MIO_MAX_SESSIONS];
	uint32_t queued;

	atomic_uint_fast64_t polls, empty_polls, reads, chunks, skipped, open;
};

static void count(atomic_uint_fast64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int watch(int epoll, int fd, uint32_t events, void *data)
{
	struct epoll_event event = {.events = events, .data.ptr = data};
	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

struct mio_reactor *mio_reactor_new(const struct mio_options *options)
{
	if (options->chunk_bytes > MIO_MAX_CHUNK || options->chunk_bytes <= sizeof(struct mio_chunk_header))
		return NULL;
	struct mio_reactor *reactor = calloc(1, sizeof(*reactor));
	if (!reactor)
		return NULL;
	reactor->options = *options;
	reactor->next_due_ns = MIO_NOTHING_DUE;
	reactor->handover = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	reactor->epoll_any = epoll_create1(EPOLL_CLOEXEC);
	pthread_mutex_init(&reactor->lock, NULL);
	int failed = reactor->handover < 0 || reactor->epoll_any < 0;
	for (int s = 0; s < SOURCES && !failed; s++) {
		reactor->epoll[s] = epoll_create1(EPOLL_CLOEXEC);
		failed = reactor->epoll[s] < 0 || watch(reactor->epoll_any, reactor->epoll[s], EPOLLIN, NULL) < 0;
	}
	if (failed || watch(reactor->epoll[SOURCE_HANDOVER], reactor->handover, EPOLLIN, NULL) < 0)
		return NULL; /* out of descriptors: the process is about to end */
	return reactor;
}

int mio_reactor_add(struct mio_reactor *reactor, int fd)
{
	int error = -ENOSPC;
	pthread_mutex_lock(&reactor->lock);
	if (reactor->queued < MIO_MAX_SESSIONS) {
		reactor->queue[reactor->queued++] = fd;
		error = 0;
	}
	pthread_mutex_unlock(&reactor->lock);
	uint64_t one = 1;
	if (!error && write(reactor->handover, &one, sizeof(one)) < 0)
		error = -errno;
	return error;
}

static void open_session(struct mio_reactor *reactor, int fd)
{
	uint32_t slot = 0;
	while (slot < MIO_MAX_SESSIONS && reactor->sessions[slot])
		slot++;
	struct mio_session *session = slot < MIO_MAX_SESSIONS ? calloc(1, sizeof(*session)) : NULL;
	if (!session || watch(reactor->epoll[SOURCE_REPORTS], fd, EPOLLIN, session) < 0) {
		free(session);
		close(fd);
		return;
	}
	session->fd = fd;
	session->slot = slot;
	session->due_ns = now_ns();
	reactor->sessions[slot] = session;
	reactor->next_due_ns = session->due_ns;
	count(&reactor->open, 1);
}

static void close_session(struct mio_reactor *reactor, struct mio_session *session)
{
	reactor->sessions[session->slot] = NULL;
	/* By hand: close alone does not end a watch while the application holds a copy of the
	 * socket. */
	epoll_ctl(reactor->epoll[SOURCE_REPORTS], EPOLL_CTL_DEL, session->fd, NULL);
	epoll_ctl(reactor->epoll[SOURCE_ROOM], EPOLL_CTL_DEL, session->fd, NULL);
	close(session->fd);
	free(session);
	atomic_fetch_sub_explicit(&reactor->open, 1, memory_order_relaxed);
}

static void take_handover(struct mio_reactor *reactor)
{
	uint64_t times;
	if (read(reactor->handover, &times, sizeof(times)) < 0)
		return;
	pthread_mutex_lock(&reactor->lock);
	while (reactor->queued > 0)
		open_session(reactor, reactor->queue[--reactor->queued]);
	pthread_mutex_unlock(&reactor->lock);
}

static void after_send(struct mio_reactor *reactor, struct mio_session *session, enum mio_sent sent)
{
	if (sent == MIO_SENT)
		count(&reactor->chunks, 1);
	else if (sent == MIO_SKIPPED)
		count(&reactor->skipped, 1);
	else if (sent == MIO_PENDING)
		watch(reactor->epoll[SOURCE_ROOM], session->fd, EPOLLOUT, session);
	else
		close_session(reactor, session);
}

static void handle(struct mio_reactor *reactor, enum mio_source source, struct epoll_event *event)
{
	struct mio_session *session = event->data.ptr;
	if (source == SOURCE_HANDOVER) {
		take_handover(reactor);
	} else if (source == SOURCE_REPORTS) {
		if (mio_session_receive(session) <= 0)
			close_session(reactor, session);
		else
			count(&reactor->reads, 1);
	} else {
		epoll_ctl(reactor->epoll[SOURCE_ROOM], EPOLL_CTL_DEL, session->fd, NULL);
		after_send(reactor, session, mio_session_resume(session));
	}
}

static int ask_timeout(struct mio_reactor *reactor)
{
	struct mio_load load = {
		.sessions = (uint32_t)atomic_load_explicit(&reactor->open, memory_order_relaxed),
		.last_moved = reactor->last_moved,
		.due_in_ns = -1,
	};
	if (reactor->next_due_ns != MIO_NOTHING_DUE) {
		int64_t left = reactor->next_due_ns - now_ns();
		load.due_in_ns = left > 0 ? left : 0;
	}
	return reactor->options.timeout(&load);
}

/* One poll of one source: the place where the time goes when the timeout is 0. */
static __attribute__((noinline)) int mio_poll_source(struct mio_reactor *reactor, enum mio_source source,
						     int timeout_ms)
{
	struct epoll_event event;
	int n = epoll_wait(reactor->epoll[source], &event, 1, timeout_ms);
	count(&reactor->polls, 1);
	reactor->last_moved = n > 0 ? (uint32_t)n : 0;
	if (n > 0)
		handle(reactor, source, &event);
	else
		count(&reactor->empty_polls, 1);
	return n > 0;
}

/* One after the other, each with a wait of its own. */
static void poll_each(struct mio_reactor *reactor)
{
	for (int s = 0; s < SOURCES; s++)
		mio_poll_source(reactor, s, ask_timeout(reactor));
}

/* One wait for all; what it announces is then taken without waiting. */
static void poll_any(struct mio_reactor *reactor)
{
	struct epoll_event ready[SOURCES];
	int n = epoll_wait(reactor->epoll_any, ready, SOURCES, ask_timeout(reactor));
	count(&reactor->polls, 1);
	if (n <= 0) {
		count(&reactor->empty_polls, 1);
		return;
	}
	for (int s = 0; s < SOURCES; s++)
		while (mio_poll_source(reactor, s, 0))
			;
}

static void send_due(struct mio_reactor *reactor)
{
	int64_t now = now_ns(), next = MIO_NOTHING_DUE;
	if (now < reactor->next_due_ns)
		return;
	for (uint32_t slot = 0; slot < MIO_MAX_SESSIONS; slot++) {
		struct mio_session *session = reactor->sessions[slot];
		if (!session)
			continue;
		if (session->due_ns <= now) {
			session->due_ns += reactor->options.interval_ns;
			after_send(reactor, session, mio_session_send(session, reactor->options.chunk_bytes, now));
			session = reactor->sessions[slot];
		}
		if (session && session->due_ns < next)
			next = session->due_ns;
	}
	reactor->next_due_ns = next;
}

void mio_reactor_run(struct mio_reactor *reactor)
{
	pthread_setname_np(pthread_self(), "mio-reactor");
	for (;;) {
		if (reactor->options.wait_any)
			poll_any(reactor);
		else
			poll_each(reactor);
		send_due(reactor);
	}
}

void mio_reactor_stats(struct mio_reactor *reactor, struct mio_stats *out)
{
	*out = (struct mio_stats){
		.polls = atomic_load(&reactor->polls),
		.empty_polls = atomic_load(&reactor->empty_polls),
		.reads = atomic_load(&reactor->reads),
		.chunks = atomic_load(&reactor->chunks),
		.skipped = atomic_load(&reactor->skipped),
		.sessions = atomic_load(&reactor->open),
	};
}
