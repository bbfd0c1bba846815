/* SPDX-License-Identifier: BSD-2-Clause */
/* talk.c - see talk.h. */
#include "../cupti/agent/compat.h"

#include "talk.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../cupti/agent/held.h"
#include "sys.h"

static struct held held = { .fd = -1 };
static char key[HOOKS_KEY];
static char message[HOOKS_MSG_MAX];
static int mapped_fd = -1; /* the socket, where talk_mapped() may use it */

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000 + (__u64)ts.tv_nsec / 1000000;
}

/* ---- the words of the text ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of `name` in the text, unescaped. Its length; 0: it is not there; -EINVAL: it does not
 * fit. */
static int word(const char *text, const char *name, char *out, size_t size)
{
	size_t len = strlen(name), n = 0;

	for (const char *at = text; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) {
		if (strncmp(at, name, len) || at[len] != '=')
			continue;
		for (at += len + 1; *at && *at != ' '; at++) {
			char c = *at;

			if (c == '%') {
				if (hex(at[1]) < 0 || hex(at[2]) < 0)
					return -EINVAL;
				c = (char)(hex(at[1]) << 4 | hex(at[2]));
				at += 2;
			}
			if (!c || n + 1 >= size)
				return -EINVAL;
			out[n++] = c;
		}
		break;
	}
	out[n] = '\0';
	return (int)n;
}

static int inherited(const char *number, int n)
{
	socklen_t len = sizeof(int);
	int fd = 0, type = 0;

	for (int i = 0; i < n; i++) {
		if (number[i] < '0' || number[i] > '9' || i > 8)
			return -EINVAL;
		fd = fd * 10 + number[i] - '0';
	}
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) || type != SOCK_SEQPACKET)
		return -EPROTO; /* not what was agreed: not ours to close */
	return fd;
}

/* Waits in the kernel's line for a place in the backlog. */
static int connect_to(const char *path, int wait_ms)
{
	struct timeval wait = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000L };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	memcpy(addr.sun_path, path, strlen(path) + 1); /* word() has seen that it fits */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int talk_connect(const char *text, int wait_ms)
{
	char number[16], path[108], hexkey[HOOKS_KEY + 1];
	int n, fd;

	memset(key, 0, sizeof(key));
	if (strncmp(text, "v1 ", 3))
		return -EPROTO;
	n = word(text, "fd", number, sizeof(number));
	if (n > 0) {
		fd = inherited(number, n);
	} else {
		if (word(text, "path", path, sizeof(path)) <= 0 ||
		    word(text, "key", hexkey, sizeof(hexkey)) != HOOKS_KEY)
			return -EINVAL;
		memcpy(key, hexkey, HOOKS_KEY);
		fd = connect_to(path, wait_ms);
	}
	if (fd < 0)
		return fd;
	held_take(&held, fd);
	__atomic_store_n(&mapped_fd, fd, __ATOMIC_RELEASE);
	return 0;
}

void talk_close(void)
{
	__atomic_store_n(&mapped_fd, -1, __ATOMIC_RELEASE);
	held_close(&held);
}

void talk_forget(void)
{
	talk_close();
}

int talk_fd(void)
{
	return held_fd(&held);
}

/* ---- sending ---- */

int talk_put(const void *msg, size_t n, int wait_ms)
{
	__u64 until = now_ms() + (__u64)wait_ms;
	int fd;

	while ((fd = talk_fd()) >= 0) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		if (send(fd, msg, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS)
			return -EPIPE;
		if (now_ms() >= until)
			return -EAGAIN;
		poll(&p, 1, 20);
	}
	return -EPIPE;
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

int talk_mapped(void)
{
	struct hooks_head h = { .size = sizeof(h), .type = HOOKS_MAPPED };
	int fd = __atomic_load_n(&mapped_fd, __ATOMIC_ACQUIRE);

	if (fd < 0)
		return -EPIPE;
	return sys_call(SYS_sendto, fd, (long)&h, sizeof(h), MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0) ==
			       (long)sizeof(h)
		       ? 0
		       : -EAGAIN;
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
	__u64 until = now_ms() + (__u64)wait_ms;
	int from;

	*fd = -1;
	while ((from = talk_fd()) >= 0) {
		struct pollfd p = { .fd = from, .events = POLLIN };
		ssize_t n = receive(from, fd);
		__u64 now;
		int type;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			now = now_ms();
			if (now >= until)
				return 0;
			poll(&p, 1, (int)(until - now));
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
