/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_launch.c - inside the bpf source: a program that is started here is stopped where it, or a child, maps something, until
 * that has its probes. Knows processes and loaders, no record.
 */
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "../util/msg.h"
#include "bpf_inside.h"
#include "bpf_maps.h"
#include "cudatrace.skel.h" /* behind the wire contract, whose structs it holds */

/* Probes _dl_debug_state of the dynamic loaders that the stopped process maps. */
static void watch_ld_so(struct bpf_source *b, pid_t pid)
{
	uint64_t dev, ino, offset;
	int i, fd;

	fd = bpf_maps_open_ld_so(pid, &dev, &ino, &offset);
	if (fd < 0)
		return;
	for (i = 0; i < b->nld_so; i++)
		if (b->ld_so[i].dev == dev && b->ld_so[i].ino == ino)
			goto out;
	if (b->nld_so < BPF_LD_SO_MAX) {
		struct bpf_ld_so *l = &b->ld_so[b->nld_so];
		int err = attach_single(b->kind, bpf_program__fd(b->skel->progs.ct_dl_state), fd, offset, &l->links);

		if (err) {
			msg_warn("the dynamic loader of process %d cannot be watched (%s): the first calls into a library loaded later may be missed",
				 pid, strerror(-err));
			goto out;
		}
		l->dev = dev;
		l->ino = ino;
		b->nld_so++;
	}
out:
	close(fd);
}

static void on_stop(void *ctx, pid_t pid, pid_t tid, bool exec)
{
	struct bpf_source *b = ctx;

	(void)tid;
	if (b->stopped)
		return;
	if (exec)
		watch_ld_so(b, pid);
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

static const struct launch_ops launch_ops = { .on_stop = on_stop, .on_fork = on_fork };

int bpf_launch_open(struct bpf_source *b)
{
	const struct capture_plan *plan = b->plan;
	int err = launch_open(&b->launch, plan->cmd, plan->user, plan->env, &launch_ops, b);

	if (err)
		return err;
	err = bpf_maps_add_pid(b->skel, launch_pid(b->launch), false);
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
	for (int i = 0; i < b->nld_so; i++)
		attach_single_close(&b->ld_so[i].links);
	b->nld_so = 0;
	if (b->launch)
		launch_close(b->launch);
	b->launch = NULL;
}
