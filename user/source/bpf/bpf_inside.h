/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_inside.h - what the parts of the bpf source share: its state, and what each part does for
 * the others. Only for bpf*.c.
 */
#ifndef CT_BPF_INSIDE_H
#define CT_BPF_INSIDE_H

#include "../probe/attach.h"
#include "backlog.h"
#include "../muted/throttle.h"
#include "../launch/launch.h"
#include "../probe/links.h"
#include "pythons.h"
#include "ring.h"
#include "../muted/sampler.h"
#include "../source.h"
#include "call_counts.h"
#include "../../util/strings.h"

#define BPF_MUTED_MAX 256
#define BPF_LD_SO_MAX 16
#define BPF_LD_SO_FAILS 64

struct cudatrace_bpf;
struct bpf_unprobed;

struct bpf_source {
	const struct capture_plan *plan;
	struct cudatrace_bpf *skel;
	enum attach_kind kind;
	const bool *paused, *full; /* as struct source has them */
	bool whole;		   /* a drain takes all that is there, paused or not */
	bool loaded;		   /* a process had a file that got probes */
	uint64_t left_out;	   /* functions that the kind of probe leaves out, as last stated */
	/* functions that were stated by name: IFUNCs, and those with another one's code */
	uint64_t silent[2][PLAN_WORDS];
	struct strings stripped;  /* files with a runtime whose functions were not found */
	uint32_t stated_stripped; /* of these, so many were stated */
	bool stopped;
	uint64_t stopped_ns; /* CLOCK_MONOTONIC; 0: calls are still seen, or never were */

	/* whom, and where the probes are */
	pid_t *pids; /* thread groups, in our namespace */
	int npids;
	bool per_process; /* links for single processes */
	bool sessions;	  /* plain pairs were replaced by sessions, where there are sessions */
	struct attach *attach;
	struct discover *discover;
	struct bpf_unprobed *unprobed; /* NULL: nobody wants to know */
	uint64_t pair_ns;	       /* what an empty pair of probes costs a call; 0: not known */
	struct pythons *pythons;       /* NULL: no Python frames are wanted */
	struct bpf_muted *muting;      /* NULL: each call is captured */
	const char *muted[BPF_MUTED_MAX + 1];
	int nmuted;

	/* the dynamic loaders of the traced processes */
	struct bpf_ld_so {
		uint64_t dev, ino;
		uint64_t since_ns; /* CLOCK_MONOTONIC: the probe is on */
		struct link_set links;
	} ld_so[BPF_LD_SO_MAX];
	int nld_so;
	/* processes whose loader could not be probed: the latest of them */
	pid_t ld_so_fails[BPF_LD_SO_FAILS];
	unsigned int nld_so_fails;
	/* the questions of threads that have loaded a library; zeroed: no thread is held */
	struct ring looks;

	/* the program that was started here */
	struct launch *launch; /* NULL: none */
	bool launch_ended;
	bool loose;	   /* some of its processes are not seized, as they use ptrace themselves */
	struct ring halts; /* its threads' questions; of the tracer */

	/* records */
	struct ring ring;
	struct backlog *backlog;	 /* between the ring and drain() */
	struct call_counts *call_counts; /* NULL: no calls are counted in the kernel */
	uint64_t received, calls, malformed, safe_ns;
	uint64_t complete_ns; /* all that ended before it was handed out */
	uint64_t swept;	      /* losses after which the counts of ended processes were looked for */
	void *inflight;	      /* records of the calls that had not returned when tracing ended */
	size_t inflight_len;
	/* during drain() */
	emit_fn emit;
	void *emit_ctx;
	int emit_err; /* of a record that was made while processes were looked at */
};

/* ---- bpf.c ---- */

/* Chooses the kind of probe, loads the programs, and gives up the privileges that are not needed
 * any more. Returns 0, or -errno after one message. */
int bpf_load_all(struct bpf_source *);

/* ---- bpf_load.c: the kernel side ---- */

/* Chooses the kind of probe. Returns 0, or -errno after one message. */
int bpf_load_kind(struct bpf_source *);
/* Loads the programs as the plan has it; processes' begin and end are watched from here on.
 * Returns 0, or -errno after one message. */
int bpf_load(struct bpf_source *);

/* ---- bpf_probe.c: whom to trace, and the probes on what they map ---- */

/* The thread groups of what the user gave: a thread's id stands for its process. Returns 0, or
 * -errno after one message. */
int bpf_probe_pids(struct bpf_source *);
/* Are links to be made for each of them? The kind is chosen by then. */
void bpf_probe_links(struct bpf_source *);
/* Has the kernel side trace them, and makes ready to find and attach files. Returns 0, or -errno
 * after one message. */
int bpf_probe_open(struct bpf_source *);
/* Puts probes on all that is mapped by now, and finds the Pythons among what runs. Returns 0, or
 * -errno (after one message, but for Python's). */
