/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * advise.h - what a program could do better: rules look at the calls and device work of a trace as
 * they come, and report at the end what they found, what it costs and what to do. docs/advice.md
 * has each rule's condition and what its cost means.
 *
 * Knows events; no source, no option, no format except that of its own findings (print.h).
 * Memory is bounded: whatever finds no room is counted (struct advise_totals).
 */
#ifndef CT_ADVISE_H
#define CT_ADVISE_H

#include "../event/event.h"
#include "../util/text.h"

enum advise_severity { ADVISE_NOTE, ADVISE_WARNING, ADVISE_SERIOUS };
const char *advise_severity_name(enum advise_severity); /* "note", "warning", "serious" */

/* What a rule needs from the trace. */
#define ADVISE_CALLS 0x1  /* calls with their durations */
#define ADVISE_DEVICE 0x2 /* device work, with the device's times */

/* The words of a rule; what it looks for is in rules.c. */
struct advise_rule {
	const char *name;   /* "sync-copy" */
	const char *title;  /* "Copies that block the host" */
	unsigned int needs; /* ADVISE_* */
	const char *cost;   /* how its cost was estimated */
	const char *todo;
};
enum advise_format { ADVISE_TEXT, ADVISE_JSON, ADVISE_MARKDOWN };

/* The options of `cudatrace advise`: advise_sink.c has their rows. */
struct advise_options {
	enum advise_format format;
	const char *rules; /* names, separated by commas; NULL: all */
	uint64_t min_cost_ns;
	bool fail;	      /* findings make the exit status 1 */
	const char **fail_if; /* those that fulfil one of these conditions do; NULL: none */
};

/* The rules in order; NULL after the last. */
const struct advise_rule *advise_rule_at(unsigned int i);
/* Checks a list of names, separated by commas. Returns NULL, or the first word that is not a name;
 * *len: its length. */
const char *advise_rules_bad(const char *list, size_t *len);

#define ADVISE_PLACES 3
/* A call site, or a kernel, that had a part in a finding. Texts are safe to print. */
struct advise_place {
	struct text name;  /* function or kernel */
	struct text stack; /* innermost frame first, a line each; empty: not known */
	uint64_t n, cost_ns, bytes;
	uint64_t at_ns, took_ns; /* the one of them that took longest; CLOCK_MONOTONIC */
};

/* What a finding is in one process. */
struct advise_one {
	uint32_t process;	    /* its place among those that are looked at */
	uint32_t pid, rank;	    /* as users see it; CT_UNKNOWN */
	uint64_t n, cost_ns, bytes; /* bytes 0: the finding is not about bytes */
	double share;	 /* cost_ns / time from the process's first call or work to its last */
	bool stands_out; /* it costs much more, or much less, than in the other processes */
};

struct advise_finding {
	const struct advise_rule *rule;
	enum advise_severity severity;
	struct text comm;
	struct text evidence; /* sentences */
	/* The process in which it costs most, which is what evidence and places are about. */
	struct advise_one one;
	/* All processes of the program that have it, and those that do not, by rank or number; nall 0: only this one
	 * has it. */
	struct advise_one *all, *without;
	size_t nall, nwithout;
	uint64_t median; /* of its cost, or else its bytes, or else how often, in all */
	struct advise_place places[ADVISE_PLACES]; /* the most costly first */
	unsigned int nplaces;
};

struct advise_totals {
	uint64_t calls, work; /* looked at */
	uint64_t stacks;      /* different ones; 0: no event had one that was looked at */
	unsigned int processes, rules;
	unsigned int have; /* ADVISE_* that the trace had */
	/* events that were ignored, because their process or thread found no room */
	uint64_t no_room;
	/* operators, launches and device work after the last of which steps were found; only the
	 * rules about steps did not see them */
	uint64_t steps_no_room;
	/* copies and sets with a size that cannot be (CT_SIZE_MOST): it is in no sum */
	uint64_t odd_sizes;
	uint64_t span_ns; /* of the process that was seen for longest */
};

struct advice;
/* rules: names of those wanted, separated by commas; NULL: all. NULL: no memory. */
struct advice *advise_open(const char *rules);
/* Places show all frames of their stacks, and whole paths. Before the first event. */
void advise_show_all(struct advice *);
void advise_close(struct advice *);
/* Returns 1 if rules look at this kind of event, 0 if not, or -ENOMEM. */
int advise_event(struct advice *, const struct event *);
/* Functions of which not all calls were seen, NULL-terminated; may be NULL. Before advise_finish(). */
void advise_muted(struct advice *, const char *const *names);
/* The rows of what was not seen (event/holes), which live until advise_finish(): gaps and steps with such a stretch are
 * not judged. */
void advise_holes(struct advice *, const struct holes *);
/* No more events come: the findings that cost at least min_cost_ns, or whose cost is no time, by
 * their cost. They are valid until advise_close(). NULL: no memory. */
const struct advise_finding *advise_finish(struct advice *, uint64_t min_cost_ns, size_t *n);
void advise_totals(const struct advice *, struct advise_totals *);
/* Was the rule selected? Did the trace have what it needs? */
bool advise_wanted(const struct advice *, const struct advise_rule *);
bool advise_checked(const struct advice *, const struct advise_rule *);

#endif
