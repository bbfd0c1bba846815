/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters.c - see counters.h. The helper does the work (counters/counters_helper.c); this
 * starts it, passes on what it says (counters_inbox), and ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "counters.h"
#include "counters_child.h"
#include "counters_inbox.h"
#include "../../../wire/counters_wire.h"

#define READY_MS 60000	    /* CUDA takes seconds to start where there are many GPUs */
#define MESSAGES_MAX 256    /* of one drain(): the loop has other things to do too */
#define EARLY_MAX (1 << 20) /* bytes of records before all is ready: devices and metrics */

struct counters {
	struct counters_child child;
	char interval[32];
	/* records that came before the start */
	char *early;
	size_t early_len, early_at;
	bool stopped, finished;
	struct counters_inbox in;
};

/* ---- what the helper says ---- */

/* Who waits on the socket shall not be woken for its end again and again. */
static void silence(struct counters *c)
{
	int never = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (never >= 0) {
		dup3(never, c->child.fd, O_CLOEXEC);
		close(never);
	}
}

static void ended_alone(struct counters *c)
{
	char how[64] = "";

	c->finished = true;
	silence(c);
	if (c->in.bye || c->in.failed || c->stopped)
		return;
	if (counters_child_wait(&c->child, 500) && c->child.status != -1) {
		if (WIFSIGNALED(c->child.status))
			snprintf(how, sizeof(how), " (%s)", strsignal(WTERMSIG(c->child.status)));
		else
			snprintf(how, sizeof(how), " with status %d", WEXITSTATUS(c->child.status));
	}
	msg_error("the counters' helper ended%s: no more counters are shown; start cudatrace "
		  "again, with -v for details",
		  how);
	c->in.failed = true;
}

/* The next message. 1: there is one, 0: not yet, -ENODATA: there will be none. */
static int next_message(struct counters *c)
{
	int n = c->finished ? -ENODATA : counters_inbox_next(&c->in, c->child.fd);

	if (n < 0 && !c->finished)
		ended_alone(c);
	return n;
}

/* ---- the source ---- */

static int keep_early(void *ctx, const struct ct_hdr *rec)
{
	struct counters *c = ctx;
	char *more;

	if (c->early_len + rec->size > EARLY_MAX) {
		c->in.lost[CT_LOSS_READ]++;
		return 0;
	}
	more = realloc(c->early, c->early_len + rec->size);
	if (!more)
		return -ENOMEM;
	c->early = more;
	memcpy(c->early + c->early_len, rec, rec->size);
	c->early_len += rec->size;
	return 0;
}

static int open_child(struct counters *c, const char *mode, uint64_t interval_ns,
		      const char *metrics, const char *cupti, const char *chip)
{
	char *argv[COUNTERS_ARGC + 1] = { "cudatrace-counters",
					  NULL,
					  (char *)mode,
					  c->interval,
					  (char *)(metrics ? metrics : ""),
					  (char *)(cupti ? cupti : ""),
					  (char *)(chip ? chip : ""),
					  NULL };

	snprintf(c->interval, sizeof(c->interval), "%llu", (unsigned long long)interval_ns);
	return counters_child_open(&c->child, argv);
}

/* Until the helper is ready, or will never be. */
static int wait_ready(struct counters *c)
{
	struct pollfd p = { .fd = c->child.fd, .events = POLLIN };

	while (!c->in.ready && !c->in.failed) {
		int n = poll(&p, 1, READY_MS), err;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			msg_error("the counters' helper is not ready after %d s: the driver does "
				  "not answer",
				  READY_MS / 1000);
			return -ETIMEDOUT;
		}
		n = next_message(c);
		if (n < 0)
			break;
		err = n ? counters_inbox_records(&c->in, keep_early, c) : 0;
		if (err)
			return err;
	}
	return c->in.ready ? 0 : -ENODEV;
}

