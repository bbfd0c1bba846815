/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_unprobed.c - inside the bpf source: processes that mapped a file before it had its probes.
 * Those that waited for the probes, in the kernel side (bpf/hold.bpf.h) or stopped by their
 * tracer (launch.h), missed nothing; of the others a record is made.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../util/now.h"
#include "bpf_inside.h"
#include "bpf_maps.h"
#include "../host.h"
#include "cudatrace.skel.h" /* behind control.h, whose structs it holds */

#define QUEUE_MAX 4096 /* records that wait for a drain; more processes are counted in the last */
#define REPORTED 8192  /* processes that were told of: a cache, not a set */

struct bpf_unprobed {
	struct ct_unprobed queue[QUEUE_MAX];
	int n;
	struct {
		pid_t pid;
		uint64_t since_ns; /* of what it ran */
	} reported[REPORTED];
};

/* A process that has ended has no memory, though its parent may not have asked for its status yet. */
static bool has_ended(pid_t pid)
{
	char status[4096];

	return host_status(pid, status, sizeof(status)) || !host_status_line(status, "VmSize");
}

static void read_comm(pid_t pid, char *comm)
{
	struct host_task t;

	if (!host_task(pid, &t))
		snprintf(comm, CT_COMM_LEN, "%s", t.comm);
}

/* Did its thread wait until what it had mapped at from_ns was probed? */
static bool has_waited(struct bpf_source *b, pid_t pid, uint64_t from_ns)
{
	__u32 tgid = bpf_maps_initial_pid(b->skel, pid);
	struct ct_load load;

	if (!b->skel->rodata->config.hold)
		return false;
	if (!tgid || bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.loads), &tgid, &load))
		memset(&load, 0, sizeof(load));
	if (load.waiting_ns > from_ns || load.waited_ns > from_ns)
		return true;
	if (load.passed_ns > from_ns)
		return false;
	/* the loader is at work yet, and its next step will be seen */
	return bpf_loader_watches(b, pid, from_ns);
}

/* Did a thread of a process that was started here go on before what it had mapped was looked at? */
static bool has_passed(struct bpf_source *b, pid_t pid, uint64_t from_ns)
{
	__u32 tgid = bpf_maps_initial_pid(b->skel, pid);
	struct ct_load load;

	return tgid && !bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.loads), &tgid, &load) &&
	       load.passed_ns > from_ns;
}

/* With -p, or where a program that was started uses ptrace itself: is it one of those, or of their children? */
static bool is_traced(struct bpf_source *b, pid_t pid)
{
	__u32 tgid, one;
	struct ct_load load;

	if (!b->skel->rodata->config.filter_pids)
		return true;
	tgid = bpf_maps_initial_pid(b->skel, pid);
	return tgid && (!bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.pids), &tgid, &one) ||
			!bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.loads), &tgid, &load));
}

static bool was_reported(struct bpf_unprobed *u, pid_t pid, uint64_t since_ns)
{
	unsigned int at = (unsigned int)pid % REPORTED;
	bool was = u->reported[at].pid == pid && u->reported[at].since_ns == since_ns;

	u->reported[at].pid = pid;
	u->reported[at].since_ns = since_ns;
	return was;
}

static void push(struct bpf_unprobed *u, const struct ct_unprobed *r)
{
	struct ct_unprobed *last = &u->queue[QUEUE_MAX - 1];

	if (u->n < QUEUE_MAX) {
		u->queue[u->n++] = *r;
		return;
	}
	last->processes += r->processes;
	last->ended += r->ended;
	last->more |= r->more;
}

static void late(void *ctx, pid_t pid, uint64_t from_ns, uint64_t to_ns)
{
	struct bpf_source *b = ctx;
	struct ct_unprobed r = { .h = { .size = sizeof(r),
					.kind = CT_UNPROBED,
					.start_ns = from_ns,
					.end_ns = to_ns },
				 .ns_pid = (__u32)pid,
				 .processes = 1 };
	struct ct_image image = { 0 };

	if (b->launch && !b->loose
		    ? !bpf_loader_fails(b, pid) && !has_passed(b, pid, from_ns)
		    : pid && (!is_traced(b, pid) || (!(b->launch && bpf_loader_fails(b, pid)) &&
						     has_waited(b, pid, from_ns))))
		return;
	if (!pid) {
		r.h.end_ns = from_ns; /* of nobody */
		r.processes = 0;
		r.more = 1;
		push(b->unprobed, &r);
		return;
	}
	if (!bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.images), &r.ns_pid, &image) &&
	    image.outside)
		return;
	r.ended = image.ended_ns ? image.ended_ns < to_ns : has_ended(pid);
	memcpy(r.comm, image.comm, sizeof(r.comm));
	r.comm[sizeof(r.comm) - 1] = 0;
	if (!image.ended_ns && !r.ended)
		read_comm(pid, r.comm);
	if (was_reported(b->unprobed, pid, image.since_ns)) {
		/* when it ended is not known to lie within */
		if (r.ended)
			return;
		r.processes = 0;
	}
	push(b->unprobed, &r);
}

int bpf_unprobed_open(struct bpf_source *b)
{
	/* where threads are does not depend on what they called before */
	if (b->plan->threads)
		return 0;
	b->unprobed = calloc(1, sizeof(*b->unprobed));
	if (!b->unprobed)
		return -ENOMEM;
	discover_on_unprobed(b->discover, late);
	return 0;
}

int bpf_unprobed_emit(struct bpf_source *b, emit_fn emit, void *ctx)
{
	struct bpf_unprobed *u = b->unprobed;
	int err = 0, i;

	for (i = 0; u && i < u->n && !err; i++)
		err = emit(ctx, &u->queue[i].h);
	if (i && i < u->n)
		memmove(u->queue, u->queue + i, (size_t)(u->n - i) * sizeof(u->queue[0]));
	if (u)
		u->n -= i;
	return err;
}

void bpf_unprobed_close(struct bpf_source *b)
{
	free(b->unprobed);
	b->unprobed = NULL;
}
