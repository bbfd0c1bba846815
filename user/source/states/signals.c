/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signals.c - the source of signals that end processes (CT_SIGNAL): it hands out the records of bpf/signals.bpf.c. On a
 * kernel that cannot tell of them the trace goes on without.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../util/msg.h"
#include "../bpf/bpf_maps.h"
#include "../bpf/ring.h"
#include "../source.h"
#include "signals.skel.h"

#define BYTES (1 << 16) /* of records that are taken at once */

struct signals {
	struct signals_bpf *skel; /* NULL: the kernel cannot tell */
	struct ring ring;
	size_t len, at; /* of what was taken */
	uint64_t received, malformed;
	bool stopped;
	char bytes[BYTES] __attribute__((aligned(8)));
};

static int want(struct signals *s, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	uint8_t value = 1;

	return bpf_map_update_elem(bpf_map__fd(s->skel->maps.signals_wanted), &key, &value, BPF_ANY)
		       ? -errno
		       : 0;
}

static int load(struct signals *s, const struct capture_plan *plan)
{
	struct stat st;
	int err;

	s->skel = signals_bpf__open();
	if (!s->skel)
		return -errno;
	s->skel->rodata->ns_inum = stat("/proc/self/ns/pid", &st) ? 0 : (uint32_t)st.st_ino;
	s->skel->rodata->our_pid = (uint32_t)getpid();
	s->skel->rodata->every = !plan->npids && plan->program <= 0;
	s->skel->rodata->follow = plan->follow;
	err = signals_bpf__load(s->skel);
	for (int i = 0; !err && i < plan->npids; i++)
		err = want(s, bpf_maps_tgid(plan->pids[i]) > 0 ? bpf_maps_tgid(plan->pids[i])
							       : plan->pids[i]);
	if (!err && plan->program > 0)
		err = want(s, plan->program);
	return err ? err
		   : ring_open(&s->ring, bpf_map__fd(s->skel->maps.signals),
			       bpf_map__max_entries(s->skel->maps.signals));
}

static void unload(struct signals *s)
{
	if (!s->skel)
		return;
	ring_close(&s->ring);
	signals_bpf__destroy(s->skel);
	s->skel = NULL;
}

static int without(struct signals *s, int err)
{
	unload(s);
	msg_warn("which signals end processes cannot be seen (%s): hangs are found all the same",
		 strerror(-err));
	return 0;
}

static int signals_open(struct source *src, const struct capture_plan *plan)
{
	struct signals *s = calloc(1, sizeof(*s));
	int err;

	src->priv = s;
	if (!s) {
		msg_error("no memory");
		return -ENOMEM;
	}
	err = load(s, plan);
	return err ? without(s, err) : 0;
}

static int signals_start(struct source *src)
{
	struct signals *s = src->priv;
	int err = s->skel ? signals_bpf__attach(s->skel) : 0;

	return err ? without(s, err) : 0;
}

static int signals_fds(struct source *src, int *fd, int max)
{
	const struct signals *s = src->priv;

	if (!s->skel || max < 1)
		return 0;
	*fd = s->ring.map_fd;
	return 1;
}

static int signals_drain(struct source *src, emit_fn emit, void *ctx)
{
	struct signals *s = src->priv;

	while (s->skel && !source_paused(src->paused)) {
		const struct ct_hdr *h = (const void *)(s->bytes + s->at + sizeof(uint64_t));
		uint64_t size;
		int err;

		if (s->at == s->len) {
			s->at = 0;
			s->len = ring_take(&s->ring, s->bytes, sizeof(s->bytes));
			if (!s->len)
				return s->stopped;
			continue;
		}
		memcpy(&size, s->bytes + s->at, sizeof(size));
		s->at += RING_TAKEN(size);
		if (record_check(h, size)) {
			s->malformed++;
			continue;
		}
		s->received++;
		err = emit(ctx, h);
		if (err)
			return err;
	}
	return !s->skel && s->stopped;
}

static void signals_stop(struct source *src)
{
	struct signals *s = src->priv;

	if (s->skel)
		signals_bpf__detach(s->skel);
	s->stopped = true;
}

static void signals_losses(struct source *src, struct losses *l)
{
	const struct signals *s = src->priv;

	l->sent += s->received;
	l->lost[CT_LOSS_READ] += s->malformed;
	if (s->skel)
		l->lost[CT_LOSS_RING] += s->skel->bss->signals_lost;
}

static void signals_close(struct source *src)
{
	struct signals *s = src->priv;

	if (!s)
		return;
	unload(s);
	free(s);
	src->priv = NULL;
}

const struct source_ops source_signals = {
	.name = "signals",
	.open = signals_open,
	.start = signals_start,
	.fds = signals_fds,
	.drain = signals_drain,
	.stop = signals_stop,
	.losses = signals_losses,
	.close = signals_close,
};