static int counters_open(struct source *s, const struct capture_plan *plan)
{
	struct counters *c = calloc(1, sizeof(*c));
	int err;

	s->priv = c;
	c->in.paused = s->paused;
	if (!c) {
		msg_error("no memory");
		return -ENOMEM;
	}
	c->child = (struct counters_child){ .pidfd = -1, .fd = -1, .ended = true };
	c->in.optional = plan->counters_optional;
	err = open_child(c, "sample", plan->counters_interval_ns, plan->counters_metrics,
			 plan->cupti, NULL);
	if (!err)
		err = wait_ready(c);
	if (!err || !c->in.optional)
		return err;
	counters_child_close(&c->child);
	c->child = (struct counters_child){ .pidfd = -1, .fd = -1, .ended = true };
	c->in.failed = c->finished = true;
	return 0;
}

static int counters_start(struct source *s)
{
	struct counters *c = s->priv;

	/* A helper that is gone meanwhile is seen when its socket is read. */
	if (send(c->child.fd, "", 1, MSG_NOSIGNAL) < 0)
		return 0;
	return 0;
}

static int counters_fds(struct source *s, int *fd, int max)
{
	struct counters *c = s->priv;

	if (max < 1 || c->child.fd < 0)
		return 0;
	fd[0] = c->child.fd;
	return 1;
}

static int drain_early(struct counters *c, emit_fn emit, void *ctx)
{
	while (c->early_at < c->early_len && !source_paused(c->in.paused)) {
		const struct ct_hdr *rec = (const struct ct_hdr *)(c->early + c->early_at);
		int err;

		c->early_at += rec->size;
		err = emit(ctx, rec);
		if (err)
			return err;
	}
	return 0;
}

static int counters_drain(struct source *s, emit_fn emit, void *ctx)
{
	struct counters *c = s->priv;
	int err = drain_early(c, emit, ctx);

	for (int i = 0; !err && i < MESSAGES_MAX; i++) {
		err = counters_inbox_records(&c->in, emit, ctx);
		if (err || source_paused(c->in.paused))
			break;
		err = next_message(c);
		if (err == -ENODATA)
			return 1;
		if (err <= 0)
			break;
		err = 0;
	}
	return err;
}

static void counters_stop(struct source *s)
{
	struct counters *c = s->priv;

	c->stopped = true;
	counters_child_stop(&c->child);
}

static void counters_losses(struct source *s, struct losses *l)
{
	struct counters *c = s->priv;

	for (int i = 0; i < CT_LOSS_END; i++)
		losses_add(&l->lost[i], c->in.lost[i]);
	l->lost[CT_LOSS_READ] += c->in.malformed;
	l->sent += c->in.received;
}

static void counters_close(struct source *s)
{
	struct counters *c = s->priv;

	if (!c)
		return;
	counters_child_close(&c->child);
	free(c->early);
	free(c);
	s->priv = NULL;
}

bool counters_failed(const struct source *s)
{
	const struct counters *c = s->priv;

	return !c || c->in.failed;
}

const struct source_ops source_counters = {
	.name = "counters",
	.open = counters_open,
	.start = counters_start,
	.fds = counters_fds,
	.drain = counters_drain,
	.stop = counters_stop,
	.losses = counters_losses,
	.close = counters_close,
	.endless = CT_HOLE_COUNTERS,
};

/* ---- help ---- */

int counters_help(const char *cupti, const char *chip, void (*line)(void *, const char *, size_t),
		  void *ctx)
{
	struct source s = { .ops = &source_counters };
	struct counters *c = calloc(1, sizeof(*c));
	int err;

	if (!c) {
		msg_error("no memory");
		return -ENOMEM;
	}
	s.priv = c;
	c->in.line = line;
	c->in.line_ctx = ctx;
	err = open_child(c, "help", COUNTERS_INTERVAL_MIN_NS, NULL, cupti, chip);
	if (!err) {
		err = wait_ready(c); /* reads until the end: help is never ready */
		if (err == -ENODEV)
			err = c->in.failed ? -ENODEV : 0;
	}
	counters_close(&s);
	return err;
}
