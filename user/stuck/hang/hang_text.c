/* SPDX-License-Identifier: BSD-2-Clause */
/* hang_text.c - see hang_text.h. */
#include "hang_text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define NAMED_MAX 4 /* processes in a sentence */

static const char *const words[HANG_KINDS] = {
	[HANG_CALL] = "call-hangs",	   [HANG_ALL_IN] = "collective-hangs",
	[HANG_DIFFER] = "ranks-differ",	   [HANG_ABSENT] = "rank-absent",
	[HANG_CIRCLE] = "ranks-in-circle", [HANG_RANK_ENDED] = "rank-ended",
};

const char *hang_word(const struct hang_incident *a)
{
	return a->at_work ? "rank-at-work" : words[a->kind];
}

const char *hang_doing_word(enum hang_doing d)
{
	static const char *const doing[] = {
		[HANG_UNKNOWN] = "unknown",
		[HANG_ENDED] = "ended",
		[HANG_STOPPED] = "stopped",
		[HANG_DEBUGGED] = "in a debugger",
		[HANG_LOCK] = "holds lock",
		[HANG_INSIDE] = "inside call",
		[HANG_WAITS] = "waits",
		[HANG_COMPUTES] = "computes",
		[HANG_FILES] = "reads or writes",
		[HANG_CHILD] = "waits for a program",
		[HANG_OTHER_CALL] = "other calls",
	};

	return doing[d];
}

static void put_name(struct text *t, const char *name, size_t max)
{
	char copy[256];

	snprintf(copy, sizeof(copy), "%.*s", (int)(max < 255 ? max : 255), name);
	text_plain(t, copy, sizeof(copy));
}

static void put_count(struct text *t, uint64_t n, const char *one)
{
	text_u64(t, n);
	text_str(t, " ");
	text_str(t, one);
	text_str(t, n == 1 ? "" : "s");
}

/* "15.2s", of which the first digit behind the point is cut. */
static void put_time(struct text *t, uint64_t ns)
{
	text_u64(t, ns / 1000000000);
	text_str(t, ".");
	text_u64(t, ns / 100000000 % 10);
	text_str(t, "s");
}

/* "rank 3 (train, PID 12)", or "train (PID 12)" */
static void put_who(struct text *t, const struct hang_culprit *c)
{
	if (c->rank >= 0) {
		text_str(t, "rank ");
		text_u64(t, (uint64_t)c->rank);
		text_str(t, " (");
		put_name(t, c->name, sizeof(c->name));
		text_str(t, ", PID ");
	} else {
		put_name(t, c->name, sizeof(c->name));
		text_str(t, " (PID ");
	}
	text_u64(t, c->pid);
	text_str(t, ")");
}

/* The Python line at which it is: of the thread that is inside the call, else of the main thread. */
static const char *line_of(const struct hang_words *w, const struct hang_culprit *c)
{
	uint32_t tid = c->tid ? c->tid : c->pid;

	for (size_t i = 0; w->job && i < w->job->n; i++) {
		const struct nccl_member *m = &w->job->members[i];

		for (int k = 0; m->pid == c->pid && k < m->nthreads; k++)
			if (m->threads[k].tid == tid && m->threads[k].nframes)
				return m->threads[k].frames[0];
	}
	return NULL;
}

static void put_at(struct text *t, const struct hang_words *w, const struct hang_culprit *c)
{
	const char *line = line_of(w, c);

	if (!line)
		return;
	text_str(t, " at ");
	put_name(t, line, 255);
}

static void put_inside(struct text *t, const struct hang_culprit *c)
{
	text_str(t, "thread ");
	text_u64(t, c->tid);
	text_str(t, " is inside ");
	put_name(t, c->inside, sizeof(c->inside));
}

