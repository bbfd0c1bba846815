/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nvtx.c - brings the object for NVTX 3 (target/nvtx/nvtx.c) into the programs that are traced, so that
 * probes see header-only NVTX. It makes no records: the probes do, beside which this is a source.
 *
 * A program that is started, and what it starts, gets the object by its environment. A process that
 * runs already gets it by injection, if NVTX 3 is a part of its code; it is looked for again while
 * the process maps more.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../wire/nvtx_wire.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "../agent/agent_env.h"
#include "../source.h"
#include "nvtx_find.h"
#include "nvtx_image.h"

#define INJECTION "NVTX_INJECTION64_PATH"
#define ANSWER_MS 5000
#define LOOK_NS 250000000ULL /* how often a process is looked at for more */
#define ENVIRON_MAX (256u << 10)

struct nvtx_process {
	pid_t pid;
	struct target *target; /* NULL: it is gone, or cannot be read */
	struct nvtx_find find;
	int sock;     /* -1: nothing was put into it */
	bool refused; /* it cannot have the object */
	bool fresh;   /* no other tool is named in its environment */
};

struct nvtx_source {
	const struct capture_plan *plan;
	struct agent_env env;
	struct nvtx_process *processes;
	int n;
	uint64_t looked_ns;
	bool stopped;
};

/* ---- a program that is started ---- */

static int nvtx_make_env(struct nvtx_source *s, struct capture_plan *plan)
{
	struct agent_image image;
	char path[300], dir[200];
	const char *theirs = agent_env_value(plan->env, INJECTION);
	int err;

	if (theirs && *theirs) {
		msg_warn(INJECTION " is set already: ranges of NVTX 3 that is a part of the "
				   "program (header-only) go there, and are not shown");
		return 0;
	}
	nvtx_image(&image);
	err = agent_image_path(&image, path, sizeof(path), dir, sizeof(dir));
	if (err)
		return err;
	err = agent_env_add(&s->env, INJECTION "=%s", path);
	return err ? err : agent_env_set(&s->env, plan);
}

/* ---- a process that runs ---- */

/* Does its environment name a tool for NVTX? Then entries of NVTX's table that are not initialised are that tool's. */
static bool names_tool(struct target *t)
{
	char *text = malloc(ENVIRON_MAX);
	ssize_t n = text ? target_proc(t, "environ", text, ENVIRON_MAX) : -ENOMEM;
	bool found = n < 0; /* not known: it is not changed */

	for (ssize_t at = 0; at < n && !found; at += (ssize_t)strlen(text + at) + 1)
		found = !strncmp(text + at, INJECTION "=", strlen(INJECTION) + 1);
	free(text);
	return found;
}

static int inject(struct nvtx_source *s, struct nvtx_process *p)
{
	struct agent_image image;
	int sock;

	nvtx_image(&image);
	sock = agent_image_inject(&image, p->pid, "fd=N", s->plan);
	if (sock < 0)
		return sock;
	p->sock = sock;
	msg_note("process %d: an object was put into it that shows its NVTX ranges to the probes "
		 "(header-only NVTX 3, for --layers nvtx)",
		 (int)p->pid);
	return 0;
}

/* Waits for the answer to the last message. */
static int answer(struct nvtx_process *p, struct nvtx_reported *reported)
{
	struct pollfd fd = { .fd = p->sock, .events = POLLIN };
	int n = poll(&fd, 1, ANSWER_MS);

	if (n <= 0)
		return n ? -errno : -ETIMEDOUT;
	return recv(p->sock, reported, sizeof(*reported), MSG_DONTWAIT) == sizeof(*reported)
		       ? 0
		       : -EPIPE;
}

