/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * out.c - the buffered writer of out.h.
 *
 * The buffer never grows: it is OUT_BUF bytes, a reserve that does not fit flushes first. A slow
 * reader of a pipe blocks us in write(2), as it does strace, unless a thread writes (out_behind()).
 * After an error out_reserve() hands out the start of the buffer
 * again and again, so that callers need no error path of their own. Knows nothing of rows.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "../msg.h"
#include "behind.h"
#include "out.h"
#include "../put.h"
#include "safe_open.h"
#include "../utf8.h"

#define OUT_BUF (256 * 1024)
#define OUT_RESERVE_MAX (64 * 1024)
#define OUT_FILE_AGE_NS 1000000000ULL
#define STALL_MS 1000
#define GZIP_BUF (64 * 1024)
/* the data is compressed while it comes in: a higher level takes twice the time for a tenth of
 * the size */
#define GZIP_LEVEL 1

struct out_gzip {
	z_stream z;
	unsigned char buf[GZIP_BUF];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static int out_begin(struct out *o, const char *name)
{
	memset(o, 0, sizeof(*o));
	o->fd = -1;
	o->name = name;
	o->flushed_ns = now_ns();
	o->buf = malloc(OUT_BUF);
	o->cap = OUT_BUF;
	return o->buf ? 0 : -ENOMEM;
}

/* `fd` is the descriptor, or -errno instead of one. */
static int use(struct out *o, int fd)
{
	int err = fd < 0 ? fd : 0;
	struct stat st;

	o->fd = fd;
	if (!err && fstat(fd, &st) < 0)
		err = -errno;
	if (err) {
		if (o->owned && fd >= 0)
			close(fd);
		free(o->buf);
		o->buf = NULL;
		o->fd = -1;
		return err;
	}
	o->is_file = S_ISREG(st.st_mode);
	o->is_tty = isatty(fd);
	return 0;
}

/* Standard output or standard error. */
static int open_stream(struct out *o, int fd)
{
	int flags = fcntl(fd, F_GETFL),
	    err = out_begin(o, fd == STDERR_FILENO ? "standard error" : "standard output");

	if (err)
		return err;
	err = use(o, flags < 0 || (flags & O_ACCMODE) == O_RDONLY ? -EBADF : fd);
	/* messages are written to standard error too, and rows must not be held back behind them */
	if (fd == STDERR_FILENO)
		o->is_file = false;
	return err;
}

/* waits: whether to wait for a reader if the path is a pipe that nobody reads. */
static int out_open_file(struct out *o, const char *path, bool append, bool waits)
{
	int err, fd, how = append ? O_APPEND : O_TRUNC;

	if (!path || !strcmp(path, "-"))
		return open_stream(o, STDOUT_FILENO);
	err = out_begin(o, path);
	if (err)
		return err;
	/* 0666 as every program's output has it: the umask with which we were started decides. */
	fd = safe_open(path,
		       O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | how | (waits ? 0 : O_NONBLOCK),
		       0666);
	if (fd >= 0 && !waits && fcntl(fd, F_SETFL, append ? O_APPEND : 0) < 0) {
		close(fd);
		fd = -EIO;
	}
	o->owned = true;
	return use(o, fd);
}

int out_open(struct out *o, const char *path, bool append)
{
	return out_open_file(o, path, append, true);
}

static int open_command(struct out *o, const char *path)
{
	int err = out_begin(o, path);

	if (err)
		return err;
	o->owned = true;
	return use(o, out_command_open(path + 1, &o->command));
}

bool out_is_command(const char *path)
{
	return path && *path == '|';
}

int out_open_output(struct out *o, const char *path, bool append, int otherwise)
{
	int err;

	if (!path)
		err = open_stream(o, otherwise);
	else if (out_is_command(path))
		err = open_command(o, path);
	else
		err = out_open_file(o, path, append, otherwise >= 0);
	if (!err && out_is_gzip(path))
		err = out_gzip(o);
	if (err)
		msg_error("cannot write to %s: %s", o->name,
			  err == -ENXIO ? "it is a pipe that nobody reads" : strerror(-err));
	return err;
}

int out_open_fd(struct out *o, int fd, const char *name)
{
	int err = out_begin(o, name);

	o->fd = fd;
	o->is_file = true;
	return err;
}

int out_wait(int fd, const volatile int *stop)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	for (;;) {
		int n = poll(&pfd, 1, STALL_MS);

		if (stop && *stop > 1)
			return -ESHUTDOWN;
		if (n > 0)
			return 0;
		if (!n && stop && *stop)
			return -ETIMEDOUT;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static void write_now(struct out *o, const char *s, size_t len)
{
	size_t at = 0;

	while (at < len && !o->error) {
		size_t want = len - at;
		int stopping = o->stop ? *o->stop : 0;
		ssize_t n;

		if (stopping > 1) {
			o->error = -ESHUTDOWN;
			break;
		}
		/* a write of PIPE_BUF after poll(2) does not block, so that a stalled reader
		 * cannot keep us here */
		if (stopping && !o->is_file) {
			o->error = out_wait(o->fd, o->stop);
			if (o->error)
				break;
			if (want > PIPE_BUF)
				want = PIPE_BUF;
		}
		n = write(o->fd, s + at, want);
		if (n > 0) {
			at += (size_t)n;
			o->written += (uint64_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			/* somebody made our stdout non-blocking */
			o->error = out_wait(o->fd, o->stop);
		} else if (n < 0 && errno != EINTR) {
			o->error = -errno;
		} else if (n == 0) {
			o->error = -EIO;
		}
	}
}

static void out_write_all(struct out *o, const char *s, size_t len)
{
	uint64_t begun_ns = now_ns();

	if (!o->behind)
		write_now(o, s, len);
	else if (!o->error)
		o->error = behind_put(o->behind, s, len, o->stop);
	o->waited_ns += now_ns() - begun_ns;
}

/* Compresses what is in the buffer. `flush`: as zlib has it. */
static void write_gzip(struct out *o, int flush)
{
	struct out_gzip *g = o->gzip;

	g->z.next_in = (unsigned char *)o->buf;
	g->z.avail_in = (unsigned int)o->len;
	do {
		g->z.next_out = g->buf;
		g->z.avail_out = sizeof(g->buf);
		deflate(&g->z, flush);
		out_write_all(o, (const char *)g->buf, sizeof(g->buf) - g->z.avail_out);
	} while (!g->z.avail_out && !o->error);
}

static int flush_to(struct out *o, bool end)
{
	/* each flush ends on a byte, so that a file whose writer was killed can be read up to there */
	if (o->gzip)
		write_gzip(o, end ? Z_FINISH : Z_SYNC_FLUSH);
	else
		out_write_all(o, o->buf, o->len);
	o->len = 0;
	o->flushed_ns = now_ns();
	return o->error;
}

int out_flush(struct out *o)
{
	if (!o->len)
		return o->error;
	return flush_to(o, false);
}

bool out_is_gzip(const char *path)
{
	size_t n = path ? strlen(path) : 0;

	return n > 3 && !strcmp(path + n - 3, ".gz") && !out_is_command(path);
}

int out_gzip(struct out *o)
{
	struct out_gzip *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	/* 16: with gzip's head and tail */
	if (deflateInit2(&g->z, GZIP_LEVEL, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		free(g);
		return -ENOMEM;
	}
	o->gzip = g;
	return 0;
}

int out_sync(struct out *o)
{
	if (o->behind && !o->error)
		o->error = behind_error(o->behind);
	if (!o->len || o->error)
		return o->error;
	if (o->is_file && o->len < o->cap / 2 && now_ns() - o->flushed_ns < OUT_FILE_AGE_NS)
		return 0;
	return out_flush(o);
}

void out_behind(struct out *o)
{
	struct stat st;

	if (o->buf && !fstat(o->fd, &st))
		o->behind = behind_open(o->fd, S_ISREG(st.st_mode));
}

bool out_full(const struct out *o)
{
	return o->behind && behind_full(o->behind);
}

int out_room_fd(const struct out *o)
{
	return o->behind ? behind_fd(o->behind) : -1;
}

void out_room_seen(struct out *o)
{
	behind_seen(o->behind);
}

void out_between(struct out *o, const char *text, size_t n)
{
	behind_put(o->behind, text, n, o->stop);
}

uint64_t out_written(const struct out *o)
{
	return o->behind ? behind_written(o->behind) : o->written;
}

void out_give_up(struct out *o, int err)
{
	if (!o->error)
		o->error = err;
}

static int close_behind(struct out *o)
{
	/* nobody waits for an output that was given up */
	static const volatile int at_once = 2;
	int err = behind_close(o->behind, o->error ? &at_once : o->stop, &o->written);

	o->behind = NULL;
	o->error = o->error ? o->error : err;
	return o->error;
}

int out_close(struct out *o)
{
	int err, ended;

	if (!o->buf)
		return 0;
	err = flush_to(o, true);
	if (o->behind)
		err = close_behind(o);
	if (o->gzip)
		deflateEnd(&o->gzip->z);
	free(o->gzip);
	o->gzip = NULL;
	if (o->owned && close(o->fd) < 0 && !err)
		err = -errno;
	free(o->buf);
	o->buf = NULL;
	o->fd = -1;
	if (!o->command)
		return err;
	/* how the command ended says more than that it took no more input */
	ended = out_command_wait(o->command, o->stop, &o->status);
	return ended && (!err || err == -EPIPE) ? ended : err;
}

int out_report(const struct out *o, int err, const char *then)
{
	unsigned long long bytes = o->written;

	switch (err) {
	case 0:
	case -EPIPE: return 0;
	case -ECHILD:
		if (WIFSIGNALED(o->status))
			msg_error("the command of -o, '%s', was killed by signal %d (%s)",
				  o->name + 1, WTERMSIG(o->status), strsignal(WTERMSIG(o->status)));
		else
			msg_error("the command of -o, '%s', failed with status %d", o->name + 1,
				  WEXITSTATUS(o->status));
		break;
	case -EBUSY:
		msg_error("a second signal: the command of -o, '%s', still runs, and is not waited "
			  "for",
			  o->name + 1);
		break;
	case -ESHUTDOWN:
		msg_error("a second signal: writing to %s stopped after %llu bytes, the rest is "
			  "dropped",
			  o->name, bytes);
		break;
	case -ETIMEDOUT:
		msg_error("the reader of %s does not read: tracing stopped after %llu bytes, the "
			  "rest is dropped",
			  o->name, bytes);
		break;
	default:
		msg_error("writing to %s failed after %llu bytes: %s%s", o->name, bytes,
			  strerror(-err), then);
		break;
	}
	return err;
}

char *out_reserve(struct out *o, size_t n)
{
	if (n > OUT_RESERVE_MAX)
		abort(); /* a mistake of the caller, not of the input */
	if (o->cap - o->len < n)
		out_flush(o);
	if (o->error)
		o->len = 0;
	return o->buf + o->len;
}

void out_mem(struct out *o, const void *data, size_t n)
{
	const char *s = data;

	while (n) {
		size_t part = n < OUT_RESERVE_MAX ? n : OUT_RESERVE_MAX;

		memcpy(out_reserve(o, part), s, part);
		out_commit(o, part);
		s += part;
		n -= part;
	}
}

void out_str(struct out *o, const char *s)
{
	out_mem(o, s, strlen(s));
}

void out_char(struct out *o, char c)
{
	*out_reserve(o, 1) = c;
	out_commit(o, 1);
}

void out_plain(struct out *o, const char *s, size_t n)
{
	while (n) {
		uint32_t code;
		int len = utf8_next(s, n, &code);

		if (len && utf8_is_safe(code))
			out_mem(o, s, (size_t)len);
		else
			out_char(o, '?');
		len = len ? len : 1;
		s += len;
		n -= (size_t)len;
	}
}

void out_double(struct out *o, double v)
{
	char *p = out_reserve(o, PUT_DOUBLE_MAX);

	out_commit(o, (size_t)(put_double(p, v, false) - p));
}

void out_fmt(struct out *o, const char *fmt, ...)
{
	char text[4096];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	out_mem(o, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

int out_columns(const struct out *o)
{
	struct winsize size;

	return o->is_tty && !ioctl(o->fd, TIOCGWINSZ, &size) ? size.ws_col : 0;
}