static void put_doing(struct text *t, const struct hang_words *w, const struct hang_culprit *c)
{
	switch (c->doing) {
	case HANG_ENDED: text_str(t, ", which has ended"); return;
	case HANG_STOPPED:
		text_str(t, ", which was stopped by a signal ('kill -CONT ");
		text_u64(t, c->pid);
		text_str(t, "' continues it)");
		break;
	case HANG_DEBUGGED:
		text_str(t, ", which a debugger");
		if (c->tracer) {
			text_str(t, " (PID ");
			text_u64(t, c->tracer);
			text_str(t, ")");
		}
		text_str(t, " has stopped");
		break;
	case HANG_LOCK:
	case HANG_INSIDE:
		text_str(t, ", whose ");
		put_inside(t, c);
		if (c->doing == HANG_LOCK)
			text_str(t, " and holds Python's lock");
		break;
	case HANG_WAITS:
		text_str(t, ", which waits");
		if (c->wait[0]) {
			text_str(t, " in ");
			put_name(t, c->wait, sizeof(c->wait));
		}
		break;
	case HANG_COMPUTES: text_str(t, ", which computes"); break;
	case HANG_FILES: text_str(t, ", which reads or writes files"); break;
	case HANG_CHILD: text_str(t, ", which waits for a program that it has started"); break;
	case HANG_OTHER_CALL: text_str(t, ", which makes other calls of CUDA"); break;
	default: break;
	}
	put_at(t, w, c);
}

static void put_culprits(struct text *t, const struct hang_incident *a, const struct hang_words *w)
{
	size_t n = a->nculprits < NAMED_MAX ? a->nculprits : NAMED_MAX;

	for (size_t i = 0; i < n; i++) {
		text_str(t, i ? "; " : "");
		put_who(t, &a->culprits[i]);
		put_doing(t, w, &a->culprits[i]);
	}
	if (a->culprits_in_all > n) {
		text_str(t, "; and ");
		text_u64(t, a->culprits_in_all - n);
		text_str(t, a->culprits_in_all - n == 1 ? " other" : " others");
	}
}

static void put_collective(struct text *t, const struct hang_incident *a)
{
	if (a->collective[0]) {
		put_name(t, a->collective, sizeof(a->collective));
		text_str(t, " #");
		text_u64(t, a->sequence);
		text_str(t, " of ");
	}
	text_str(t, "communicator ");
	text_hex(t, a->hash);
}

static void put_waiting(struct text *t, const struct hang_incident *a)
{
	put_count(t, (uint64_t)a->waiting, "rank");
	text_str(t, a->waiting == 1 ? " waits in " : " wait in ");
	put_collective(t, a);
	text_str(t, " for ");
}

/* A thread that is inside a call, and how many other processes have one. */
static void put_call(struct text *t, const struct hang_incident *a, const struct hang_words *w)
{
	const struct hang_culprit *c = &a->culprits[0];

	put_who(t, c);
	text_str(t, ": ");
	put_inside(t, c);
	if (c->doing == HANG_LOCK)
		text_str(t, " and holds Python's lock");
	put_at(t, w, c);
	if (a->culprits_in_all > 1) {
		text_str(t, ", and so are threads of ");
		put_count(t, a->culprits_in_all - 1, "other rank");
	}
	if (w->gpu)
		text_str(t, ", and no work of its device has completed");
}

/* ---- processes that signals ended ---- */

const char *hang_signal_word(int signal, char room[16])
{
	const char *word = sigabbrev_np(signal);

	if (word)
		snprintf(room, 16, "SIG%s", word);
	else
		snprintf(room, 16, "signal %d", signal);
	return room;
}

const char *hang_sender_word(uint8_t by)
{
	return by == CT_SIGNAL_BY_ITSELF   ? "itself"
	       : by == CT_SIGNAL_BY_KERNEL ? "kernel"
					   : "process";
}

static bool is_fault(const struct ended_process *p)
{
	return p->by == CT_SIGNAL_BY_KERNEL && (p->signal == SIGSEGV || p->signal == SIGBUS ||
						p->signal == SIGILL || p->signal == SIGFPE);
}

static void put_sender(struct text *t, const struct ended_process *p)
{
	if (is_fault(p)) {
		text_str(t, ", a fault at address ");
		text_hex(t, p->address);
	} else if (p->by == CT_SIGNAL_BY_KERNEL) {
		text_str(t, " of the kernel");
	} else if (p->by == CT_SIGNAL_BY_ITSELF) {
		text_str(t, ", which it sent itself");
	} else {
		text_str(t, " from ");
		put_name(t, p->sender_name, sizeof(p->sender_name));
		if (p->sender) {
			text_str(t, " (PID ");
			text_u64(t, p->sender);
			text_str(t, ")");
		}
	}
}

