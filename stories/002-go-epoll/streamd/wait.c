/* SPDX-License-Identifier: Apache-2.0 */
#include "wait.h"

/*
 * Quiet polls before the loop may rest. It was meant as "a long time", but it counts polls, and
 * four million of them are over within a second.
 */
#define QUIET_POLLS (4u << 20)
#define REST_WITH_SESSIONS_MS 20
#define REST_ALONE_MS 50

static uint32_t quiet_polls; /* the reactor's thread alone */

static int ms_until_due(const struct mio_load *load)
{
	return (int)((load->due_in_ns + 999999) / 1000000);
}

int streamd_wait_eager(const struct mio_load *load)
{
	if (load->last_moved || ++quiet_polls < QUIET_POLLS)
		return 0;
	quiet_polls = 0;
	if (load->sessions == 0)
		return REST_ALONE_MS;
	int due = ms_until_due(load);
	return due < REST_WITH_SESSIONS_MS ? due : REST_WITH_SESSIONS_MS;
}

int streamd_wait_floor(const struct mio_load *load)
{
	int timeout_ms = streamd_wait_eager(load);
	return timeout_ms > 0 ? timeout_ms : 1;
}

int streamd_wait_deadline(const struct mio_load *load)
{
	return load->due_in_ns < 0 ? -1 : ms_until_due(load);
}
