/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_child.c - see counters_child.h.
 *
 * The program is executed from a memfd. Where that is forbidden (vm.memfd_noexec, SELinux), from
 * a file without a name, of mode 0700, in the first directory that lets one be executed: nothing
 * stays either way.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/io/child.h"
#include "../../util/self/urgent.h"
#include "../../util/msg.h"
#include "counters_child.h"
#include "../../../wire/counters_wire.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#define BUFFER_BYTES (1 << 20) /* of the socket, as far as the system allows */
/* for an orderly end, then as long again for a kill to be effective */
#define CLOSE_MS 1000

extern char **environ;

/* ---- the file to execute ---- */

static int fill(int fd)
{
	const char *at = counters_image_begin;

	while (at < counters_image_end) {
		ssize_t n = write(fd, at, (size_t)(counters_image_end - at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		at += n;
	}
	return 0;
}

static int image_memory(void)
{
	int fd = memfd_create("cudatrace-counters", MFD_CLOEXEC | MFD_EXEC), err;

	if (fd < 0 && errno == EINVAL) /* before 6.3 */
		fd = memfd_create("cudatrace-counters", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fill(fd);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* A file that is written to cannot be executed: it is opened anew for that. */
static int image_file(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0700), ro = -1, err;
	char path[64];

	if (fd < 0)
		return -errno;
	err = fill(fd);
	if (!err) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ro = open(path, O_RDONLY | O_CLOEXEC);
		err = ro < 0 ? -errno : 0;
	}
	close(fd);
	return err ? err : ro;
}

/* ---- starting ---- */

/* In the child; only what is safe after fork(2). */
static void execute(int image, int sock, char *argv[], pid_t parent)
{
	int null = open("/dev/null", O_RDWR), err;
	sigset_t none;

	/* No signal that is typed at the terminal, and no terminal to write to by mistake. */
	setsid();
	urgent_child(URGENT_NEVER);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN);
	dup2(null, 0);
	dup2(null, 1);
	if (chdir("/")) {
		/* it stays where it is */
	}
	fcntl(sock, F_SETFD, 0);
	syscall(SYS_execveat, image, "", argv, environ, AT_EMPTY_PATH);
	err = errno;
	if (send(sock, &err, sizeof(err), MSG_NOSIGNAL) < 0) {
		/* the parent sees the end of file */
	}
	_exit(127);
}

/* 0 once the program runs. */
static int spawn(struct counters_child *c, int image, char *argv[])
{
	int sv[2], size = BUFFER_BYTES, err = 0;
	struct pollfd p = { .events = POLLIN };
	static char number[16];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return -errno;
	if (setsockopt(sv[1], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(sv[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	snprintf(number, sizeof(number), "%d", sv[1]);
	argv[COUNTERS_ARG_FD] = number;
	{
		pid_t parent = getpid();

		c->pid = fork();
		if (!c->pid)
			execute(image, sv[1], argv, parent);
	}
	if (c->pid < 0)
		err = -errno;
	close(sv[1]);
	if (err) {
		c->pid = 0;
		close(sv[0]);
		return err;
	}
	child_expect(c->pid);
	c->fd = sv[0];
	c->ended = false;
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	/* The first thing to come is a record, or the errno of a failed exec. */
	p.fd = c->fd;
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	if (recv(c->fd, &err, sizeof(err), MSG_PEEK | MSG_TRUNC) == sizeof(err)) {
		counters_child_close(c);
		return -err;
	}
	return 0;
}

static int try_image(struct counters_child *c, int image, char *argv[])
{
	int err;

	if (image < 0)
		return image;
	err = spawn(c, image, argv);
	close(image);
	return err;
}

int counters_child_open(struct counters_child *c, char *argv[])
{
	const char *dirs[] = { getenv("XDG_RUNTIME_DIR"),
			       getenv("TMPDIR"),
			       "/tmp",
			       "/var/tmp",
			       "/dev/shm",
			       getenv("HOME") };
	int err;

	*c = (struct counters_child){ .pidfd = -1, .fd = -1, .ended = true };
	err = try_image(c, image_memory(), argv);
	for (size_t i = 0;
	     i < ARRAY_LEN(dirs) && (err == -EACCES || err == -EPERM || err == -ENOSYS); i++)
		if (dirs[i] && *dirs[i] == '/')
			err = try_image(c, image_file(dirs[i]), argv);
	if (err == -EACCES || err == -EPERM)
		msg_error("the counters' helper may not be executed from memory, nor from a file "
			  "in /tmp: set TMPDIR to a directory that "
			  "is not mounted noexec");
	else if (err == -ENOENT)
		msg_error("the counters' helper cannot be started: this system has no dynamic "
			  "loader of glibc's, or none at its usual "
			  "path");
	else if (err)
		msg_error("the counters' helper cannot be started: %s", strerror(-err));
	return err;
}

/* ---- ending ---- */

void counters_child_stop(struct counters_child *c)
{
	if (c->fd >= 0)
		shutdown(c->fd, SHUT_WR);
}

bool counters_child_wait(struct counters_child *c, int ms)
{
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };

	if (c->ended)
		return true;
	if (ms && c->pidfd >= 0)
		poll(&p, 1, ms);
	c->ended = child_ended(c->pid, &c->status);
	return c->ended;
}

static void end_child(struct counters_child *c)
{
	if (c->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
	else
		kill(c->pid, SIGKILL);
}

void counters_child_close(struct counters_child *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (!c->ended && !counters_child_wait(c, CLOSE_MS)) {
		end_child(c);
		/* A driver that does not release it would block us for ever. */
		if (!counters_child_wait(c, CLOSE_MS))
			msg_warn("the counters' helper (process %d) does not end: it is blocked in "
				 "the driver",
				 (int)c->pid);
	}
	if (c->pidfd >= 0)
		close(c->pidfd);
	c->pidfd = -1;
}
