/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.h - what a command was asked for, as data. The command line fills it in; the session makes
 * its plan of it, and so does stuck. It knows no option by name: a test or another program may fill
 * it in as well.
 */
#ifndef CT_REQUEST_H
#define CT_REQUEST_H

#include "../event/select.h"
#include "../flow/sinks.h"
#include "../flow/plan.h"
#include "../stages/window.h"

struct option_set;

enum request_stack {
	REQUEST_STACK_NONE,
	REQUEST_STACK_DWARF,
	REQUEST_STACK_FP,
	REQUEST_STACK_PYTHON,
	REQUEST_STACK_AUTO
};
/* AUTO: hooks, and probes for what hooks refuse. */
enum request_source {
	REQUEST_SOURCE_PROBES,
	REQUEST_SOURCE_CUPTI,
	REQUEST_SOURCE_HOOKS,
	REQUEST_SOURCE_AUTO
};
enum request_color { REQUEST_COLOR_AUTO, REQUEST_COLOR_ALWAYS, REQUEST_COLOR_NEVER };

#define REQUEST_SETS_MAX 16

struct request {
	unsigned int
		command; /* a bit of the command line's table of commands: nothing below it asks */

	/* what to trace */
	pid_t *pids;
	int npids;
	pid_t tid;    /* 0: off */
	bool has_tid; /* the command has -L: a thread may be named instead of a process */
	/* children too: of the processes of -p where it is asked for, of CMD unless no_follow */
	int follow; /* 2: and a file of -o for each */
	bool no_follow;
	const char *cgroup; /* a path; NULL: off */
	const char *library;
	enum api_domain domain; /* API_DOMAIN_END: all */
	const char *user;
	const char **env; /* VAR=VAL or VAR; NULL-terminated; NULL: none */
	char *const *cmd; /* NULL: none */

	/* what to show */
	struct selection select;
	bool events_given;
	bool shapes; /* shapes and types of operators' tensors too */
	/* layers that are recorded, for whatever reason: bits 1 << (domain - API_FIRST_LAYER) */
	uint32_t layers;
	uint32_t scopes; /* that are shown: bits 1 << enum ct_scope_kind */
	struct ct_filter filter;
	uint64_t unfinished_ns; /* show a call that has not returned for so long; 0: off */
	const char *comm;
	bool one_device; /* export: only what concerns the device `device` */
	uint32_t device;
	bool keep_chatty;
	/* stat, top, serve: for how much of the time frequently called functions are probed, and
	 * what all probes may cost, of the CPU time of the programs: 0 to 1; 0: not given */
	double duty, max_cost;
	bool max_cost_ours; /* nobody gave it: where probes cannot go for a while there is none */
	enum request_stack stack; /* how the user stack of each call is taken */
	bool no_python;		  /* native frames only */
	bool no_stack;

	/* how */
	const char *output; /* NULL: stdout */
	bool one_each;	    /* there is a %p in `output`: each process has one of its own */
	bool append;
	const struct sinks_row *format;
	struct sink_look look;
	enum request_color color;
	struct sink_spans spans;

	/* what the device does */
	bool gpu;	/* device records */
	bool host;	/* what threads wait for */
	uint8_t source; /* enum request_source: where the calls come from */
	/* with AUTO: probes where hooks would see only a part of the calls of some functions */
	bool complete;
	struct plan_device agent; /* what it records */
	/* recordings */
	bool record, replay;	 /* store instead of printing; print what was stored */
	bool export;		 /* replay: into a file for another program */
	const char *file;	 /* replay: the recording */
	int file_fd;		 /* replay: of it, where it is open already; 0: it is not */
	uint64_t from_ns, to_ns; /* replay: after its begin; to_ns 0: to the end */
	struct sink_file store;	 /* record: how much of it is kept */
	const char *dump_on;	 /* record: with store.last_ns; NULL: a signal */

	/* from when */
	struct window_opts window;

	/* counters */
	bool counters; /* in a trace */
	uint64_t interval_ns;
	const char *metrics; /* a comma list, or "help"; NULL: the usual ones */

	/* until when */
	uint64_t duration_ns; /* 0: no limit */
	uint64_t count;	      /* 0: no limit */

	/* the machinery */
	bool no_return, strict;
	uint32_t ring_bytes; /* 0: as much as what is traced needs */
	const char *probe_kind;
	int verbose;
	bool quiet;

	/* what sinks and the command have for themselves: request_own() */
	struct {
		const struct option_set *set;
		void *options;
	} own[REQUEST_SETS_MAX];
	int nown;

	char *const *argv;	 /* the command line as it was given */
	const char *const *args; /* list: what stands after the options */
	int nargs;
};

/* The struct of a sink's or a command's own options; NULL: the command does not have them. */
void *request_own(const struct request *, const struct option_set *);
/* Gives a copy of the request, which is not freed, the options of another command's sink. */
void request_lend(struct request *copy, const struct option_set *, void *options);
/* What the output's own options mean for others. */
struct sink_wants request_wants(const struct request *);
/* What is traced, in a few words for a heading: CMD and its arguments, or the processes. Returns
 * buf. */
const char *request_title(const struct request *, char *buf, size_t size);

#endif
