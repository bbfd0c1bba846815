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
struct source;
struct option_set;

/* The version of the names in JSON, csv, arrow and parquet (docs/exports.md#names). New names need no new one. */
#define SINK_NAMES_VERSION "3"

/* DELTA: since the row before, in milliseconds; UNIX: seconds of the Unix epoch; DAY, DAY_US: the local time of
 * day, in seconds and microseconds */
enum sink_time {
	SINK_TIME_MS,
	SINK_TIME_US,
	SINK_TIME_ISO,
	SINK_TIME_UNIX,
	SINK_TIME_DELTA,
	SINK_TIME_DAY,
	SINK_TIME_DAY_US
};

/* In which order the counts of -c and -C are printed. */
enum sink_count_by {
	SINK_COUNT_BY_TIME,
	SINK_COUNT_BY_CALLS,
	SINK_COUNT_BY_ERRORS,
	SINK_COUNT_BY_NAME
};
enum sink_weight { SINK_WEIGHT_CALLS, SINK_WEIGHT_TIME, SINK_WEIGHT_BYTES, SINK_WEIGHT_GPU };

/* Where and how the recording sink stores. */
struct sink_file {
	const char *path;
	const char *head; /* lines "key value" for the head of each file */
	/* largest size of a file, or, with last_ns, of the memory; 0: no limit */
	uint64_t max_bytes;
	unsigned int rotate; /* files kept beside the newest; 0: end at max_bytes */
	/* keep this much time in memory and write it when a condition is met; 0: write
	 * everything */
	uint64_t last_ns;
	bool dump_failed, dump_end; /* conditions, beside sink_ops.dump */
	/* condition: a call of one of these functions (bitmap over api_funcs); NULL: none */
	const uint64_t *dump_rows;
	bool progress; /* on stderr */
};

/* How outputs look: what options that several of them share ask for. The rows of the options fill it
 * (cli/options/opts.c). */
struct sink_look {
	enum sink_time time;
	bool tid;	 /* a TID column; outputs that add up stacks have a frame for each thread */
	bool compact;	 /* the table: rows for people at a terminal, table_compact.h */
	bool enter_exit; /* two rows for each call */
	bool nested;	 /* indent by depth */
	bool counts, counts_only; /* -C, -c */
	uint8_t counts_by;	  /* enum sink_count_by */
	unsigned int string_max;  /* the table: bytes of a string that are printed; 0: all */
	bool mangled;		  /* the names that the compiler made for kernels and functions */
	bool full_names; /* names of kernels with template arguments and parameters, and uncut */
	bool all_frames; /* of stacks, and whole paths: stack_view() leaves some out */
	enum sink_weight weight; /* the weight of a stack, for outputs that add up stacks */
	bool stack_of_scopes;	 /* whose frames are the scopes around a call, not its callers */
};

/* Spans for a collector, filled likewise. */
struct sink_spans {
	const char *url; /* where they are pushed to, or "env"; NULL: nowhere */
	uint64_t min_ns; /* calls that take less time get no span */
	/* how long to wait for a collector that accepts nothing: at the end, or, for a
	 * recording, at any time */
	uint64_t wait_ns;
};

struct sink_opts {
	struct out *out; /* where the output goes; owned by the session */
	/* the struct that ops->options fills, for the sink that --format names; NULL: as if none
	 * of these options were given */
	const void *own;
	/* path of the output; NULL: standard output. Only for a sink that opens the output
	 * itself (SINKS_PATH, SINKS_SPLITS) */
	const char *path;
	/* with a %p in `path`: the output of which there is one for each process */
	const struct sink_ops *split;
	struct sink_look look;
	struct sink_spans spans;
	bool color;
	bool fit; /* where the output is a terminal, no row is wider than it */
	/* show for how long calls have been under way instead of when they began */
	bool stuck;
	/* device work comes too: calls that can cause it show their number */
	bool gpu;
	bool no_queries; /* no function of class query is probed */
	bool every_call; /* no filter (-e, --failed and so on) removes calls */
	bool append;	 /* outputs that open files of their own add to them */
	/* title of a flame graph: what was traced; untrusted bytes; NULL: not known */
	const char *title;
	/* begin of the trace, CLOCK_MONOTONIC: the table's times count from it */
	uint64_t start_ns;
	uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC, for iso times */
	uint64_t boottime_offset_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
	const char *version;	     /* of cudatrace */
	bool recorded;		     /* the events come from a recording, and so can wait */
	/* with sink_wants.threads: the source of calls, which can say where threads are: for user/stuck alone */
	struct source *calls;
	const pid_t *pids; /* with sink_wants.threads: those of -p */
	int npids;
	bool chosen; /* some processes are traced, not all of the machine */
	/* name of the traced machine, and its boot id; NULL: not known, or several */
	const char *host, *boot;
	/* set at the end: number of spans that reached no collector; NULL: not wanted */
	uint64_t *undelivered;
	/* For sinks that show the current state, when they are asked or by a timer of their own:
	 * libevent's base, which the session runs, and a function that makes the source hand in
	 * what it has before the function returns (0 or -errno). That includes counters as
	 * CT_CALL_COUNT. The session may have ended after the call. */
	/* number of entries that the kernel side's counters have room for */
	uint32_t call_counts_max;
	/* all calls that take or free memory come, counted or one by one, with their results */
	bool memory;
	bool collectives; /* calls of NCCL come as scopes */
	/* hardware counters were asked for, at this interval; 0: they were not */
	uint64_t counters_ns;
	struct event_base *base;
	int (*refresh)(void *ctx);
	void *refresh_ctx;
	/* Returns a moment, in CLOCK_MONOTONIC of the recording or of this machine. Every record
	 * that is still to come has its place (event_place_ns) at this moment or later.
	 * UINT64_MAX: no more records with a place come. Live it is what the sources have handed
	 * over, and never more than a second ago: records of devices come some tenths of a second after
	 * what they are about, and what is later than a second is not waited for. NULL: not known. */
	uint64_t (*settled)(void *ctx);
	/* Fills in what was lost so far, and what else the source knows. */
	void (*losses)(void *ctx, struct losses *);
	void (*quit)(void *ctx); /* ends the session, as SIGINT does */
	/* sets by what counters are separated from now on: enum ct_by */
	void (*count_by)(void *ctx, uint8_t by);
	uint64_t interval_ns; /* between two refreshes of a display */
	uint64_t count;	      /* rows, or blocks of rows, after which the trace ends; 0: no limit */
	const struct sink_file *file; /* for the recording sink; NULL otherwise */
};

