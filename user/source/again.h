/* SPDX-License-Identifier: BSD-2-Clause */
/* again.h - whether a receive that failed is to be repeated at once. */
#ifndef CT_AGAIN_H
#define CT_AGAIN_H

#include <errno.h>
#include <stdbool.h>

/* err: errno of a recv() or recvmsg(). True: a signal came, or the peer died before it had read all that it
 * was sent. The kernel says the latter once, before what the peer itself still had said. */
static inline bool again(int err)
{
	return err == EINTR || err == ECONNRESET;
}

#endif
