/* SPDX-License-Identifier: Apache-2.0 */
/* One viewer: its socket, its place in the stream, and the bytes that the socket did not take. */
#ifndef MEDIAIO_SESSION_H
#define MEDIAIO_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIO_MAX_CHUNK 65536

/* In front of every chunk, network byte order left aside: both ends are ours. */
struct mio_chunk_header {
	uint32_t bytes; /* with this header */
	uint32_t sequence;
	int64_t sent_ns; /* CLOCK_MONOTONIC */
};

/* What a viewer sends: an acknowledgement (kind 1) or a sign of life (kind 2). */
struct mio_report {
	uint32_t kind;
	uint32_t sequence;
};

struct mio_session {
	int fd;
	uint32_t slot; /* index in the reactor's table */
	uint32_t sequence;
	uint32_t acknowledged;
	int64_t due_ns;
	size_t left; /* bytes of `out` that are still to go */
	size_t sent; /* bytes of `out` that have gone */
	size_t report_bytes;
	char report[sizeof(struct mio_report)];
	char out[MIO_MAX_CHUNK];
};

enum mio_sent { MIO_SENT, MIO_PENDING, MIO_SKIPPED, MIO_GONE };

/* Builds the next chunk and sends as much as the socket takes. */
enum mio_sent mio_session_send(struct mio_session *session, uint32_t bytes, int64_t now_ns);

/* Goes on with a chunk that the socket took only in part. */
enum mio_sent mio_session_resume(struct mio_session *session);

/* Reads what the viewer reported. Bytes read, or <= 0 when it has gone. */
long mio_session_receive(struct mio_session *session);

#endif
