/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * out.h - a buffered writer: files get large writes, terminals and pipes whole lines at each
 * out_sync().
 *
 * Errors are sticky: after the first failed write everything is discarded, and out_error() gives
 * its -errno. SIGPIPE is expected to be ignored, or to have a handler. Not thread-safe.
 */
#ifndef CT_OUT_H
#define CT_OUT_H

#include "../types.h"

struct out {
	char *buf;
	size_t len, cap;
	int fd;
	int error;  /* -errno of the first failed write; 0: none has failed */
	bool owned; /* out_close() closes fd */
	/* a regular file: no flush at out_sync() while the buffer is small and young */
	bool is_file;
	bool is_tty;
	uint64_t written;   /* bytes that reached fd */
	uint64_t waited_ns; /* in writes */
	uint64_t flushed_ns;
	const char *name; /* name of the output, for messages */
	pid_t command;	  /* the shell that reads what is written; 0: none does */
	int status;	  /* of that shell, as wait(2) has it, once out_close() has said -ECHILD */
	struct out_gzip *gzip;	  /* what is written is compressed; NULL: not */
	struct behind *behind;	  /* a thread writes; NULL: we do */
	const volatile int *stop; /* may be NULL; as out_wait() has it */
};

/* Waits until the descriptor takes PIPE_BUF bytes. `stop` may be NULL; once it is not 0 a reader
 * that takes nothing for a second is an error, -ETIMEDOUT, and more than 1 ends the waiting at
 * once, -ESHUTDOWN. Returns 0 or -errno. */
int out_wait(int fd, const volatile int *stop);

/* Opens `path` (NULL or "-": stdout). append: add to it. Created with 0666 & ~umask. Returns 0
 * or -errno. */
int out_open(struct out *, const char *path, bool append);
/* The same for an open descriptor, which stays the caller's; name is kept by pointer. */
int out_open_fd(struct out *, int fd, const char *name);
/* Opens what -o says: NULL: the descriptor `otherwise`, standard output or standard error; "-":
 * standard output; "|COMMAND": the input of COMMAND, which /bin/sh runs as the user who started
 * this program; else a file, compressed if its name ends in .gz. A pipe in its place gets a reader before this returns;
 * with `otherwise` below 0, as in the midst of a trace, nobody is waited for. The path is kept by pointer.
 * Returns 0, or -errno after one message. */
int out_open_output(struct out *, const char *path, bool append, int otherwise);
/* Whether the value of -o names a command. */
bool out_is_command(const char *path);
/* From this call on, what is written is compressed in gzip's format. If it is appended to a
 * file, gzip reads both as one. Returns 0 or -ENOMEM. */
int out_gzip(struct out *);
/* Whether the name ends in .gz. */
bool out_is_gzip(const char *path);
/* From this call on, a thread writes, and only out_close() waits for the reader, or a writer if
 * BEHIND_MOST bytes wait. Errors are reported later. If there is no thread or no memory, nothing
 * changes. */
void out_behind(struct out *);
/* Whether so much waits that nothing should be added until out_room_fd() is readable (-1: there
 * is no such descriptor); the caller then calls out_room_seen(). */
bool out_full(const struct out *);
int out_room_fd(const struct out *);
void out_room_seen(struct out *);
/* Writes a whole text that is not part of the output, such as a message, after what has been
 * flushed. Only with a thread. Any thread may call this. */
void out_between(struct out *, const char *, size_t n);
/* Returns how many bytes have reached the descriptor so far. */
uint64_t out_written(const struct out *);
/* From this call on, everything is discarded, with this error. */
void out_give_up(struct out *, int err);
/* Flushes and closes, and waits for the end of a command. Returns the sticky error or that of
 * close(2); -ECHILD: the command failed; -EBUSY: it still runs, and `stop` asks not to wait for
 * it. */
int out_close(struct out *);
/* Says what the result of out_close() means to the user. Returns 0 if nothing went wrong, which
 * includes -EPIPE (a reader such as head(1) has seen enough), else the error, after one message.
 * `then`: what a failed write ended, as "; tracing stopped"; "": nothing. */
int out_report(const struct out *, int err, const char *then);

/* Returns room for n more bytes at the end of the buffer (n <= 64 KiB). It is never NULL: after
 * an error the bytes are discarded. */
char *out_reserve(struct out *, size_t n);
static inline void out_commit(struct out *o, size_t n)
{
	o->len += n;
}

void out_mem(struct out *, const void *, size_t n);
void out_str(struct out *, const char *);
void out_char(struct out *, char);
/* Writes n bytes of a name or a path that a terminal may show, with a '?' for each byte that is
 * no glyph there. */
void out_plain(struct out *, const char *, size_t n);
void out_double(struct out *, double); /* in the form of put_double() */
void out_fmt(struct out *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Ends a batch: lines reach terminals and pipes now, and files when the buffer is full or a
 * second old. Returns the sticky error. */
int out_sync(struct out *);
int out_flush(struct out *); /* the same for every kind of output, at once */
/* Returns how many characters a line of the terminal has; 0 if it is no terminal, or if that is
 * not known. */
int out_columns(const struct out *);
static inline int out_error(const struct out *o)
{
	return o->error;
}

/* ---- inside: the command that reads what is written (-o '|COMMAND', out_command.c) ---- */

/*
 * Starts `/bin/sh -c COMMAND` with a pipe as its standard input; what else it inherits are our
 * standard output and standard error. It runs as the user who started this program, whatever
 * privileges an executable with a set-user-ID bit gave us: as root under sudo, as a file of -o
 * belongs to root then. SIGINT and SIGQUIT are ignored in it: one that is typed ends the trace,
 * and the command reads the rest of it. Returns the descriptor to write to, and the process in
 * *pid; or -errno.
 */
int out_command_open(const char *command, pid_t *pid);
/* Waits for the end of the command; `stop` is as in out_wait() and may be NULL. Returns 0: it
 * ended well; -EPIPE: a pipe of its own ended it, whose reader has seen enough; -ECHILD: another
 * signal ended it, or its status is not 0; *status is that of wait(2); -EBUSY: it still runs and
 * `stop` asks not to wait. */
int out_command_wait(pid_t, const volatile int *stop, int *status);

#endif
