/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * descriptor.h - a descriptor in a process that is not ours. The program may close every descriptor that
 * it finds, as a daemon does, and the number may then be a file of the program. So before each use
 * it is checked what the descriptor refers to. This is done by system call, because fstat() has a
 * symbol version in glibc that old systems lack.
 */
#ifndef CT_HELD_H
#define CT_HELD_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct held {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
	mode_t type;
};

static inline bool held_look(int fd, struct stat *st)
{
	return fd >= 0 && !syscall(SYS_fstat, fd, st);
}

static inline void held_take(struct held *h, int fd)
{
	struct stat st;

	*h = (struct held){ .fd = -1 };
	if (held_look(fd, &st))
		*h = (struct held){
			.fd = fd, .dev = st.st_dev, .ino = st.st_ino, .type = st.st_mode & S_IFMT
		};
}

/* Returns the descriptor, or -1 if it is no longer ours. */
static inline int held_fd(const struct held *h)
{
	struct stat st;

	if (!held_look(h->fd, &st) || st.st_dev != h->dev || st.st_ino != h->ino ||
	    (st.st_mode & S_IFMT) != h->type)
		return -1;
	return h->fd;
}

static inline void held_close(struct held *h)
{
	int fd = held_fd(h);

	if (fd >= 0)
		close(fd);
	h->fd = -1;
}

#endif
