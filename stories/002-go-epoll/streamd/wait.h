/* SPDX-License-Identifier: Apache-2.0 */
/* The service's own opinion about how long the reactor may wait; one function for each -poll mode.
 */
#ifndef STREAMD_WAIT_H
#define STREAMD_WAIT_H

#include "../mediaio/mediaio.h"

/* The fault: "streams must never wait", so nearly always 0. */
int streamd_wait_eager(const struct mio_load *load);

/* The quick fix: the same, but never less than 1 ms. */
int streamd_wait_floor(const struct mio_load *load);

/* The better fix: until something happens or the next chunk is due. */
int streamd_wait_deadline(const struct mio_load *load);

#endif
