/* SPDX-License-Identifier: BSD-2-Clause */
/* talk.c - see talk.h. */
#include "../cupti/agent/compat.h"

#include "talk.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "../cupti/agent/meet.h"

#define CHILD_MS 1000 /* how long the socket of a forked child waits for room in its parent's */

static struct held held = { .fd = -1 };
static char key[MEET_KEY];
static char message[MEET_MSG_MAX];

int talk_connect(const char *text, int wait_ms)
{
	struct meet m;
	int err = meet_parse(text, &m);

	memcpy(key, m.key, sizeof(key));
	return err ? err : meet_connect(&m, meet_now() + (uint64_t)wait_ms * 1000000, &held);
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
