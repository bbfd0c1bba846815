/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rule.h - inside advise: what the rules share. A rule is a word in rules.def and a file in
 * rules/, whose last lines are its texts, the records that it wants to see, and three small
 * functions. It has its own state for each process; what several rules need to know of a process
 * or thread is kept here.
 */
#ifndef CT_RULE_H
#define CT_RULE_H

#include <stddef.h>

#include "../api/traits.h"
#include "../sums/report.h"
#include "advise.h"
#include "advise_sites.h"
#include "../sums/spans.h"

#define RULES_MAX 32
#define PROCS_MAX 128
#define ENTERED_MAX 8 /* times that agents came into a process */
#define THREADS_MAX 32768
#define DEVICES_MAX 16 /* of a process */
/* A copy to the host of at most this size counts as a value that is read, not as data moved. */
#define READBACK_BYTES 256
#define GAP_NS 1000000ULL /* a device that is idle for so long: rule gpu-gaps */
/* after a process's first call: code that is loaded later than this is late */
#define STEADY_NS 3000000000ULL

struct proc_device {
	uint32_t id;
	struct spans busy;
};

struct proc_steps;
struct advise_process {
	uint32_t index, pid, shown, start;
	uint32_t rank; /* CT_UNKNOWN: it is part of no job, or that is not known */
	char comm[CT_COMM_LEN];
	uint64_t first_ns, last_ns; /* of calls and work */
	uint64_t ncalls, nwork;
	struct entered_one {
		uint64_t start_ns, end_ns;
		uint32_t tid;
	} entered[ENTERED_MAX];
	unsigned int nentered;
	uint64_t serial; /* of the last call that gave a device work */
	bool exited;
	void *state[RULES_MAX];
	struct proc_device *devices;
	unsigned int ndevices;
	struct proc_steps *steps; /* of proc_steps.h; NULL: no rule wants them */
};

/* What a rule remembers between two calls of a thread. */
struct thread {
	uint32_t proc, tid;
	/* wait: the work given since the last wait; the wait whose end is to be compared with
	 * the end of the next work */
	uint64_t work, wait_serial, wait_end_ns;
	struct site wait;
	uint8_t wait_what;    /* enum wait_what */
	bool waited, small;   /* small: the last work was a copy to the host */
	uint32_t wait_device; /* what the last wait was for */
	uint16_t wait_func;
	uint64_t wait_word;
	uint64_t small_bytes;
	/* copies, queries and long launches one after the other */
	uint16_t run_func;
	uint8_t run_way;
	uint32_t run_n, poll_n, long_n;
	uint64_t run_ns, run_bytes, poll_ns, long_ns;
	bool failed; /* the last call */
};

/* One event, and what is known of it. */
struct seen {
	struct advice *a;
	const struct event *ev;
	const struct ct_hdr *h;
	const struct ct_call *call;   /* NULL: no call */
	const struct ct_work *work;   /* NULL: no device work */
	const struct ct_scope *scope; /* NULL: no scope that has ended */
	struct advise_process *p;
	struct thread *t; /* of calls */
	uint32_t traits;
	uint64_t ns;	/* how long, without an agent's coming in; 0 where it is not known */
	uint64_t bytes; /* of copies and sets */
	uint8_t way;	/* of copies: enum report_way, as the call says it */
	bool failed;
};

struct rule {
	struct advise_rule words;
	uint64_t kinds;	     /* bit k: records of kind k */
	uint32_t traits;     /* of calls: those that have any of these */
	uint8_t least, most; /* enum advise_severity: bounds of the severity */
	size_t state_bytes;
	int (*event)(void *state, const struct seen *); /* 0 or -ENOMEM */
	void (*end)(void *state, struct advice *, struct advise_process *);
	void (*free)(void *state); /* NULL: the state owns no other memory */
	/* where in the state hits are, and how many; 0 and one with rule_free_hits() */
	size_t hits_at;
	uint8_t nhits;
};
#define KIND(k) (1ULL << (k))

#define RULE(name) extern const struct rule rule_##name;
#include "rules.def"
#undef RULE
extern const struct rule *const rules[];
extern const unsigned int nrules;

/* For rules whose state begins with `struct hits`, and owns no other memory. */
void rule_free_hits(void *state);
/* A new finding, whose numbers the rule fills in. NULL: no memory. */
struct advise_finding *rule_finding(struct advice *, const struct rule *, struct advise_process *);
/* The same with the numbers and the places of hits. */
struct advise_finding *rule_finding_of(struct advice *, const struct rule *,
				       struct advise_process *, const struct hits *);
void rule_say(struct text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "1.234 ms", "4.0 KiB", in one of a few buffers, which are used in turn. */
const char *rule_time(double ns);
const char *rule_bytes(double bytes);

/* A stretch without the time that agents took to come in, inside a call of this thread; tid 0: of any. */
uint64_t rule_own_ns(const struct advise_process *, uint32_t tid, uint64_t start_ns,
		     uint64_t end_ns);
/* The time of the call that caused the device work; 0: not known. */
uint64_t rule_cause_ns(const struct seen *);
/* The site of an event. handle: tells sites of the same call apart; 0: none. */
struct site rule_site(const struct seen *, uint64_t handle);
/* Adds one at the event's own site. */
int rule_hit(struct hits *, const struct seen *, uint64_t cost_ns, uint64_t bytes);
/* Were calls that ask for the last error left out of the trace? */
bool advise_errors_muted(const struct advice *);
/* The device's properties, from its CT_DEVICE; NULL: not known. */
const struct ct_device *advise_device(const struct advice *, uint32_t pid, uint32_t id);

/* Long calls of all processes, to say what the host did in gaps of the device. */
struct long_call {
	uint64_t start_ns, ns;
	uint32_t type; /* of an overhead; 0: a call */
	uint32_t tid;
	uint16_t func, proc;
};
/* All zero. NULL: no memory; the failure is remembered. */
struct advise_finding *advise_finding_new(struct advice *);
/* True if n more struct spans may be kept; they are then counted. */
bool advise_may_keep_spans(struct advice *, unsigned int n);
/* The same for live allocations, and for what steps are found by. */
bool advise_may_keep_live(struct advice *, unsigned int n);
bool advise_may_keep_steps(struct advice *, unsigned int n);
/* At the end: what kept a device of a process waiting, where the recording has host states; NULL: it has none. */
struct why_part;
const struct why_part *advise_causes(struct advice *, const struct advise_process *,
				     uint32_t device);
/* Sorted by start; valid once all events have come. */
const struct long_call *advise_long_calls(struct advice *, size_t *n, uint64_t *least_ns);
struct site_stacks;
struct site_stacks *advise_stacks(struct advice *);

#endif