/* "rank 3 (train, PID 12) was ended by SIGABRT, which it sent itself, and so were 2 other processes" */
static void put_ended(struct text *t, const struct hang_incident *a, const struct hang_words *w)
{
	const struct ended_process *p = w->ended;
	uint64_t ns = p->ended_ns > p->sent_ns ? p->ended_ns - p->sent_ns : 0;
	size_t same = 0, others = w->nended - 1;
	char room[16];

	put_who(t, &a->culprits[0]);
	if (ended_by_signal(p)) {
		text_str(t, " was ended by ");
	} else {
		text_str(t, " ended ");
		put_time(t, ns);
		text_str(t, " after it was sent ");
	}
	text_str(t, hang_signal_word(p->signal, room));
	put_sender(t, p);
	for (size_t i = 1; i < w->nended; i++)
		same += p[i].signal == p->signal && p[i].sender_tgid == p->sender_tgid &&
			p->by == CT_SIGNAL_BY_PROCESS;
	if (others) {
		text_str(t, same == others ? "; the same ended " : "; after it signals ended ");
		put_count(t, others, "other");
	}
	if (p->hang) {
		text_str(t, "; it was a part of hang ");
		text_u64(t, p->hang);
		text_str(t, " (");
		text_str(t, p->hang_word);
		text_str(t, ")");
	}
}

void hang_claim(struct text *t, const struct hang_incident *a, const struct hang_words *w)
{
	uint64_t for_ns = w->at_ns > a->since_ns ? w->at_ns - a->since_ns : 0;

	if (a->kind == HANG_RANK_ENDED) {
		put_ended(t, a, w);
		return;
	}
	switch (a->kind) {
	case HANG_ABSENT:
		put_waiting(t, a);
		put_culprits(t, a, w);
		break;
	case HANG_CIRCLE:
		text_str(t, "ranks wait for each other in a circle, in ");
		put_collective(t, a);
		text_str(t, " and others: ");
		put_culprits(t, a, w);
		break;
	case HANG_DIFFER:
		text_str(t, "the ranks of communicator ");
		text_hex(t, a->hash);
		text_str(t, " do not call the same: ");
		put_culprits(t, a, w);
		break;
	case HANG_ALL_IN:
		text_str(t, "all ranks that were seen have begun ");
		put_collective(t, a);
		text_str(t, ", and it does not end");
		if (a->nculprits) {
			text_str(t, ": ");
			put_culprits(t, a, w);
		} else {
			text_str(t,
				 a->seen < a->nranks
					 ? ": a device or the network, or a rank of another machine"
					 : ": a device or the network, not a rank that is absent");
		}
		break;
	default: put_call(t, a, w);
	}
	text_str(t, ", for ");
	put_time(t, for_ns);
}

void hang_finding(struct finding *f, const struct hang_incident *a, const struct hang_words *w,
		  const char *claim, struct text *room)
{
	const struct hang_culprit *c = a->nculprits ? &a->culprits[0] : NULL;
	const char *line = c ? line_of(w, c) : NULL;
	size_t next;

	*f = (struct finding){
		.id = hang_word(a),
		.claim = claim,
		.pid = c ? c->pid : 0,
		.process = c ? c->name : NULL,
		.process_len = c ? strnlen(c->name, sizeof(c->name)) : 0,
		.rank = c && c->rank >= 0 ? c->rank : FINDING_UNKNOWN,
		.device = FINDING_UNKNOWN,
		.line = line,
		.line_len = line ? strlen(line) : 0,
		.share = 1,
		.share_error = FINDING_UNKNOWN,
		.confidence = w->gpu || a->kind == HANG_ABSENT || a->kind == HANG_RANK_ENDED
				      ? FINDING_MEASURED
				      : FINDING_INFERRED,
		.not_judged =
			w->gpu || a->kind == HANG_RANK_ENDED
				? NULL
				: "whether work of the devices completes is not known without "
				  "--gpu: the verdict rests on collectives that were begun "
				  "and on what threads wait in",
	};
	if (!w->folder)
		return;
	text_str(room, "cudatrace stuck --merge ");
	text_str(room, w->folder);
	text_str(room, "/hang.json");
	text_mem(room, "", 1);
	next = room->len;
	text_str(room, "cudatrace replay ");
	text_str(room, w->folder);
	text_str(room, "/flight.ctrace");
	text_mem(room, "", 1);
	if (room->bad)
		return;
	f->next = room->s;
	f->evidence = w->traced ? room->s + next : NULL;
}