int bpf_probe_scan(struct bpf_source *);
/* With links for single processes: this one has ended. */
void bpf_probe_gone(struct bpf_source *, pid_t);
/* As bpf_take(). */
int bpf_probe_take(struct bpf_source *, pid_t);
/* A thread has called that a plain return probe may end (CT_WANTS_*): no more return probes that the entry
 * cannot refuse, see attach_sessions(). */
void bpf_probe_want_sessions(struct bpf_source *);

/* ---- bpf_muted.c: functions that are called too often ---- */

int bpf_muted_open(struct bpf_source *); /* behind bpf_drain_open(); returns 0 or -errno */
void bpf_muted_close(struct bpf_source *);
int bpf_muted_fd(const struct bpf_source *); /* readable: drain(); -1: there is none */
/* A call was sent. */
void bpf_muted_call(struct bpf_source *, const struct ct_call *);
void bpf_muted_ended(struct bpf_source *, uint32_t pid, uint64_t at_ns);
/* From drain(): does what is due, and hands out CT_MUTED now and then; once everything is
 * stopped, the last. Returns 0 or emit's. */
int bpf_muted_step(struct bpf_source *, emit_fn, void *ctx);
/* Before probes go for good. */
void bpf_muted_stop(struct bpf_source *);
void bpf_muted_cost(const struct bpf_source *, struct probe_cost *);
/* The function is one of those that source_muted() names. */
void bpf_muted_name(struct bpf_source *, int func);

/* A thread that was not the first of its process ran another program: the links for this process
 * (our namespace), which were bound to the first thread, are made anew. */
void bpf_probe_anew(struct bpf_source *, pid_t pid);

/* ---- bpf_loader.c: dynamic loaders ---- */

int bpf_loader_open(struct bpf_source *); /* returns 0 or -errno */
/* Probes _dl_debug_state of the dynamic loader that the process (our namespace) maps. */
void bpf_loader_watch(struct bpf_source *, pid_t pid);
/* The first returns the last question before processes' mappings are examined; the second answers
 * up to it after that. */
uint64_t bpf_loader_asked(struct bpf_source *);
void bpf_loader_answer(struct bpf_source *, uint64_t asked);
void bpf_loader_close(struct bpf_source *); /* takes the probes off; may be called twice */

/* Has that of the process (our namespace) been probed since before at_ns? */
bool bpf_loader_watches(struct bpf_source *, pid_t pid, uint64_t at_ns);
/* Could it not be? */
bool bpf_loader_fails(const struct bpf_source *, pid_t pid);

/* ---- bpf_unprobed.c: processes that mapped a file before it had its probes ---- */

/* Some processes, it is not known which, may have run before their calls were seen. */
void bpf_unprobed_somebody(struct bpf_source *, uint64_t at_ns);
int bpf_unprobed_open(struct bpf_source *); /* behind bpf_probe_open(); returns 0 or -ENOMEM */
/* Hands out a CT_UNPROBED for each. Returns 0 or emit's. */
int bpf_unprobed_emit(struct bpf_source *, emit_fn, void *ctx);
void bpf_unprobed_close(struct bpf_source *);

/* ---- bpf_launch.c: a program that is started here ---- */

/* Forks the plan's program, which waits before its first instruction; then bpf_load_all().
 * Returns 0, or -errno after one message. */
int bpf_launch_open(struct bpf_source *);
/* Tells the kernel side of it. Returns 0, or -errno after one message. */
int bpf_launch_trace(struct bpf_source *);
void bpf_launch_close(struct bpf_source *);

/* ---- bpf_drain.c: the kernel side's records ---- */

int bpf_drain_open(struct bpf_source *); /* returns 0, or -errno after one message */
/* As the source's operations drain, pending, counts and losses. */
int bpf_drain(struct bpf_source *, emit_fn, void *ctx);
int bpf_drain_pending(struct bpf_source *, uint64_t min_age_ns, emit_fn, void *ctx);
int bpf_drain_call_counts(struct bpf_source *, emit_fn, void *ctx);
/* Until when calls were seen: now, or until the source was stopped. Taking the probes off can last for
 * minutes after that. */
uint64_t bpf_drain_until(const struct bpf_source *);
void bpf_drain_losses(struct bpf_source *, struct losses *);
/* ctx is the source. The mapped files of a process (our namespace) have changed: a record that says
 * so is placed after the records sent so far. */
void bpf_drain_mapped(void *ctx, pid_t pid);
/* A thread waits until the records sent so far have been handled. */
void bpf_drain_held(struct bpf_source *);
/* Ends the capture of calls. Calls under way get a short time to return. The others count as
 * unfinished at the moment of stopping, and bpf_drain() hands them out after the records in the
 * ring. */
void bpf_drain_last(struct bpf_source *);
void bpf_drain_close(struct bpf_source *);

#endif
