/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opts.h - what the user asked for, from the command line. Only opts, the session and the
 * commands know struct opts.
 */
#ifndef CT_OPTS_H
#define CT_OPTS_H

#include "../../event/select.h"
#include "../../flow/sinks.h"
#include "../../flow/plan.h"
#include "../../stages/window.h"
#include "command.h"

enum opts_stack {
	OPTS_STACK_NONE,
	OPTS_STACK_DWARF,
	OPTS_STACK_FP,
	OPTS_STACK_PYTHON,
	OPTS_STACK_AUTO
};
enum opts_source { OPTS_SOURCE_PROBES, OPTS_SOURCE_CUPTI, OPTS_SOURCE_HOOKS };
enum opts_compact { OPTS_COMPACT_AUTO, OPTS_COMPACT_ALWAYS, OPTS_COMPACT_NEVER };
enum opts_color { OPTS_COLOR_AUTO, OPTS_COLOR_ALWAYS, OPTS_COLOR_NEVER };

#define OPTS_SETS_MAX 16

struct opts {
	enum opts_cmd command;

	/* what to trace */
	pid_t *pids;
	int npids;
	pid_t tid; /* 0: off */
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
	/* layers that are recorded: bits 1 << (domain - API_FIRST_LAYER) */
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
	bool max_cost_off;  /* --max-cost=off */
	bool max_cost_ours; /* nobody gave it: where probes cannot go for a while there is none */
	/* serve, top: class query too, which they leave out unless -e says what to count */
	bool queries;
	enum opts_stack stack; /* how the user stack of each call is taken */
	bool no_python;	       /* native frames only */
	bool no_stack;

	/* how */
	const char *output; /* NULL: stdout */
	bool append;
	const struct sinks_row *format;
	char *split; /* -ff: what `output` becomes; ours */
	struct sink_look look;
	int times_t;	/* -t: how often it was given */
	bool as_always; /* an option of others that asks for what is done anyway */
	int always;	/* the same, repeatable */
	enum opts_color color;
	enum opts_compact compact; /* look.compact follows from it */
	struct sink_spans spans;

	/* what the device does */
	bool gpu;		  /* device records */
	uint8_t source;		  /* enum opts_source: where the calls come from */
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

	/* what sinks and the command have for themselves: opts_own() */
	struct {
		const struct option_set *set;
		void *options;
	} own[OPTS_SETS_MAX];
	int nown;

	char *const *argv;	 /* the command line as it was given */
	bool help, version;	 /* print that and do nothing else */
	bool brief;		 /* help: -h */
	const char *const *args; /* list: what stands after the options */
	int nargs;
};

/*
 * Parses what comes after the command's name: argv[0] is skipped. Returns 0, or -EINVAL after
 * one message. The strings of argv are kept by pointer. opts_free() is safe after a failure.
 */
int opts_parse(struct opts *, enum opts_cmd, int argc, char **argv);
void opts_free(struct opts *);
/* The struct of a sink's or a command's own options; NULL: the command does not have them. */
void *opts_own(const struct opts *, const struct option_set *);
/* Gives a copy of the options, which is not freed, those of another command's sink. */
void opts_lend(struct opts *copy, const struct option_set *, void *options);
/* Has each process an output of its own: is there a %p in the FILE of -o? */
bool opts_one_each(const struct opts *);
/* What the output's own options mean for others. */
struct sink_wants opts_wants(const struct opts *);

/* Is this the name of a program that can be started without a -- before it? What is a command, another tool's
 * command or nearly a command is not. */
bool opts_is_program(const char *word);

/* What is traced, in a few words for a heading: CMD and its arguments, or the processes. Returns
 * buf. */
const char *opts_title(const struct opts *, char *buf, size_t size);

/*
 * What may stand for the last of the n words after the program's name, one a line; a line that
 * begins with ':' says what the shell completes by itself (:file, :directory, :user, :pid, and
 * `:command N`: of the words after the command's name, words[N] and on are another program's
 * line).
 */
void opts_complete(struct out *, const char *const *words, int n);

/* The help text of a command; the brief one fits a terminal of 24 lines and 80 columns. */
void opts_help(struct out *, enum opts_cmd);
void opts_help_brief(struct out *, enum opts_cmd);

#endif
