/* SPDX-License-Identifier: BSD-2-Clause */
/* talk.c - see talk.h. */
#include "../common/compat.h"

#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "../common/meet.h"
#include "../common/sys.h"

#define CHILD_MS 1000 /* how long the socket of a forked child waits for room in its parent's */

static struct held held = { .fd = -1 };
static char key[MEET_KEY];
static char message[MEET_MSG_MAX];
static int peer; /* the process at the other end; 0: not known. A forked child has its parent's */

int talk_connect(const char *text, int wait_ms)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred who;
	struct meet m;
	int err = meet_parse(text, &m);

	memcpy(key, m.key, sizeof(key));
	peer = 0;
	if (!err)
		err = meet_connect(&m, meet_now() + (uint64_t)wait_ms * 1000000, &held);
	/* the one end of a socketpair was made by this process, as was the other */
	if (!err && m.fd < 0 && !getsockopt(held.fd, SOL_SOCKET, SO_PEERCRED, &who, &len))
		peer = who.pid;
	return err;
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

void talk_refuse(const char *text)
{
	struct held unwanted = { .fd = -1 };
	struct meet m;

	if (text && !meet_parse(text, &m) && m.fd >= 0 && !meet_connect(&m, 0, &unwanted))
		held_close(&unwanted);
}

void talk_child(int fd)
{
	memset(key, 0, sizeof(key));
	held_take(&held, fd);
}

void talk_moved(int fd)
{
	held.fd = fd;
}

void talk_close(void)
{
	held_close(&held);
}

void talk_forget(void)
{
	held.fd = -1;
}

struct held talk_held(void)
{
	return held;
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

	return talk_put(&a, sizeof(a), 0);
}

int talk_look(void)
{
	const struct meet_head h = { .size = sizeof(h), .type = HOOKS_LOOK };

	return talk_put(&h, sizeof(h), 0);
}

int talk_birth(int fd, __u32 tid, __u64 ns)
{
	struct hooks_child c = { .h = { .size = sizeof(c), .type = HOOKS_CHILD },
				 .tid = tid,
				 .ns = ns };
	int to = held_fd(&held);

	return to < 0 ? -EPIPE : meet_put_fd(to, &c, sizeof(c), CHILD_MS, fd);
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
