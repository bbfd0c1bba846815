/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_state.h - what the agent's files share: one state for the process, since CUPTI has one subscriber
 * for the process.
 *
 *   agent.c    the life: start, the thread, stop, fork, exit
 *   link.c     the socket: connecting, the talk of the beginning, sending
 *   library.c  which libcupti, and its functions
 *   device.c   CUPTI's buffers and what is enabled in it; records.c what they become; names.c,
 *              clock.c
 *   contexts.c contexts' numbers by their handles
 *   activity.c CUPTI's activity functions, as the only subscriber or as one of several
 *   calls.c    callbacks: correlations, calls, resources
 *   owner.c    whether the agent or the program itself uses CUPTI
 */
#ifndef CT_STATE_H
#define CT_STATE_H

#include "../common/compat.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "../../wire/agent_wire.h"
#include "../common/descriptor.h"
#include "cupti.h"
#include "faults.h"
#include "../common/meet.h"
#include "queue.h"

enum state { IDLE = 0, STARTING, RUNNING, STOPPING };

struct func {
	uint16_t row;
	uint8_t flags; /* AGENT_F_*; 0: of no interest */
	struct agent_call *call;
};
#define FUNCS_MAX 2048 /* callback ids of a domain */

struct agent {
	_Atomic int state;
	_Atomic bool fatal;    /* CUPTI gave up; `fatal_text` and `fatal_code` say why */
	_Atomic bool finalize; /* the next thread that leaves a call ends CUPTI */
	_Atomic bool finalized;
	_Atomic int finalize_err;
	uint32_t pid;
	_Atomic int attached; /* how often, in this process */
	bool early;	      /* the driver is being started: CUPTI has nothing to give out yet */
	struct cupti cupti;
	uint32_t faults;
	void *subscriber;
	/* CUPTI is shared with another profiler: the agent must neither change its settings nor end
	 * CUPTI */
	bool shared;
	struct agent_start want;
	uint32_t clock;	       /* enum agent_clock: which is used */
	uint32_t kinds;	       /* those of want.kinds that could be enabled */
	struct func *funcs[3]; /* by domain */
	_Atomic uint64_t dropped, bad_time, too_deep;
	/* when a child that shares the memory was first seen to make a call, which is not recorded; 0: none was */
	_Atomic uint64_t child_ns;
	bool child_told;
	/* nodes of graphs were recorded, in this attach or an earlier one */
	_Atomic bool graphs;
	/* Records of kernels were ended, and CUPTI was not: see enable_kinds(). */
	bool kernels_ended;
	_Atomic bool kernels_asked; /* the next thread that leaves a call begins them again */
	_Atomic int kernels_begin; /* how many threads look at that, or begin them, at this moment */
	int fatal_code;
	char fatal_text[256];
};
extern struct agent agent;

uint32_t agent_tid(void);
/* A record of n bytes in the queue with its head filled in; NULL: no room (counted).
 * queue_commit() follows. */
void *agent_record(unsigned int kind, size_t n, uint64_t start_ns, uint64_t end_ns, uint32_t tid);
void agent_wake(void);				/* the agent's thread looks at the queue now */
bool agent_is_object(uint64_t lo, uint64_t hi); /* the object in this range is one of ours */

