/* SPDX-License-Identifier: BSD-2-Clause */
/* talk.c - see talk.h. */
#include "../cupti/agent/compat.h"

#include "talk.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "../cupti/agent/meet.h"
#include "sys.h"

#define CHILD_MS 1000 /* how long a forked child waits for room in its parent's socket */

static struct held held = { .fd = -1 };
static char key[MEET_KEY];
static char message[MEET_MSG_MAX];
static int ask_fd = -1; /* the socket, where talk_ask() may use it */
static int peer;	/* its process; 0: not known. A forked child has its parent's */

static void take(int fd)
{
	held_take(&held, fd);
	__atomic_store_n(&ask_fd, fd, __ATOMIC_RELEASE);
}

int talk_connect(const char *text, int wait_ms)
{
	struct held got = { .fd = -1 };
	socklen_t len = sizeof(struct ucred);
	struct ucred who;
	struct meet m;
	int err = meet_parse(text, &m);

	memcpy(key, m.key, sizeof(key));
	peer = 0;
	if (!err)
		err = meet_connect(&m, meet_now() + (uint64_t)wait_ms * 1000000, &got);
	if (err)
		return err;
	take(got.fd);
	/* the one end of a socketpair was made by this process, as was the other */
	if (m.fd < 0 && !getsockopt(got.fd, SOL_SOCKET, SO_PEERCRED, &who, &len))
		peer = who.pid;
	return 0;
}

void talk_peer(int pid)
{
	if (pid)
		peer = pid;
}

/* Its main thread's state is the first word behind the name, which is in parentheses. */
bool talk_is_stopped(void)
{
	char path[32] = "/proc/", text[256];
	int n = 6, digits = 0, fd;
	long got;

	for (int rest = peer; rest > 0; rest /= 10)
		digits++;
	if (!digits)
		return false;
	for (int i = digits, rest = peer; i-- > 0; rest /= 10)
		path[n + i] = (char)('0' + rest % 10);
	memcpy(path + n + digits, "/stat", 6);
	fd = (int)sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return false;
	got = sys_call(SYS_read, fd, (long)text, sizeof(text), 0, 0, 0);
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	while (got-- > 2)
		if (text[got - 2] == ')')
			return text[got] == 'T' || text[got] == 't';
	return false;
}

void talk_close(void)
{
	__atomic_store_n(&ask_fd, -1, __ATOMIC_RELEASE);
	held_close(&held);
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
			err = meet_put_fd(to, &msg, sizeof(msg), CHILD_MS, pair[1]);
		if (err)
			talk_say(MEET_WARN,
				 "process %d has no connection for its hooks (%s): its calls are "
				 "not shown",
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

void talk_say(enum meet_level level, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	meet_say(&held, HOOKS_SAY, level, fmt, args);
	va_end(args);
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
	return talk_put(&h, sizeof(h), MEET_WAIT_MS);
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

int talk_get(int wait_ms, size_t *size, int *fd)
{
	return meet_get(&held, message, wait_ms, hooks_msg_check, size, fd);
}
