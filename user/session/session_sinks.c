/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_sinks.c - inside the session: chooses the sinks, opens what they write to, and makes
 * their options. It does for the sinks what session_plan.c does for the sources. Knows sinks only
 * through sink_ops.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clocks.h"
#include "session_inside.h"
#include "../source/host.h"
#include "../util/msg.h"
#include "../util/now.h"
#include "../util/whole/unfinished.h"

static bool want_color(const struct session *s)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	if (s->o->color != REQUEST_COLOR_AUTO)
		return s->o->color == REQUEST_COLOR_ALWAYS;
	return s->out.is_tty && !(no && *no) && term && *term && strcmp(term, "dumb");
}

int session_sinks_output(struct session *s)
{
	const struct request *o = s->o;
	int err;

	s->out.fd = -1;
	/* a recording has its own files */
	if (o->record || (!o->look.counts_only && (o->format->flags & SINKS_PATH || o->one_each)))
		return 0;
	/* the program's own output goes to standard output, and rows do not mix with it, as with
	 * strace */
	err = out_open_output(&s->out, o->output, o->append,
			      o->cmd ? STDERR_FILENO : STDOUT_FILENO);
	if (err)
		return err;
	if (s->out.is_file)
		unfinished_begun(s->out.fd, NULL);
	if (s->out.is_tty && o->format->flags & SINKS_BINARY && !o->look.counts_only) {
		msg_error("a terminal cannot show --format %s: give -o FILE", o->format->ops->name);
		return -EINVAL;
	}
	return 0;
}

/* Fills in all that sinks see of the user's options, and the time and host of the trace. For a
 * stored trace these are the time and host of its recording. */
static void fill_opts(struct session *s)
{
	const struct source_ops *ops = session_first(s)->ops;
	const struct request *o = s->o;
	struct source_recorded was;

	s->sink_opts = (struct sink_opts){
		.out = &s->out,
		.path = o->output,
		.look = o->look,
		.spans = o->spans,
		.own = request_own(o, o->format->ops->options),
		.color = want_color(s),
		.fit = o->look.compact && !o->output,
		.gpu = o->gpu,
		.call_counts_max = s->plan.capture.call_counts_max,
		.memory = s->plan.capture.count
				  ? s->plan.capture.memory
				  : !o->no_return && !o->filter.failed_only &&
					    !o->filter.succeeded_only &&
					    !o->filter.min_duration_ns && !o->filter.min_size_bytes,
		.collectives = s->plan.layers >> (API_NCCL - API_FIRST_LAYER) & 1,
		.counters_ns = o->counters ? o->interval_ns : 0,
		.no_queries = !session_plan_queries(&s->plan),
		.every_call = !o->events_given && !o->filter.failed_only &&
			      !o->filter.succeeded_only && !o->filter.min_size_bytes &&
			      !o->filter.min_duration_ns && o->domain == API_DOMAIN_END,
		.append = o->append,
		.title = request_title(o, s->title, sizeof(s->title)),
		.start_ns = s->began.h.start_ns,
		.realtime_offset_ns = s->began.realtime_ns - s->began.h.start_ns,
		.boottime_offset_ns = s->began.boottime_ns - s->began.h.start_ns,
		.version = CT_VERSION,
		.undelivered = &s->undelivered,
		.interval_ns = o->interval_ns,
		.count = o->count,
	};
	session_loop_hooks(s, &s->sink_opts);
	s->sink_opts.calls = s->wants.threads ? session_first(s) : NULL;
	s->sink_opts.pids = o->pids;
	s->sink_opts.npids = o->npids;
	s->sink_opts.chosen = o->npids || o->cmd || o->cgroup;
	if (!ops->recorded) {
		s->sink_opts.host = gethostname(s->host, sizeof(s->host) - 1) ? NULL : s->host;
		s->sink_opts.boot = host_boot_id(s->boot, sizeof(s->boot));
		return;
	}
	ops->recorded(session_first(s), &was);
	s->sink_opts.start_ns = s->last_end_ns = was.start_ns;
	s->sink_opts.realtime_offset_ns = was.realtime_offset_ns;
	s->sink_opts.boottime_offset_ns = was.boottime_offset_ns;
	s->sink_opts.recorded = true;
	s->sink_opts.host = was.host;
	s->sink_opts.boot = was.boot;
	s->sink_opts.gpu = was.gpu;
}

int session_sinks_open(struct session *s)
{
	const struct request *o = s->o;
	const struct sink_ops *ops[SESSION_SINKS];
	int n = 0, err;

	clocks_read(&s->began);
	s->last_record_ns = s->last_end_ns = s->began.h.start_ns;
	fill_opts(s);
	/* opened first, so that a wrong address is reported before anything is written */
	if (o->spans.url && !(o->format->flags & SINKS_DAEMON))
		ops[n++] = &sink_otlp;
	if (o->record || s->wants.threads) {
		err = recording_open(&s->recording, o, &s->sink_opts);
		if (err)
			return err;
		s->sink_opts.file = &s->recording.file;
	}
	if (o->record) {
		ops[n++] = &sink_trace;
	} else if (!o->look.counts_only) {
		bool one_each = o->one_each && !(o->format->flags & SINKS_SPLITS);

		s->sink_opts.split = o->format->ops;
		ops[n++] = one_each ? &sink_split : o->format->ops;
	}
	if (o->look.counts || o->look.counts_only)
		ops[n++] = &sink_count;
	for (int i = 0; i < n; i++) {
		s->sinks[i].ops = ops[i];
		err = ops[i]->open(&s->sinks[i], &s->sink_opts);
		if (err) {
			if (err != -EINVAL)
				msg_error("cannot start the %s output: %s", ops[i]->name,
					  strerror(-err));
			return err;
		}
		s->stages.nsinks = ++s->nsinks;
	}
	return 0;
}
