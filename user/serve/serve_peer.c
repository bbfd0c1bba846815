/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_peer.c - see serve_peer.h. An allowance is a time; a handshake takes as much of it as comes
 * back until the next one may begin.
 */
#include "serve_peer.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../util/hash.h"

#define S 1000000000ULL
#define PEER_AT_ONCE 100
#define PEER_EACH_NS (S / 50)
#define ALL_AT_ONCE 200
#define ALL_EACH_NS (S / 100)

struct peer peer_of(int fd)
{
	struct sockaddr_storage sa = { 0 };
	const struct sockaddr_in *in = (const struct sockaddr_in *)&sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&sa;
	socklen_t len = sizeof(sa);
	struct peer p = { .family = AF_UNSPEC };
	struct ucred cred = { 0 };

	if (fd < 0 || getpeername(fd, (struct sockaddr *)&sa, &len))
		return p;
	p.family = sa.ss_family;
	if (sa.ss_family == AF_INET) {
		memcpy(p.bytes, &in->sin_addr, 4);
	} else if (sa.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		p.family = AF_INET;
		memcpy(p.bytes, in6->sin6_addr.s6_addr + 12, 4);
	} else if (sa.ss_family == AF_INET6) {
		memcpy(p.bytes, in6->sin6_addr.s6_addr, 8);
	} else if (sa.ss_family == AF_UNIX) {
		len = sizeof(cred);
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
			memcpy(p.bytes, &cred.uid, sizeof(cred.uid));
	}
	return p;
}

bool peer_is_same(const struct peer *a, const struct peer *b)
{
	return a->family == b->family && !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

void handshakes_open(struct handshakes *h)
{
	*h = (struct handshakes){
		.of_peer = { .max_ns = PEER_AT_ONCE * PEER_EACH_NS, .part = 1 },
		.of_all = { .max_ns = ALL_AT_ONCE * ALL_EACH_NS, .part = 1 },
	};
}

bool handshakes_admit(struct handshakes *h, int fd)
{
	struct peer p = peer_of(fd);
	/* two peers with the same hash share an allowance: nobody can choose one, as it has a secret
	 */
	uint32_t owner =
		(uint32_t)hash_word(hash_bytes(p.bytes, sizeof(p.bytes)), (uint64_t)p.family);
	uint64_t *peer = allowance_of(&h->of_peer, owner), *all = allowance_of(&h->of_all, 0);

	if (*peer < PEER_EACH_NS || *all < ALL_EACH_NS) {
		h->refused++;
		return false;
	}
	*peer -= PEER_EACH_NS;
	*all -= ALL_EACH_NS;
	return true;
}
