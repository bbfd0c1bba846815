/* SPDX-License-Identifier: BSD-2-Clause */
/* talk.c - see talk.h. */
#include "../cupti/agent/compat.h"

#include "talk.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../cupti/agent/meet.h"
#include "sys.h"

#define CHILD_NS 1000000000ULL /* how long a forked child waits for room in its parent's socket */

static struct held held = { .fd = -1 };
static char key[HOOKS_KEY];
static char message[HOOKS_MSG_MAX];
static int ask_fd = -1; /* the socket, where talk_ask() may use it */

static void take(int fd)
{
	held_take(&held, fd);
	__atomic_store_n(&ask_fd, fd, __ATOMIC_RELEASE);
}

int talk_connect(const char *text, int wait_ms)
{
	char path[108], hexkey[HOOKS_KEY + 1];
	int fd;

	memset(key, 0, sizeof(key));
	if (strncmp(text, "v1 ", 3))
		return -EPROTO;
	fd = meet_fd(text);
	if (fd >= 0 && !meet_is_ours(fd))
		return -EPROTO;
	if (fd == -ENOENT) {
		if (meet_word(text, "path", path, sizeof(path)) <= 0 ||
		    meet_word(text, "key", hexkey, sizeof(hexkey)) != HOOKS_KEY)
			return -EINVAL;
		memcpy(key, hexkey, HOOKS_KEY);
		fd = meet_connect(path, meet_now() + (uint64_t)wait_ms * 1000000);
	}
	if (fd < 0)
		return fd;
	take(fd);
	return 0;
}

void talk_close(void)
{
	__atomic_store_n(&ask_fd, -1, __ATOMIC_RELEASE);
	held_close(&held);
}

/* Sends a message with a descriptor to the peer of the process that forked. */
static int put_child(int to, const struct hooks_child *msg, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec io = { (void *)msg, sizeof(*msg) };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	uint64_t until = meet_now() + CHILD_NS;

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
	for (;;) {
		struct pollfd p = { .fd = to, .events = POLLOUT };

		if (sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*msg))
			return 0;
		if ((errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) ||
		    meet_now() > until)
			return -EPIPE;
		poll(&p, 1, 20);
	}
}

int talk_child(__u32 parent_tid)
{
	struct hooks_child msg = { .h = { .size = sizeof(msg), .type = HOOKS_CHILD },
				   .tid = parent_tid,
				   .ns = meet_now() };
	int to = held_fd(&held), pair[2] = { -1, -1 }, err = -EPIPE;

	if (to >= 0) {
		err = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ? -errno : 0;
		if (!err)
			err = put_child(to, &msg, pair[1]);
		else
			talk_say(HOOKS_WARN,
				 "process %d has no socket for its hooks (%s): its calls are not "
				 "shown",
				 (int)getpid(), strerror(-err));
	}
	talk_close();
	if (pair[1] >= 0)
		close(pair[1]);
	memset(key, 0, sizeof(key));
	if (!err)
		take(pair[0]);
	else if (pair[0] >= 0)
		close(pair[0]);
	return err;
}

int talk_fd(void)
{
	return held_fd(&held);
}

/* ---- sending ---- */

int talk_put(const void *msg, size_t n, int wait_ms)
{
	return meet_put(&held, msg, n, wait_ms);
}

void talk_say(enum hooks_level level, const char *fmt, ...)
{
	union {
		struct hooks_say say;
		char room[sizeof(struct hooks_say) + 512];
	} m = { .say = { .h = { .type = HOOKS_SAY }, .level = (__u16)level } };
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(m.say.text, 512, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	m.say.len = (__u16)(n < 512 ? n : 511);
	m.say.h.size = (__u32)sizeof(m.say) + m.say.len;
	talk_put(&m, m.say.h.size, 1000);
}

int talk_hello(void)
{
	struct hooks_hello h = {
		.h = { .size = sizeof(h), .type = HOOKS_HELLO },
		.magic = HOOKS_MAGIC,
		.version = HOOKS_VERSION,
		.pid = (__u32)getpid(),
	};

	memcpy(h.key, key, sizeof(h.key));
	return talk_put(&h, sizeof(h), HOOKS_WAIT_MS);
}

void talk_bye(int err, __u32 kept)
{
	struct hooks_bye b = { .h = { .size = sizeof(b), .type = HOOKS_BYE },
			       .err = err,
			       .kept = kept };

	talk_put(&b, sizeof(b), 500);
}

int talk_ask(enum hooks_type type, __u32 number)
{
	struct hooks_ask a = { .h = { .size = sizeof(a), .type = (__u16)type }, .number = number };
	int fd = __atomic_load_n(&ask_fd, __ATOMIC_ACQUIRE);

	if (fd < 0)
		return -EPIPE;
	return sys_call(SYS_sendto, fd, (long)&a, sizeof(a), MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0) ==
			       (long)sizeof(a)
		       ? 0
		       : -EAGAIN;
}

int talk_hang_up(void)
{
	int fd = __atomic_load_n(&ask_fd, __ATOMIC_ACQUIRE);

	return fd < 0 ? -EPIPE : (int)sys_call(SYS_shutdown, fd, SHUT_RD, 0, 0, 0, 0);
}

/* ---- receiving ---- */

const void *talk_message(void)
{
	return message;
}

static ssize_t receive(int from, int *fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec io = { message, sizeof(message) };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	return n > 0 && m.msg_flags & MSG_TRUNC ? 0 : n;
}

int talk_get(int wait_ms, size_t *size, int *fd)
{
	uint64_t until = meet_now() + (uint64_t)wait_ms * 1000000;
	int from;

	*fd = -1;
	while ((from = talk_fd()) >= 0) {
		struct pollfd p = { .fd = from, .events = POLLIN };
		ssize_t n = receive(from, fd);
		uint64_t now;
		int type;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			now = meet_now();
			if (now >= until)
				return 0;
			poll(&p, 1, (int)((until - now) / 1000000) + 1);
			continue;
		}
		type = n <= 0 ? -1 : hooks_msg_check(message, (size_t)n);
		if (type < 0)
			break;
		*size = (size_t)n;
		return type;
	}
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EPIPE;
}
