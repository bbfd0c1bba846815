/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf.c - the source of calls: its operations, each made of what its parts do: bpf_load.c (the
 * kernel side), bpf_probe.c (whom, and where), bpf_loader.c (dynamic loaders), bpf_launch.c (a
 * program that is started here), bpf_drain.c (records), bpf_maps.c.
 *
 * Order of events: choose the kind of probe, load, tell the kernel whom to trace, watch
 * processes begin and end, find and attach what is mapped, and only then begin CT_PHASE_RUNNING,
 * so that all functions begin to be seen at the same moment. A program that is started here
 * waits before its execve(2) until then.
 */
#include <errno.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

#include "../../util/msg.h"
#include "../../util/now.h"
#include "bpf.h"
#include "bpf_inside.h"
#include "../probe/priv.h"
#include "snapshot.h"
#include "cudatrace.skel.h" /* behind control.h, whose structs it holds */

/* Files with a runtime whose functions were not found: more are not stated. */
#define STRIPPED_FILES 256
#define STRIPPED_BYTES (64u << 10)

int bpf_load_all(struct bpf_source *b)
{
	int err = bpf_load_kind(b);

	if (err)
		return err;
	/* Only where tracefs is used at all: its locks are the whole machine's. */
	if (b->kind == ATTACH_TRACEFS)
		attach_sweep_stale();
	bpf_probe_links(b);
	if (b->plan->apart && !b->per_process)
		return -EOPNOTSUPP;
	err = bpf_load(b);
	if (!err)
		priv_drop(b->kind, b->plan);
	return err;
}

static int source_open(struct source *s, const struct capture_plan *plan)
{
	struct bpf_source *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	s->priv = b;
	b->paused = s->paused;
	b->full = s->full;
	b->plan = plan;
	err = strings_init(&b->stripped, STRIPPED_BYTES, STRIPPED_FILES);
	if (!err)
		err = bpf_probe_pids(b);
	/* The program is forked first, with the privileges that it is to have. */
	if (!err)
		err = plan->cmd ? bpf_launch_open(b) : bpf_load_all(b);
	if (!err && plan->loaded)
		err = plan->loaded(plan->loaded_ctx);
	if (!err)
		err = bpf_drain_open(b);
	if (!err)
		err = bpf_loader_open(b);
	if (!err)
		err = bpf_probe_open(b);
	if (!err)
		err = bpf_unprobed_open(b);
	if (!err && plan->cmd)
		err = bpf_launch_trace(b);
	/* It raises the limit of descriptors. Not before the fork: the program keeps the limits
	 * that it was given. */
	return err ? err : bpf_probe_scan(b);
}

static int source_start(struct source *s)
{
	struct bpf_source *b = s->priv;

	discover_begin(b->discover, clock_ns(CLOCK_MONOTONIC));
	b->skel->bss->phase = CT_PHASE_RUNNING;
	if (b->call_counts)
		call_counts_begin(b->call_counts, clock_ns(CLOCK_MONOTONIC));
	if (!b->plan->apart) /* others say so */
		msg_verb("ready");
	return b->launch ? launch_start(b->launch) : 0;
}

static int source_fds(struct source *s, int *fd, int max)
{
	struct bpf_source *b = s->priv;
	int n = 0;

	if (max > 0)
		fd[n++] = b->ring.map_fd;
	if (n < max && b->looks.map_fd)
		fd[n++] = b->looks.map_fd;
	if (max > n && bpf_muted_fd(b) >= 0)
		fd[n++] = bpf_muted_fd(b);
	return n + discover_fds(b->discover, fd + n, max - n);
}

static int source_drain(struct source *s, emit_fn emit, void *ctx)
{
	return bpf_drain(s->priv, emit, ctx);
}

static uint64_t source_complete(struct source *s)
{
	return ((struct bpf_source *)s->priv)->complete_ns;
}

static int source_pending(struct source *s, uint64_t min_age_ns, emit_fn emit, void *ctx)
{
	return bpf_drain_pending(s->priv, min_age_ns, emit, ctx);
}

static int source_probe(struct source *s, const uint64_t *funcs)
{
	struct bpf_source *b = s->priv;
	int err = attach_demanded(b->attach, funcs), links, functions;

	attach_totals(b->attach, &links, &functions);
	msg_verb("%d functions that threads are inside of probed by %d %s links", functions, links,
		 attach_kind_name(b->kind));
	/* a call of them may have begun while the probes were placed */
	b->skel->data->reach_round++;
	return err;
}

