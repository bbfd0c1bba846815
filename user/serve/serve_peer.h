/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_peer.h - inside serve: who a client is, and whether it may begin one more TLS handshake.
 * Knows no HTTP and no TLS.
 *
 * A handshake takes about a millisecond of the main loop, so one peer may begin only so many: 100
 * at once and 50 a second, and all peers together 200 at once and 100 a second.
 */
#ifndef CT_SERVE_PEER_H
#define CT_SERVE_PEER_H

#include "../util/allowance.h"
#include "../util/types.h"

/* An IPv4 address, the network (64 bits) of an IPv6 one, a user of a Unix socket. */
struct peer {
	int family; /* AF_UNSPEC: not known */
	unsigned char bytes[8];
};

struct peer peer_of(int fd);
bool peer_is_same(const struct peer *, const struct peer *);

struct handshakes {
	struct allowance of_peer, of_all;
	uint64_t refused;
};

void handshakes_open(struct handshakes *);
/* Whether the client at the other end of fd may begin a handshake. If so it counts as begun, if not
 * as refused. */
bool handshakes_admit(struct handshakes *, int fd);

#endif
