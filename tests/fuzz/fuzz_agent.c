/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_agent.c - an agent that talks nonsense. The input is a list of messages, each with its
 * type and its length before it: heads are made right and a greeting goes first, so that the
 * input gets past them.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../user/event/event.h"
#include "../../user/source/agent/agent_peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MESSAGES_MAX 32
/* for the thread that receives; it is not waited for longer, whatever the machine does */
#define WAIT_MS 1000

/* What the rest of the program relies on, whatever an agent says. */
static int emit(void *ctx, const struct ct_hdr *rec)
{
	(void)ctx;
	if (record_check(rec, rec->size) || rec->pid != (uint32_t)getpid() || rec->lost)
		abort();
	return 0;
}

static void greet(int fd)
{
	struct agent_hello h = { .h = { .type = AGENT_HELLO, .size = sizeof(h) },
				 .magic = AGENT_MAGIC,
				 .version = AGENT_VERSION,
				 .pid = (uint32_t)getpid(),
				 .cupti_version = 130001 };

	if (send(fd, &h, sizeof(h), MSG_NOSIGNAL) < 0)
		abort();
}

/* Sends one message of the input and returns what is left of it. */
static size_t put(int fd, const uint8_t *data, size_t size)
{
	static char msg[MEET_MSG_MAX];
	struct meet_head h = { .type = data[0] & 7 };
	size_t len = data[1] | (size_t)data[2] << 8;

	len = len < size - 3 ? len : size - 3;
	len = len < sizeof(msg) - sizeof(h) ? len : sizeof(msg) - sizeof(h);
	h.size = (uint32_t)(sizeof(h) + len);
	memcpy(msg, &h, sizeof(h));
	memcpy(msg + sizeof(h), data + 3, len);
	send(fd, msg, h.size, MSG_NOSIGNAL | MSG_DONTWAIT);
	return size - 3 - len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct capture_plan plan;
	struct agent_totals totals = { .records = 0 };
	const bool paused = false;
	struct agent_peer *p;
	size_t left = size;
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds))
		abort();
	plan.device.kinds = ~0u;
	p = agent_peer_open(fds[0], &(struct agent_conn_who){ .pid = getpid() }, &plan, size & 1);
	if (!p)
		abort();
	greet(fds[1]);
	for (int i = 0; i < MESSAGES_MAX && left > 3; i++)
		left = put(fds[1], data + (size - left), left);
	shutdown(fds[1], SHUT_WR);
	for (int waited = 0; agent_peer_state(p) != PEER_ENDED && waited < WAIT_MS; waited += 10) {
		struct pollfd pfd = { .fd = agent_peer_fd(p), .events = POLLIN };

		err = agent_peer_drain(p, &totals, &paused, emit, NULL);
		if (err < 0)
			abort();
		if (!err && agent_peer_state(p) != PEER_ENDED)
			poll(&pfd, 1, 10);
	}
	agent_peer_close(p);
	close(fds[1]);
	return 0;
}
