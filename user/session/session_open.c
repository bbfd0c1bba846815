/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_open.c - inside the session: opens what the request asks for: the window, the plan, the
 * output, the stages, the loop, the sources and the sinks, in that order. Nothing runs before all
 * of them are open.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../wire/agent_wire.h"
#include "session_inside.h"
#include "signals.h"
#include "../resolve/stacks/object.h"
#include "../source/cgroup.h"
#include "../util/io/confine.h"
#include "../util/self/urgent.h"
#include "../util/msg.h"

/* A trace of a small program by each way takes less (tests/cases/machine.sh). */
#define MEMORY_LEAST (64u << 20)

static bool recent(void *ctx, uint64_t ino, char *name, size_t size)
{
	struct session *s = ctx;

	return session_first(s)->ops->recent(session_first(s), ino, name, size);
}

static uint64_t count_forgets(void *ctx)
{
	struct session *s = ctx;

	return session_first(s)->ops->forgets(session_first(s));
}

/* Files for other programs, and data that is pushed to them, describe a process by more than its
 * name; --compact takes the name from the command line. */
static bool wants_info(const struct request *o)
{
	return !o->replay && (o->spans.url || o->look.compact ||
			      (o->format->flags & SINKS_EXPORT &&
			       !(o->format->flags & (SINKS_ROWS | SINKS_FOLDS))));
}

static int open_stages(struct session *s)
{
	struct resolve_opts opts = {
		/* a stored trace was resolved when it was recorded */
		.names = s->plan.names && !s->o->replay,
		.stacks = (s->plan.capture.stack != PLAN_STACK_NONE || s->plan.capture.host) &&
			  !s->o->replay,
		.info = s->o->record ||
			((wants_info(s->o) || s->o->format->flags & SINKS_INFO) && !s->o->replay),
		.absent = !s->o->replay,
		.impatient = !s->plan.capture.npids && !s->plan.capture.cmd,
		/* only entry probes report the outer launch before the nested one */
		.nested = session_first(s)->ops->nested && !s->o->no_return,
		.recent = session_first(s)->ops->recent ? recent : NULL,
		.forgets = session_first(s)->ops->forgets ? count_forgets : NULL,
		.forgets_ctx = s,
	};
	int err;

	s->stages.window = s->window;
	s->stages.no_entries = s->o->replay && !s->o->look.enter_exit && !s->o->export;
	s->stages.no_stacks = s->o->replay && !s->plan.capture.stack;
	err = stages_open(&s->stages, &opts,
			  s->o->look.nested && !s->o->look.enter_exit && !s->o->record,
			  &s->plan.filter, s->sinks,
			  s->o->format->flags & SINKS_LIVE ? 0 : s->o->count);
	if (!err && s->plan.capture.count)
		process_table_keep_ended(world_processes(s->stages.world));
	return err;
}

static int open_sources(struct session *s)
{
	int err = 0;

	if ((s->plan.capture.device.kinds || s->plan.capture.calls_by_agent ||
	     s->o->source == REQUEST_SOURCE_HOOKS || s->o->source == REQUEST_SOURCE_AUTO ||
	     s->plan.capture.inlined) &&
	    s->plan.capture.npids)
		s->frames = inject_frames_open();
	if (s->frames) {
		s->plan.capture.frames = inject_frames_get;
		s->plan.capture.frames_ctx = s->frames;
	}

	for (int i = 0; i < s->nsources && !err; i++)
		if (s->sources[i].ops->prepare)
			err = s->sources[i].ops->prepare(&s->sources[i], &s->plan.capture);
	for (; s->nopened < s->nsources && !err; s->nopened++) {
		struct source *src = &s->sources[s->nopened];

		err = src->ops->open(src, &s->plan.capture);
		if (!err && src->ops->program && s->plan.capture.cmd && !s->nopened)
			s->plan.capture.program = src->ops->program(src);
	}
	return err;
}

/* Tells join whether it may trust what the calls say about devices and contexts. It may if every
 * call that changes them is captured. */
static void tell_join(struct session *s)
{
	const uint32_t work = AGENT_KERNEL | AGENT_MEMCPY | AGENT_MEMSET;
	bool places = session_plan_places(s->o);
	struct source_recorded was = { .whole = false };

	if (s->o->replay) {
		session_first(s)->ops->recorded(session_first(s), &was);
		places = was.places;
		join_stored(s->stages.join);
	}
	if (places)
		join_places(s->stages.join);
	/* no call is missed only for a program that was started here, and for its children; a trace
	 * that begins later lacks some calls */
	if (s->o->replay ? was.whole && !s->plan.capture.from_ns : s->o->cmd != NULL)
		join_whole(s->stages.join);
	if ((s->plan.capture.device.kinds & work) == work)
		join_kernels(s->stages.join);
	if (s->plan.layers && !s->o->replay)
		join_scoped(s->stages.join);
	if (s->plan.capture.count || s->o->select.none)
		join_no_calls(s->stages.join);
}

/* Warns of too small a limit: the kernel kills a process above it, which then cannot say why it ended. */
static void tell_memory(const struct session *s)
{
	uint64_t memory = cgroup_memory_here();

	if (memory < MEMORY_LEAST && !s->o->replay)
		msg_warn("cudatrace may take only %llu MiB of memory here (the limit of its "
			 "cgroup): it needs %u MiB, and the kernel may kill it; raise the limit",
			 (unsigned long long)(memory >> 20), MEMORY_LEAST >> 20);
}

int session_open(struct session *s)
{
	int err;

	s->wants = request_wants(s->o);
	err = window_open(&s->window, &s->o->window);
	if (!err)
		err = session_plan(&s->plan, s->o, s->window);
	if (!err)
		err = session_sinks_output(s);
	if (err)
		return err;
	s->out.stop = &signals_pending;
	objects_memory(cgroup_memory_here());
	tell_memory(s);
	err = open_stages(s) ? -ENOMEM : session_loop_open(s);
	if (err == -EMFILE)
		msg_error(
			"tracing needs more open files than this shell allows: raise `ulimit -n`");
	else if (err)
		msg_error("tracing cannot be started: %s", strerror(-err));
	if (err)
		return err;
	/* from here on a recording is read, which may be hostile; the command of -o already runs */
	if (s->o->replay)
		confine((s->plan.capture.opens_files ? CONFINE_FILES : 0) |
			(s->o->spans.url ? CONFINE_NETWORK : 0));
	/* Programs that run may take all processors, and threads of them stand still for us. */
	if (!s->o->replay && !s->o->cmd)
		urgent_begin();
	err = open_sources(s);
	if (err)
		return err;
	if (s->o->replay && !s->plan.capture.opens_files)
		confine_drop();
	tell_join(s);
	err = session_sinks_open(s);
	snprintf(s->reading, sizeof(s->reading), "reading %s", s->o->replay ? s->o->file : "");
	progress_open(&s->progress, s->reading);
	/* rows that appear on the terminal show the progress themselves */
	s->progress.on &= !(s->out.is_tty && s->o->format->flags & SINKS_ROWS);
	/* some formats create or rename files until they end */
	if (!err && s->o->replay && !s->o->one_each &&
	    !(s->o->format->flags & (SINKS_PATH | SINKS_SPLITS)))
		confine_drop();
	return err;
}