/* What every sink gets at the end, in addition to the losses. */
struct sink_end {
	struct losses losses;
	uint64_t uptime_ns;
	/* kernels, copies, sets and graphs: struct join_counts */
	uint64_t matched, unmatched, inferred, unscoped;
	const char *const *muted; /* names of muted functions, NULL-terminated */
	/* wait(2) status of the program that was started, if it has ended; else NULL */
	const int *program;
	/* Calls that were not shown one by one; if all calls are counted, the estimated part of
	 * them. */
	struct muted_sum muted_calls;
	/* "finished", "interrupted", "duration", "count", "output closed", "output error" */
	const char *reason;
};

/* What a sink's own options mean for the rest of the program. */
struct sink_wants {
	bool for_programs; /* the output is for programs, not for people */
	/* it asks where threads are, and gets sink_opts.calls, and the head of a recording in sink_opts.file */
	bool threads;
	bool signals;	      /* it gets CT_SIGNAL records: what signals end processes */
	const char *files[2]; /* files that it writes in addition to the output; NULL: none */
	bool handles;	      /* with SINKS_MEMORY: calls that make streams and the like, too */
	bool blocks;	      /* it shows what allocators inside programs say of their blocks */
	/* layers that it needs: bits 1 << (domain - API_FIRST_LAYER); any_layer: where others are
	 * recorded, these are not needed */
	uint32_t layers;
	bool any_layer;
	uint8_t by;	    /* enum book_by: what calls are counted by, beside their function */
	bool hist;	    /* counts have histograms of durations too */
	bool no_names;	    /* it shows no kernel by its name */
	bool sums;	    /* what makes no row is in none of its sums */
	uint64_t processes; /* for how many of them counts have room; 0: a default */
};

#define SINK_UNWRITTEN 2

struct sink;
struct sink_ops {
	const char *name;
	/* The sink's own options: rows of the command line, defined in the sink's own file;
	 * NULL: none. */
	const struct option_set *options;
	/* Says what they mean for the rest of the program; wants comes zeroed. NULL: nothing. */
	void (*wants)(const void *own, struct sink_wants *);
	/* Returns 0 or -errno; -EINVAL after a message that says why. */
	int (*open)(struct sink *, const struct sink_opts *);
	/* Returns 1 if the event made a row, 0 if not (a kind that the sink does not print),
	 * SINK_UNWRITTEN if it would have made one and its process has no file, or -errno of the
	 * output. */
	int (*event)(struct sink *, const struct event *);
	/* Called regularly, at least every 100 ms; NULL: the sink does not depend on time.
	 * Returns 0 or -errno. */
	int (*tick)(struct sink *, uint64_t now_ns);
	/* Called at the user's signal to write what is held back; NULL: the sink holds nothing
	 * back. Returns 0 or -errno. */
	int (*dump)(struct sink *);
	int (*close)(struct sink *, const struct sink_end *);
};
struct sink {
	const struct sink_ops *ops;
	const struct sink_opts *opts;
	void *priv;
	/* set by close(): the exit status if nothing else went wrong; 0: the sink asks for none */
	int status;
};

/* The sinks of sinks.def, and those that options other than --format ask for. */
#define S(id, suffix, flags) extern const struct sink_ops sink_##id;
#include "sinks.def"
#undef S
extern const struct sink_ops sink_count, sink_trace, sink_otlp, sink_split;

#endif
