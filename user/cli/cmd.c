/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd.c - what the commands share. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "../source/probe/links.h"
#include "../util/io/bounded.h"
#include "../util/msg.h"
#include "../util/refusal.h"

bool cmd_overwrites(const char *in, const char *out)
{
	struct stat a, b;

	in = strcmp(in, "-") ? in : "/dev/stdin";
	if (!out || stat(in, &a) || stat(out, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return false;
	msg_error("%s would be both read and written: give another name for the output", in);
	return true;
}

/* A file without a name, on a disk if one takes it. Returns -1 with errno. */
static int nameless(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? memfd_create("cudatrace-stdin", MFD_CLOEXEC) : fd;
}

/* Returns 0, or -errno. */
static int copy(int from, int to)
{
	static char buf[1 << 16];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf)))) {
		if (n < 0 && errno == EINTR)
			continue;
		for (ssize_t at = 0, put; n > 0 && at < n; at += put) {
			put = write(to, buf + at, (size_t)(n - at));
			if (put < 0 && errno != EINTR)
				return -errno;
			put = put < 0 ? 0 : put;
		}
		if (n < 0)
			return -errno;
	}
	return 0;
}

int cmd_open_stdin(struct request *o)
{
	struct stat st;
	int err = 0;

	if (strcmp(o->file, "-") != 0)
		return 0;
	if (isatty(STDIN_FILENO)) {
		msg_error("standard input is a terminal and no recording: name a FILE, or give one "
			  "as in 'xz -dc a.xz | cudatrace%s -'",
			  command_typed(o->command));
		return -1;
	}
	o->file = "standard input";
	if (!fstat(STDIN_FILENO, &st) && S_ISREG(st.st_mode)) {
		o->file_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		if (o->file_fd < 0)
			err = -errno;
	} else {
		o->file_fd = nameless();
		err = o->file_fd < 0 ? -errno : copy(STDIN_FILENO, o->file_fd);
	}
	if (err)
		msg_error("cannot copy standard input to a temporary file: %s; set TMPDIR to a "
			  "folder that has room for it",
			  strerror(-err));
	return err ? -1 : 0;
}

int cmd_finish(struct out *out)
{
	return out_report(out, out_close(out), "") ? 1 : 0;
}

const char *cmd_refusal(int (*check)(pid_t), pid_t pid, int *err)
{
	const char *why;

	refusal_begin();
	*err = check(pid);
	why = refusal_end();
	return !*err ? NULL : *why ? why : strerror(-*err);
}

void cmd_leave(void)
{
	msg_rest();
	bounded_close();
	/* what the kinds of probes were tried with: an event of tracefs would stay for good */
	links_close_now();
}
