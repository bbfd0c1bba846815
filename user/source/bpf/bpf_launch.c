/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_launch.c - inside the bpf source: a program that is started here is stopped where it, or a
 * child, maps something, until that has its probes. Knows processes, no record.
 */
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../util/msg.h"
#include "bpf_inside.h"
#include "bpf_maps.h"
#include "cudatrace.skel.h" /* behind control.h, whose structs it holds */

static void on_stop(void *ctx, pid_t pid, pid_t tid, bool exec)
{
	struct bpf_source *b = ctx;

	(void)tid;
	if (b->stopped)
		return;
	if (exec)
		bpf_loader_watch(b, pid);
	discover_scan_pid(b->discover, pid);
	bpf_drain_mapped(b, pid);
}

static void on_fork(void *ctx, pid_t parent, pid_t child)
{
	struct bpf_source *b = ctx;

	(void)parent;
	if (!b->stopped)
		discover_add_pid(b->discover, child);
}

/* Something that a call was given is not in memory: its file is opened while the program cannot
 * end or unmap it. */
static bool on_held(void *ctx, pid_t tid)
{
	struct bpf_source *b = ctx;
	__u32 key = (__u32)tid;

	if (bpf_map_delete_elem(bpf_map__fd(b->skel->maps.held_threads), &key))
		return false;
	if (!b->stopped)
		bpf_drain_held(b);
	return true;
}

/* Not before the fork: a child that has the perf events of a trial open would keep its probes on
 * while they are removed (links_tracefs.c). */
static int on_forked(void *ctx)
{
	return bpf_load_all(ctx);
}

static const struct launch_ops launch_ops = {
	.on_forked = on_forked, .on_stop = on_stop, .on_held = on_held, .on_fork = on_fork
};

int bpf_launch_open(struct bpf_source *b)
{
	const struct capture_plan *plan = b->plan;

	return launch_open(&b->launch, plan->cmd, plan->user, plan->env, plan->follow, &launch_ops,
			   b);
}

int bpf_launch_trace(struct bpf_source *b)
{
	int err = bpf_maps_add_pid(b->skel, launch_pid(b->launch), false);

	if (!err)
		err = discover_add_pid(b->discover, launch_pid(b->launch));
	if (err < 0) {
		msg_error("the started program cannot be traced: %s", strerror(-err));
		return err;
	}
	return 0;
}

void bpf_launch_close(struct bpf_source *b)
{
	/* The loaders first: nobody is stopped then when the tracer lets the processes go. */
	bpf_loader_close(b);
	if (b->launch)
		launch_close(b->launch);
	b->launch = NULL;
}
