/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shots.h - for the tests of stacks: builds tests/unit/prog/stacks.c in several ways, runs it,
 * takes the raw stacks that it hands out and makes the kernel side's records of them.
 */
#ifndef CT_SHOTS_H
#define CT_SHOTS_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/util/types.h"
#include "../../wire/cudatrace.h"
#include "prog/stacks.h"
#include "unit.h"

static char shots_dir[] = "/tmp/test_stacks.XXXXXX";

struct shots {
	pid_t pid;
	int in, out; /* its stdin and stdout */
};

/* Builds one way; false: this compiler or library is not there. */
static inline bool shots_build(const char *name, const char *command)
{
	char cmd[1024];

	snprintf(cmd, sizeof(cmd), "out=%s/%s; src=tests/unit/prog; { %s; } 2>%s/%s.err", shots_dir,
		 name, command, shots_dir, name);
	return system(cmd) == 0;
}

static inline struct shots shots_start(const char *name, const char *shape, int n, int limit)
{
	struct shots s = { 0 };
	char path[64], depth[16], bytes[16];
	int in[2], out[2];

	snprintf(path, sizeof(path), "%s/%s", shots_dir, name);
	snprintf(depth, sizeof(depth), "%d", n);
	snprintf(bytes, sizeof(bytes), "%d", limit);
	if (pipe(in) || pipe(out))
		abort();
	s.pid = fork();
	if (!s.pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		execl(path, path, shape, depth, bytes, (char *)NULL);
		_exit(9);
	}
	close(in[0]);
	close(out[1]);
	s.in = in[1];
	s.out = out[0];
	return s;
}

/* The next stack; the program waits inside shoot() then. False: it has ended. */
static inline bool shots_next(struct shots *s, struct shot *shot)
{
	size_t have = 0;

	while (have < sizeof(*shot)) {
		ssize_t n = read(s->out, (char *)shot + have, sizeof(*shot) - have);

		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

static inline void shots_go(struct shots *s)
{
	CHECK(write(s->in, "", 1) == 1);
}

static inline void shots_end(struct shots *s)
{
	close(s->in);
	close(s->out);
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
}

/* The record that the kernel side would make. The buffer has room for the largest. */
static inline struct ct_user_stack *shots_record(const struct shot *shot, pid_t pid,
						 uint64_t start_ns, void *buf)
{
	struct ct_user_stack *us = buf;

	memset(us, 0, sizeof(*us));
	us->h.kind = CT_USER_STACK;
	us->h.pid = us->h.tid = (uint32_t)pid;
	us->h.start_ns = us->h.end_ns = start_ns;
	us->ip = shot->regs[0];
	us->sp = shot->regs[1];
	us->bp = shot->regs[2];
	memcpy(us->regs, &shot->regs[3], 5 * sizeof(uint64_t));
	us->len = (uint32_t)shot->len;
	us->cut = (uint8_t)shot->cut;
	us->h.size = (uint16_t)(sizeof(*us) + shot->len);
	memcpy(us->bytes, shot->bytes, shot->len);
	return us;
}

#define SHOTS_RECORD_MAX (sizeof(struct ct_user_stack) + SHOT_MAX)

#endif
