/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mediaio: paced delivery of stream chunks to many sockets from one thread.
 *
 * The application accepts connections and hands their sockets over; the reactor sends one chunk to
 * each session every interval and reads the small acknowledgements that come back. How long a poll
 * may wait is the application's decision: it passes a function.
 */
#ifndef MEDIAIO_H
#define MEDIAIO_H

#include <stdbool.h>
#include <stdint.h>

struct mio_reactor;

/* What the reactor tells the timeout function before a poll. */
struct mio_load {
	uint32_t sessions; /* open sessions */
	uint32_t last_moved; /* events that the poll before this one returned */
	int64_t due_in_ns; /* until the next chunk is due; < 0 = nothing is scheduled */
};

/* Longest wait of the next poll in ms: 0 = do not wait, -1 = until something happens. */
typedef int (*mio_timeout_fn)(const struct mio_load *load);

struct mio_options {
	int64_t interval_ns; /* between two chunks of one session */
	uint32_t chunk_bytes; /* size of a chunk with its header */
	mio_timeout_fn timeout; /* asked before each poll */
	bool wait_any; /* one wait on all descriptors, instead of one after the other */
};

/* Counts since the start. */
struct mio_stats {
	uint64_t polls; /* epoll_wait calls */
	uint64_t empty_polls; /* of these, returned no event */
	uint64_t reads; /* recv calls that returned data */
	uint64_t chunks; /* chunks handed to the kernel whole */
	uint64_t skipped; /* chunks not sent because the viewer is too far behind */
	uint64_t sessions; /* sessions open now */
};

struct mio_reactor *mio_reactor_new(const struct mio_options *options);

/* Hands a connected socket over; the reactor closes it. Safe from any thread. 0 or -errno. */
int mio_reactor_add(struct mio_reactor *reactor, int fd);

/* Runs until the process ends; the calling thread becomes the reactor's. */
void mio_reactor_run(struct mio_reactor *reactor);

void mio_reactor_stats(struct mio_reactor *reactor, struct mio_stats *out);

#endif