/* ---- link.c: only for the thread that owns the agent ---- */
struct how {
	struct meet meet;
	char cupti[512];
};
int link_parse(const char *text, struct how *);
/* Returns 0 or -errno, before that time (clock_now()). Takes ownership of a socket that `how` names. */
int link_connect(const struct how *, uint64_t until_ns);
void link_close(void);
void link_forget(void); /* in a forked child */
int link_fd(void);	/* -1: none */
void link_stop(void);	/* from any thread: the agent ends as if the peer were gone */
int link_hello(const struct how *);
int link_begin(void); /* receives what is wanted into `agent`; 0 or -errno */
int link_started(int err);
void link_say(enum meet_level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sends the queue's records, and waits for room at most wait_ms in all. Returns 0: all were sent;
 * -EAGAIN: not all; -errno: the peer is gone. */
int link_send(int wait_ms);
int link_asked(void); /* 1: the agent shall stop (or the peer is gone) */
void link_bye(int err, int wait_ms);

/* ---- library.c ---- */
/* 0, or -errno and why */
int library_find(struct cupti *, const char *wanted, char *why, size_t size);
const char *library_error(int result);
void library_reset(void); /* in a forked child */
/* the name of a profiler that the process has loaded; "": no known one */
void library_tool(char *name, size_t size);

/* ---- device.c, records.c ---- */
int device_enable(void); /* subscribes first; returns 0, or -errno after a link_say() */
/* all: also what can deadlock, because cuptiFinalize will not follow */
void device_disable(bool all);
void device_flush(bool all);
/* Returns whether CUPTI has asked for a buffer since the last time when it had all of them. It gives none back that
 * has a record which is not complete, or comes after one: a kernel that runs for long, or one that CUPTI takes to
 * run for ever. */
bool device_starved(void);
/* Takes all buffers back from CUPTI: waits a moment for the records that are not complete. Kinds
 * have been disabled, where that is possible. */
void device_empty(void);
/* Restores the settings of CUPTI that the agent has changed, as far as this is possible. */
void device_restore(void);
void device_rest(void);	     /* gives its memory back */
void device_reset(void);     /* in a forked child: its locks */
void device_tell_lost(void); /* a CT_LOST for what was dropped since the last */
void records_reset(void);
void records_convert(const void *record);

/* ---- owner.c ---- */
/* From now on the program's own use of CUPTI is seen (owner_unwatch(): not any more). */
void owner_watch(void);
void owner_unwatch(void);
void owner_look(void); /* once a second, in the agent's thread */
/* Takes CUPTI for the agent. Returns false if the program uses it. */
bool owner_claim(void);
bool owner_holds(void); /* the agent may use CUPTI */
/* Returns when the program asked for CUPTI, if a call of it waits until the agent has withdrawn;
 * else 0. */
uint64_t owner_asked(void);
void owner_give(void);	   /* the agent has withdrawn: the call continues */
bool owner_was_used(void); /* the program has used CUPTI */
void owner_reset(void);	   /* in a forked child */

/* ---- refusals.c ---- */
enum refusal {
	REFUSED_KERNELS,
	REFUSED_RECORDS,
	REFUSED_CALLBACKS,
	REFUSED_TIDS,
	REFUSED_FLUSH,
	REFUSED_DROPPED,
	REFUSED_SETTINGS,
	REFUSED_END,
	REFUSALS
};
/* A function of CUPTI's has returned this; 0: it has done it. From any thread. Returns whether it was refused. */
bool refused(enum refusal, int result);
void refusals_tell(void); /* in the agent's thread: what has not been said */
void refusals_reset(void);

/* ---- activity.c: each as the function of CUPTI's with that name ---- */
typedef void (*activity_request)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*activity_complete)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				  size_t valid);
bool activity_can_share(void); /* whether this version has all that sharing needs */
int activity_callbacks(activity_request, activity_complete);
/* Whose functions for buffers are registered: 1: ours, -1: the program's, 0: none */
int activity_registered(void);
int activity_enable(int kind, bool dump); /* dump: also records of what exists already */
int activity_disable(int kind);
int activity_api(int domain, uint32_t id, bool on); /* records of calls of one function */
/* false: there are no more */
bool activity_next(uint8_t *buffer, size_t valid, void **record);
size_t activity_dropped(void *context, uint32_t stream); /* since the last time */
int activity_system_tids(void);
int activity_time(uint64_t *ns);

/* ---- contexts.c ---- */
void contexts_reset(void); /* in a forked child: its lock */
/* sends it, with its handle if that is known; its times are those of its head */
void contexts_keep(const struct ct_context *);
void contexts_handle(const void *context, uint32_t id); /* from a callback */

/* ---- names.c ---- */
void names_reset(void);
void names_begin(void);			 /* of an attach */
uint64_t names_handle(const char *name); /* 0: none; sends its CT_NAME before the first use */
/* the same of a kernel's record; 0 also where the name may be gone */
uint64_t names_of_record(const char *name, uint64_t start_ns);
/* To be called when a call that unloads code begins (CUPTI first delivers the records that it has),
 * and when it has ended. */
void names_unloading(void);
void names_unloaded(void);

/* ---- clock.c ---- */
uint64_t clock_now(void); /* for CUPTI: CLOCK_MONOTONIC */
void clock_measure(void); /* the difference to CUPTI's own clock, if that clock is used */
/* the same, once, at the first records, because earlier measurements may have been made before the
 * clock was right */
void clock_settle(void);
void clock_reset(void);
uint64_t clock_ns(uint64_t cupti_ns); /* on CLOCK_MONOTONIC */

/* ---- calls.c ---- */
void calls_callback(void *user, int domain, uint32_t cbid, const void *data);
int calls_enable(void);
/* disables records of calls, for when CUPTI is not ended and would continue to make them */
void calls_disable(void);
void calls_forget(void);

#endif
