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
	int error;  /* -errno of the first failed write; 0 */
	bool owned; /* out_close() closes fd */
	/* a regular file: no flush at out_sync() while the buffer is small and young */
	bool is_file;
	bool is_tty;
	uint64_t written;   /* bytes that reached fd */
	uint64_t waited_ns; /* in writes */
	uint64_t flushed_ns;
	const char *name; /* for messages */
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
/* Does -o name a command? */
bool out_is_command(const char *path);
/* From here on what is written is compressed, as gzip does it; added to a file it is read as one
 * with what is there. Returns 0 or -ENOMEM. */
int out_gzip(struct out *);
/* Does the name end in .gz? */
bool out_is_gzip(const char *path);
/* From here on a thread writes, and nobody waits for the reader but out_close(), or if BEHIND_MOST bytes
 * wait. Errors come later. Without a thread or memory it stays as it is. */
void out_behind(struct out *);
/* So much waits that nothing should be added until out_room_fd() is readable (-1: there is none), of
 * which out_room_seen() is told. */
bool out_full(const struct out *);
int out_room_fd(const struct out *);
void out_room_seen(struct out *);
/* A whole text that is no part of what is written, as a message: behind what has been flushed. Only with
 * a thread. Any thread may call this. */
void out_between(struct out *, const char *, size_t n);
/* Bytes that have reached the descriptor so far. */
uint64_t out_written(const struct out *);
/* From here on everything is discarded, with this error. */
void out_give_up(struct out *, int err);
/* Flushes and closes; a command is waited for. Returns the sticky error or that of close(2);
 * -ECHILD: the command failed; -EBUSY: it still runs, and `stop` asks not to wait for it. */
int out_close(struct out *);
/* What the result of out_close() means to the user: 0 if nothing went wrong, also for -EPIPE: a
 * reader that has seen enough, as head(1) has; else the error, after one message. `then`: what a
 * failed write ended, as "; tracing stopped"; "": nothing. */
int out_report(const struct out *, int err, const char *then);

/* Room for n more bytes at the end of the buffer (n <= 64 KiB); never NULL: after an error the
 * bytes go nowhere. */
char *out_reserve(struct out *, size_t n);
static inline void out_commit(struct out *o, size_t n)
{
	o->len += n;
}

void out_mem(struct out *, const void *, size_t n);
void out_str(struct out *, const char *);
void out_char(struct out *, char);
/* n bytes of a name or a path that a terminal may come to show: a '?' for what is no glyph there. */
void out_plain(struct out *, const char *, size_t n);
void out_double(struct out *, double); /* as put_double() writes it */
void out_fmt(struct out *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* End of a batch: lines reach terminals and pipes now, files when the buffer is full or a second
 * old. Returns the sticky error. */
int out_sync(struct out *);
int out_flush(struct out *); /* now, in any case */
/* How many characters a line of the terminal has; 0: it is none, or that is not known. */
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
/* Waits for its end; `stop` as out_wait() has it, may be NULL. 0: it ended well; -EPIPE: by a pipe of
 * its own, whose reader has seen enough; -ECHILD: by another signal or with a status that is not
 * 0, which is in *status, as wait(2) has it; -EBUSY: it still runs and `stop` says not to wait. */
int out_command_wait(pid_t, const volatile int *stop, int *status);

#endif
