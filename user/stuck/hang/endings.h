/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endings.h - processes that signals end, put together from CT_SIGNAL records: who sent which, whether the process
 * ended by it, and the stacks of its threads. Of processes that end at about the same time and belong together
 * one incident is made. A signal after which the process lives on is none. Knows no process and no clock.
 */
#ifndef CT_ENDINGS_H
#define CT_ENDINGS_H

#include "../../util/types.h"
#include "../../../wire/cudatrace.h"

struct ended_process {
	uint32_t pid; /* as users see it; so is `sender`, 0: not known */
	uint32_t tgid, parent, sender;
	uint32_t sender_tgid;
	uint64_t begun_ns;
	uint64_t sent_ns, ended_ns; /* ended_ns 0: it has not */
	uint64_t address;	    /* by the kernel: of a fault */
	int status;		    /* as wait(2) returns it; -1: not known */
	uint8_t signal, by;	    /* enum ct_signal_by */
	bool handled;		    /* it has a handler for it */
	bool doomed;		    /* the signal ends its threads: nothing can keep it alive */
	char name[CT_COMM_LEN + 1], sender_name[CT_COMM_LEN + 1];
	struct ct_signal **threads; /* CT_SIGNAL_THREAD */
	size_t nthreads, left_out;  /* left_out: threads for whose stack there was no room */
	/* what the caller knows of it */
	int rank; /* -1: not known */
	uint64_t hash;
	uint64_t hang; /* the number of the hang that it was a part of; 0: none */
	const char *hang_word;
};

struct ended;

struct ended *ended_open(void);	  /* NULL: no memory */
void ended_close(struct ended *); /* takes NULL */

/* *fresh: the process, if nothing was known of it; valid until the next call. Returns 0, -ENOMEM, or -ENOSPC: there are
 * so many at once that this one is not looked at. */
int ended_record(struct ended *, const struct ct_signal *, struct ended_process **fresh);

enum ended_due {
	ENDED_NOTHING,
	ENDED_LOOK, /* a process ends: what others do should be looked at now; once an incident */
	ENDED_TELL, /* an incident is complete: ended_list() */
};
/* last: nothing more will come. watched: is it a process that matters? */
enum ended_due ended_due(struct ended *, uint64_t now_ns, bool last,
			 bool (*watched)(void *ctx, const struct ended_process *), void *ctx);
/* After ENDED_TELL: the processes of the incident, that which was sent a signal first before the others. Valid
 * until ended_forget(), which must follow. */
size_t ended_list(const struct ended *, const struct ended_process **list);
void ended_forget(struct ended *);
/* After ENDED_LOOK and ENDED_TELL: does it belong to the incident that was told before, as ranks that a launcher ends
 * some seconds after one of them has ended? */
bool ended_goes_on(const struct ended *);
/* After ENDED_LOOK: that which was sent a signal first. */
const struct ended_process *ended_first(const struct ended *);
/* Is it ending, or has it ended? */
bool ended_has(const struct ended *, uint32_t pid);

/* Was it ended by the signal itself, and not by what its handler did? */
bool ended_by_signal(const struct ended_process *);

#endif
