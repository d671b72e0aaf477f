/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* A viewer this many chunks behind gets none until it catches up. */
#define MIO_MAX_BEHIND 256

enum mio_sent mio_session_resume(struct mio_session *session)
{
	while (session->left > 0) {
		ssize_t n = send(session->fd, session->out + session->sent, session->left, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? MIO_PENDING : MIO_GONE;
		session->sent += (size_t)n;
		session->left -= (size_t)n;
	}
	return MIO_SENT;
}

enum mio_sent mio_session_send(struct mio_session *session, uint32_t bytes, int64_t now_ns)
{
	if (session->left > 0 || session->sequence - session->acknowledged > MIO_MAX_BEHIND)
		return MIO_SKIPPED;
	struct mio_chunk_header header = {.bytes = bytes, .sequence = ++session->sequence, .sent_ns = now_ns};
	memcpy(session->out, &header, sizeof(header));
	/* Stands for the media data: different in each chunk, cheap to make. */
	memset(session->out + sizeof(header), (int)(session->sequence & 0xff), bytes - sizeof(header));
	session->sent = 0;
	session->left = bytes;
	return mio_session_resume(session);
}

static void take_report(struct mio_session *session)
{
	struct mio_report report;
	memcpy(&report, session->report, sizeof(report));
	if (report.kind == 1)
		session->acknowledged = report.sequence;
}

long mio_session_receive(struct mio_session *session)
{
	char buffer[1024];
	ssize_t n = recv(session->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -1;
	for (ssize_t i = 0; i < n; i++) {
		session->report[session->report_bytes++] = buffer[i];
		if (session->report_bytes == sizeof(session->report)) {
			take_report(session);
			session->report_bytes = 0;
		}
	}
	return n;
}
