/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sink.h - a sink consumes events: prints them, stores them, or adds them up. It knows no source
 * and no other sink.
 */
#ifndef CT_SINK_H
#define CT_SINK_H

#include "../event/event.h"
#include "../event/muted.h"
#include "../util/io/out.h"

struct event_base;
struct option_set;

enum sink_time { SINK_TIME_MS, SINK_TIME_US, SINK_TIME_ISO };
enum sink_weight { SINK_WEIGHT_CALLS, SINK_WEIGHT_TIME, SINK_WEIGHT_BYTES, SINK_WEIGHT_GPU };

enum sink_stat { SINK_STAT_TEXT, SINK_STAT_JSON, SINK_STAT_CSV };

/* How top shows. */
struct sink_live {
	bool batch;	      /* blocks of text, no terminal */
	uint64_t interval_ns; /* between two refreshes */
	uint64_t count;	      /* batch: so many blocks; 0: no limit */
	uint8_t sort;	      /* enum top_sort */
};

/* Where and how the recording sink stores. */
struct sink_file {
	const char *path;
	const char *head;    /* lines "key value" for the head of each file */
	uint64_t max_bytes;  /* of a file; with last_ns: of memory; 0: no limit */
	unsigned int rotate; /* files kept beside the newest; 0: end at max_bytes */
	/* keep so much in memory and write when a condition is met; 0: write all */
	uint64_t last_ns;
	bool dump_failed, dump_end; /* conditions, beside sink_ops.dump */
	const uint64_t *dump_rows;  /* bitmap over api_funcs: calls of these; NULL: none */
	bool progress;		    /* on stderr */
};

struct sink_opts {
	struct out *out; /* where to; owned by the session */
	/* the struct of ops->options, of the sink that the format names; NULL: as if none of them
	 * were given */
	const void *own;
	/* Of the output; NULL: standard output. Only for a sink that opens it by itself
	 * (SINKS_PATH, SINKS_SPLITS) */
	const char *path;
	enum sink_time time;
	/* a TID column; where stacks are added up, a frame for each thread */
	bool tid;
	bool color;
	bool enter_exit;	  /* two rows a call */
	bool nested;		  /* indent by depth */
	bool stuck;		  /* calls under way: since how long, instead of when */
	bool counts, counts_only; /* -C, -c */
	/* device work comes too: calls that it can come of show their number */
	bool gpu;
	bool mangled; /* names of kernels and functions as the compiler made them */
	/* names of kernels with template arguments and parameters, and nothing cut */
	bool full_names;
	enum sink_stat stat; /* how stat prints */
	uint8_t by;	     /* enum book_by: what stat tells apart */
	bool hist;	     /* stat: with histograms */
	bool no_queries;     /* no function of class query is probed */
	bool every_call;     /* no filter leaves calls out, as -e, --failed and their like do */
	/* stat: a file for the sums as JSON, beside the output; NULL: none */
	const char *save;
	bool append;		 /* add to that file */
	enum sink_weight weight; /* what a stack weighs, where stacks are added up */
	/* of a flame graph: what was traced; untrusted bytes; NULL: not known */
	const char *title;
	uint64_t start_ns;	     /* CLOCK_MONOTONIC of the trace's begin: the table's zero */
	uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC, for iso times */
	uint64_t boottime_offset_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
	const char *version;	     /* of cudatrace */
	bool recorded;		     /* what comes is a recording, and can wait */
	const char *otlp_url;	     /* where spans are pushed to, or "env"; NULL: nowhere */
	uint64_t otlp_min_ns;	     /* what takes less is no span */
	/* name of the traced machine, and its boot id; NULL: not known, or several */
	const char *host, *boot;
	/* for a collector that takes nothing: at the end, of a recording at any time */
	uint64_t otlp_wait_ns;
	/* set at the end: spans that no collector has; NULL: nobody wants to know */
	uint64_t *undelivered;
	/* For sinks that show what is now, when they are asked or by a clock of their own:
	 * libevent's base, which the session runs, and what makes the source hand in what it
	 * has, counts as CT_TALLY included, before it returns (0 or -errno). What it was asked
	 * for may have ended the session. */
	const char *listen;	/* ADDR:PORT of serve */
	const char *web_config; /* serve: who may ask, and TLS; NULL: all, without */
	unsigned int kernels;	/* serve: told apart by name */
	uint32_t tallies_max;	/* entries that the kernel side's counts have room for */
	/* all calls that take or free memory come, counted or one by one, and with their results */
	bool memory;
	/* hardware counters were asked for, at this interval; 0: they were not */
	uint64_t counters_ns;
	uint64_t otlp_interval_ns; /* serve: of the pushes to otlp_url */
	struct event_base *base;
	int (*refresh)(void *ctx);
	void *refresh_ctx;
	/* With `recorded`: every record that is still to come has its place (event_place_ns) at
	 * this moment or later, in CLOCK_MONOTONIC of the recording; UINT64_MAX: nothing with a
	 * place comes. NULL: not known. */
	uint64_t (*settled)(void *ctx);
	/* Adds up what was lost so far, and what the source knows beside. */
	void (*losses)(void *ctx, struct losses *);
	void (*quit)(void *ctx); /* ends the session, as SIGINT does */
	/* what counts are told apart by from now on: enum ct_by */
	void (*count_by)(void *ctx, uint8_t by);
	const struct sink_live *live; /* of top */
	const struct sink_file *file; /* of a recording; NULL otherwise */
};

/* What every sink is told at the end, beside the losses. */
struct sink_end {
	struct losses losses;
	uint64_t uptime_ns;
	/* kernels, copies, sets and graphs: struct join_counts */
	uint64_t matched, unmatched, inferred;
	const char *const *muted; /* names of muted functions, NULL-terminated */
	/* wait(2) status of the program that was started, if it has ended; else NULL */
	const int *program;
	/* Calls that were not shown one by one, or, where all calls are counted, what of them is
	 * an estimate. */
	struct muted_sum muted_calls;
	/* "finished", "interrupted", "duration", "count", "output closed", "output error" */
	const char *reason;
};

/* What a sink's own options mean for others. */
struct sink_wants {
	bool for_programs;    /* what it prints is not for people */
	const char *files[2]; /* that it writes beside the output; NULL: none */
};

struct sink;
struct sink_ops {
	const char *name, *help;
	/* Of its own: rows of the command line, in the sink's own file; NULL: none. */
	const struct option_set *options;
	/* What they mean for others; wants is zeroed. NULL: nothing. */
	void (*wants)(const void *own, struct sink_wants *);
	/* Returns 0 or -errno; -EINVAL after a message that says why. */
	int (*open)(struct sink *, const struct sink_opts *);
	/* Returns 1 when a row came of it, 0 when not (a kind it does not print), or -errno of
	 * the output. */
	int (*event)(struct sink *, const struct event *);
	/* Now and then, at least every 100 ms; NULL: time does not matter to it. Returns 0 or
	 * -errno. */
	int (*tick)(struct sink *, uint64_t now_ns);
	/* The user's signal to write what is held back; NULL: nothing is. Returns 0 or -errno. */
	int (*dump)(struct sink *);
	int (*close)(struct sink *, const struct sink_end *);
};
struct sink {
	const struct sink_ops *ops;
	const struct sink_opts *opts;
	void *priv;
	int status; /* set by close(): the exit status if nothing else went wrong; 0: any */
};

/* Those of sinks.def, and those that options beside --format ask for. */
#define S(id, suffix, flags) extern const struct sink_ops sink_##id;
#include "sinks.def"
#undef S
extern const struct sink_ops sink_count, sink_trace, sink_otlp;

#endif