static int source_threads(struct source *s, struct snapshot *snap)
{
	struct bpf_source *b = s->priv;
	struct snapshot_from from = {
		.threads_fd = bpf_program__fd(b->skel->progs.ct_threads),
		.maps_fd = bpf_program__fd(b->skel->progs.ct_maps),
		.pids = b->pids,
		.npids = b->npids,
	};
	struct probe_file **files;

	from.nfiles = discover_files(b->discover, &files);
	from.files = files;
	return snapshot_take(snap, &from);
}

static int source_call_counts(struct source *s, emit_fn emit, void *ctx)
{
	return bpf_drain_call_counts(s->priv, emit, ctx);
}

static void source_losses(struct source *s, struct losses *l)
{
	bpf_drain_losses(s->priv, l);
}

static int source_status(struct source *s)
{
	struct bpf_source *b = s->priv;

	return b->launch && b->launch_ended ? launch_status(b->launch) : -1;
}

static pid_t source_program(struct source *s)
{
	struct bpf_source *b = s->priv;

	return b->launch ? launch_pid(b->launch) : 0;
}

static void source_signal(struct source *s, int sig)
{
	struct bpf_source *b = s->priv;

	if (b->launch)
		launch_signal(b->launch, sig);
}

static uint64_t source_stopped(struct source *s)
{
	return ((struct bpf_source *)s->priv)->stopped_ns;
}

static void source_count_by(struct source *s, uint8_t by)
{
	struct bpf_source *b = s->priv;

	b->skel->bss->count_by_now = by;
}

static void source_nested(struct source *s, bool on)
{
	((struct bpf_source *)s->priv)->skel->bss->want_nested = on;
}

static bool source_recent(struct source *s, uint64_t ino, char *name, size_t size)
{
	struct bpf_source *b = s->priv;

	return b->discover && !b->stopped && discover_recent(b->discover, ino, name, size);
}

static uint64_t source_forgets(struct source *s)
{
	return ((struct bpf_source *)s->priv)->skel->bss->forgets;
}

static const char *const *source_muted(struct source *s)
{
	return ((struct bpf_source *)s->priv)->muted;
}

static void source_stop(struct source *s)
{
	struct bpf_source *b = s->priv;

	if (!b || b->stopped)
		return;
	if (b->discover)
		discover_end(b->discover, clock_ns(CLOCK_MONOTONIC));
	b->stopped = true;
	bpf_muted_stop(b);
	if (b->skel && b->skel->bss)
		bpf_drain_last(b);
	bpf_launch_close(b);
	attach_stop(b->attach);
}

/* A program of the kernel side may have been interrupted before it sent its record. */
static void source_ended(struct source *s)
{
	struct bpf_source *b = s->priv;

	attach_close(b->attach);
	b->attach = NULL;
}

static void source_close(struct source *s)
{
	struct bpf_source *b = s->priv;

	if (!b)
		return;
	source_stop(s);
	source_ended(s);
	discover_close(b->discover);
	bpf_drain_close(b);
	cudatrace_bpf__destroy(b->skel);
	bpf_muted_close(b);
	bpf_unprobed_close(b);
	pythons_close(b->pythons);
	strings_free(&b->stripped);
	free(b->pids);
	free(b);
	s->priv = NULL;
}

int bpf_take(struct source *s, pid_t pid)
{
	return bpf_probe_take(s->priv, pid);
}

const struct source_ops source_bpf = {
	.name = "bpf",
	.open = source_open,
	.start = source_start,
	.fds = source_fds,
	.drain = source_drain,
	.complete = source_complete,
	.stop = source_stop,
	.ended = source_ended,
	.losses = source_losses,
	.status = source_status,
	.stopped = source_stopped,
	.program = source_program,
	.signal = source_signal,
	.pending = source_pending,
	.threads = source_threads,
	.probe = source_probe,
	.call_counts = source_call_counts,
	.count_by = source_count_by,
	.nested = source_nested,
	.forgets = source_forgets,
	.recent = source_recent,
	.muted = source_muted,
	.close = source_close,
};
