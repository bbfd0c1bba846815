/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sink.h - a sink consumes events: prints them, stores them, or adds them up. It knows no source and no other sink.
 */
#ifndef CT_SINK_H
#define CT_SINK_H

#include "../event/event.h"
#include "../util/out.h"

enum sink_time { SINK_TIME_MS, SINK_TIME_US, SINK_TIME_ISO };
enum sink_weight { SINK_WEIGHT_CALLS, SINK_WEIGHT_TIME, SINK_WEIGHT_BYTES };

struct sink_opts {
	struct out *out;	 /* where to; owned by the session */
	const char *path;	 /* of the file that `out` is, or that a sink with `own_file` is to make; NULL: standard output */
	enum sink_time time;
	bool tid;		 /* a TID column */
	bool color;
	bool enter_exit;	 /* two rows a call */
	bool nested;		 /* indent by depth */
	bool stuck;		 /* calls under way: since how long, instead of when */
	bool counts, counts_only; /* -C, -c */
	bool mangled;		 /* names of kernels and functions as the compiler made them */
	bool full_names;	 /* names of kernels with template arguments and parameters, and nothing cut */
	enum sink_weight weight; /* what a stack weighs, in folded and flame */
	const char *title;	 /* of a flame graph: what was traced; untrusted bytes; NULL: not known */
	uint64_t start_ns;	 /* CLOCK_MONOTONIC of the trace's begin: the table's zero */
	uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC, for iso times */
	const char *version;	 /* of cudatrace */
	const char *otlp_url;	 /* where spans are pushed to; NULL: nowhere */
	uint64_t otlp_min_ns;	 /* what takes less is no span */
	const char *host;	 /* name of the traced machine; NULL: not known */
	/* The container of a cgroup of this machine; NULL: not to be asked, as of another machine's. */
	bool (*container)(uint64_t cgroup_id, char *buf, size_t size);
};

/* What every sink is told at the end, beside the losses. */
struct sink_end {
	struct losses losses;
	uint64_t uptime_ns;
	const char *const *muted; /* names of muted functions, NULL-terminated */
	const char *reason;	  /* "finished", "interrupted", "duration", "count", "output error" */
};

struct sink;
struct sink_ops {
	const char *name, *help;
	bool own_file; /* makes the file opts->path itself: `out` leads nowhere */
	/* Returns 0 or -errno; -EINVAL after a message that says why. */
	int (*open)(struct sink *, const struct sink_opts *);
	/* Returns 1 when a row came of it, 0 when not (a kind it does not print), or -errno of the output. */
	int (*event)(struct sink *, const struct event *);
	int (*close)(struct sink *, const struct sink_end *);
};
struct sink {
	const struct sink_ops *ops;
	const struct sink_opts *opts;
	void *priv;
};

extern const struct sink_ops sink_table, sink_json, sink_count, sink_folded, sink_flame;
extern const struct sink_ops sink_nsys, sink_otlp, sink_otlp_json;

#endif