static int hand_over(struct nvtx_process *p)
{
	uint32_t taken = 0, others = 0;

	for (size_t at = 0; at < p->find.n;) {
		struct nvtx_ask ask = { .fresh = p->fresh };
		struct nvtx_reported reported;
		int err;

		while (ask.n < NVTX_ASK_MAX && at < p->find.n)
			ask.at[ask.n++] = p->find.at[at++];
		if (send(p->sock, &ask, sizeof(ask), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return -errno;
		err = answer(p, &reported);
		if (err)
			return err;
		taken += reported.taken;
		others += reported.others;
	}
	msg_verb("process %d: NVTX 3 in %zu places, %u are shown", (int)p->pid, p->find.n, taken);
	if (others)
		msg_warn("process %d: NVTX 3 in %u places belongs to another tool already: the "
			 "ranges there are not shown",
			 (int)p->pid, others);
	return 0;
}

static void cut_off(struct nvtx_process *p)
{
	if (p->sock >= 0)
		close(p->sock);
	p->sock = -1;
	p->refused = true;
}

static void nvtx_look(struct nvtx_source *s, struct nvtx_process *p)
{
	int err = nvtx_find_new(&p->find, p->target);

	if (err == -ESRCH) {
		cut_off(p);
		return;
	}
	if (err <= 0)
		return;
	if (p->find.cut)
		msg_verb("process %d: not all of its memory could be searched for NVTX 3",
			 (int)p->pid);
	if (!p->find.n)
		return;
	err = p->sock < 0 ? inject(s, p) : 0;
	if (!err)
		err = hand_over(p);
	if (err) {
		cut_off(p);
		if (err != -ESRCH)
			msg_warn("process %d: ranges of NVTX 3 that is a part of the program "
				 "(header-only) are not shown: %s",
				 (int)p->pid, strerror(-err));
	}
}

static int add_process(struct nvtx_source *s, pid_t pid)
{
	struct nvtx_process *p = &s->processes[s->n];
	int err = target_open(&p->target, pid, 0);

	if (err)
		return err == -ENOMEM ? err : 0; /* others say what is wrong with it */
	p->pid = pid;
	p->sock = -1;
	p->fresh = !names_tool(p->target);
	s->n++;
	nvtx_look(s, p);
	return 0;
}

/* ---- the source's functions ---- */

/* Before the probes: a process that runs has the object then, and what is in it is probed with the
 * rest. */
static int nvtx_prepare(struct source *src, struct capture_plan *plan)
{
	struct nvtx_source *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return -ENOMEM;
	src->priv = s;
	s->plan = plan;
	if (plan->cmd)
		return nvtx_make_env(s, plan);
	if (!plan->npids) {
		msg_note("--layers nvtx: NVTX 3 that is a part of a program (header-only) is seen "
			 "only in a program that cudatrace starts, and in processes of -p");
		return 0;
	}
	s->processes = calloc((size_t)plan->npids, sizeof(*s->processes));
	if (!s->processes)
		return -ENOMEM;
	for (int i = 0; i < plan->npids && !err; i++)
		err = add_process(s, plan->pids[i]);
	s->looked_ns = now_ns();
	return err;
}

static int open_source(struct source *src, const struct capture_plan *plan)
{
	((struct nvtx_source *)src->priv)->plan = plan;
	return 0;
}

static int nvtx_start(struct source *src)
{
	(void)src;
	return 0;
}

static int fds(struct source *src, int *fd, int max)
{
	(void)src;
	(void)fd;
	(void)max;
	return 0;
}

static int nvtx_drain(struct source *src, emit_fn emit, void *ctx)
{
	struct nvtx_source *s = src->priv;
	uint64_t now = now_ns();

	(void)emit;
	(void)ctx;
	if (s->stopped)
		return 1;
	if (now - s->looked_ns < LOOK_NS)
		return 0;
	for (int i = 0; i < s->n; i++)
		if (!s->processes[i].refused)
			nvtx_look(s, &s->processes[i]);
	s->looked_ns = now_ns();
	return 0;
}

/* The object in the process puts back what it has changed when the socket is closed. */
static void nvtx_stop(struct source *src)
{
	struct nvtx_source *s = src->priv;

	if (!s || s->stopped)
		return;
	s->stopped = true;
	for (int i = 0; i < s->n; i++)
		cut_off(&s->processes[i]);
}

static void losses(struct source *src, struct losses *l)
{
	(void)src;
	(void)l;
}

static void close_source(struct source *src)
{
	struct nvtx_source *s = src->priv;

	if (!s)
		return;
	nvtx_stop(src);
	for (int i = 0; i < s->n; i++) {
		nvtx_find_free(&s->processes[i].find);
		target_close(s->processes[i].target);
	}
	free(s->processes);
	agent_env_free(&s->env);
	free(s);
	src->priv = NULL;
}

const struct source_ops source_nvtx = {
	.name = "nvtx",
	.prepare = nvtx_prepare,
	.open = open_source,
	.start = nvtx_start,
	.fds = fds,
	.drain = nvtx_drain,
	.stop = nvtx_stop,
	.losses = losses,
	.close = close_source,
};
