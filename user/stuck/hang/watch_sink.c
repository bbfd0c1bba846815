/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch_sink.c - the sink behind `cudatrace watch`: several looks in the time of a hang, at the threads that are inside
 * calls and at communicators, as `cudatrace stuck` makes them; what the looks come to is hang.c's. The
 * records of the trace say what goes on and what ranks ask for, and the last of them are kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../flow/sink.h"
#include "../../resolve/stacks/object.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "../../util/option/option.h"
#include "../../util/table/array.h"
#include "../../util/table/hash_map.h"
#include "../stuck.h"
#include "../stuck_nccl.h"
#include "../stuck_threads.h"
#include "evidence.h"
#include "hang_proc.h"
#include "hang_stacks.h"

#define LOOKS 4 /* in the time of a hang, and not farther apart than... */
#define LOOK_MOST_NS 4000000000ULL
#define LOOK_LEAST_NS 50000000ULL
#define RING_BYTES (64ULL << 20)
#define PIDS_MAX 4096
#define FAULTS_MAX 256
#define SEARCHES_MAX 3 /* of a process */
/* calls that make communicators are seen in the processes that are traced */
#define SEARCH_NS (60 * SECOND)
#define KNOW_NS (10 * SECOND)  /* how old what is known of mappings may be */
#define GONE_NS (10 * SECOND)  /* for so long it is known what an ended process was */
#define OTHERS_NS (3 * SECOND) /* for the stacks of others, when a process ends */

struct watch_options {
	uint64_t over_ns, last_ns, most;
	const char *dump;
	bool json;
};

struct fault {
	uint64_t hash;
	bool circle; /* else what they ask for differs */
};

struct watch {
	const struct watch_options *how;
	const struct sink_opts *opts;
	struct objects *objects;
	struct stuck_look *look;
	struct stuck_nccl *nccl;
	struct asked *asked;
	struct hang *hang;
	struct evidence *evidence;
	struct ring_buf *ring;
	struct ct_clock clock;
	struct out null; /* of what is only asked for */
	uint64_t looked_ns, flushed_ns;
	uint32_t *pids; /* that were concerned, and run */
	size_t npids;
	struct hang_proc *procs;
	size_t nprocs;
	struct hang_call *calls;
	size_t ncalls;
	struct fault *faults;
	size_t nfaults;
	struct hash_map traced; /* of pids, where only some processes are traced */
	uint64_t nhangs;
	/* processes that signals end */
	struct ended *ended;
	struct stuck_stacks *kept; /* of those that may be gone when their stacks are told */
	int others_fd;		   /* stacks of others, taken when the signal came; -1: none */
	uint64_t nended;
	bool crowded; /* it was said that there were too many */
	bool found_comm;
	int error;
};

struct traced {
	uint32_t pid;
	unsigned int searched; /* how often its communicators were looked for once more */
	uint64_t gone_ns;      /* when its end was seen; 0: it runs */
};

/* ---- records ---- */

static int keep(struct watch *w, const struct ct_hdr *h)
{
	if (h->kind == CT_CLOCK && !h->pid && h->size == sizeof(w->clock))
		memcpy(&w->clock, h, sizeof(w->clock));
	if (!w->ring || (h->kind == CT_HOLE && h->flags & CT_F_FINAL))
		return 0;
	return ring_buf_record(w->ring, h);
}

static bool is_call(const struct ct_hdr *h)
{
	return h->kind == CT_CALL && !(h->flags & (CT_F_HIDDEN | CT_F_PENDING | CT_F_UNFINISHED));
}

static void trace(struct watch *w, uint32_t pid)
{
	bool made;
	struct traced *t = hash_map_get(&w->traced, &pid, &made);

	if (t)
		t->gone_ns = 0;
}

/* Reads what the process has mapped, while it is there. */
static void know(struct watch *w, uint32_t pid, uint64_t every_ns)
{
	const struct snapshot_process about = { .pid = (pid_t)pid };

	if (w->evidence)
		stuck_stacks_know(w->kept, &about, now_ns(), every_ns);
}

/* It is forgotten soon: there is room for so many, and a watch lasts for days. But which signal has ended it may be told
 * after its end. */
static void forget(struct watch *w, uint32_t pid)
{
	struct traced *t = hash_map_find(&w->traced, &pid);

	if (t && !t->gone_ns)
		t->gone_ns = now_ns();
}

static void learn(struct watch *w, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	uint32_t pid = ev->proc->shown_pid;

	if ((h->kind == CT_PROCESS || h->kind == CT_EXEC) && pid) {
		trace(w, pid);
		know(w, pid, 0);
	} else if (h->kind == CT_EXIT) {
		forget(w, pid);
	}
	if (h->kind == CT_SCOPE_END && ((const struct ct_scope *)h)->kind == CT_SCOPE_COMMUNICATOR)
		w->found_comm = true;
	/* a query says nothing about what goes on: whoever waits may ask again and again */
	if (is_call(h) && api_funcs[((const struct ct_call *)h)->func].class != API_QUERY)
		hang_progress(w->hang, pid, h->end_ns, false);
	else if (kind_is(h->kind, KIND_WORK))
		hang_progress(w->hang, pid, h->end_ns, true);
}

/* Does it use CUDA? Other programs that a job starts are ended all the time. */
static bool is_known(const struct watch *w, uint32_t pid)
{
	int rank;

	return hash_map_find(&w->traced, &pid) || hang_seat(w->hang, pid, &rank);
}

/* A signal that ends a process: its communicator and its hang are known now. */
static int take_signal(struct watch *w, const struct ct_signal *s)
{
	struct ended_process *p;
	const struct hang_incident *a;
	int err;

	/* on a whole machine programs are ended all the time: only those count that are known */
	if (!w->opts->chosen && s->what == CT_SIGNAL_SENT && !is_known(w, s->shown_tgid))
		return 0;
	err = ended_record(w->ended, s, &p);
	if (err == -ENOSPC && !w->crowded) {
		w->crowded = true;
		msg_warn(
			"more processes were sent signals at once than are looked at: not all that "
			"end are reported");
	}
	if (err || !p)
		return err == -ENOSPC ? 0 : err;
	p->hash = hang_seat(w->hang, p->pid, &p->rank);
	a = hang_of(w->hang, p->pid);
	if (a) {
		p->hang = a->number;
		p->hang_word = hang_word(a);
	}
	return 0;
}

static int watch_event(struct sink *s, const struct event *ev)
{
	struct watch *w = s->priv;
	int err;

	if (ev->rec->kind == CT_SIGNAL)
		return take_signal(w, (const struct ct_signal *)ev->rec);
	err = keep(w, ev->rec);

	if (!err)
		err = asked_event(w->asked, ev);
	if (err)
		return err;
	learn(w, ev);
	return is_call(ev->rec) || kind_is(ev->rec->kind, KIND_DEVICE);
}

/* ---- looks ---- */

/* Loading code takes its time: it may be compiled. */
static bool may_hang(uint16_t func)
{
	uint8_t class = func < api_nfuncs ? api_funcs[func].class : API_INTERNAL;

	return class != API_MODULE && class != API_INTERNAL && class != API_OPERATOR &&
	       class != API_RANGE && class != API_MARK;
}

static int add_pid(struct watch *w, uint32_t pid)
{
	for (size_t i = 0; i < w->npids; i++)
		if (w->pids[i] == pid)
			return 0;
	if (w->npids == PIDS_MAX)
		return 0;
	if (!array_room(w->pids, w->npids))
		return -ENOMEM;
	w->pids[w->npids++] = pid;
	return 0;
}

static uint32_t pid_of(const struct stuck_row *r)
{
	return r->shown_pid ? (uint32_t)r->shown_pid : r->call->h.pid;
}

static int take_calls(struct watch *w, const struct stuck_row *rows, int n)
{
	int err = 0;

	free(w->calls);
	w->calls = NULL;
	w->ncalls = 0;
	for (int i = 0; i < n && !err; i++) {
		const struct stuck_row *r = &rows[i];
		struct hang_call *c;

		if (r->gone || r->unsure || !may_hang(r->call->func))
			continue;
		c = array_add(w->calls, w->ncalls);
		if (!c)
			return -ENOMEM;
		c->pid = pid_of(r);
		trace(w, c->pid);
		c->tid = r->shown_tid ? (uint32_t)r->shown_tid : r->call->h.tid;
		c->since_ns = r->call->h.start_ns;
		strncpy(c->name, api_funcs[r->call->func].name, sizeof(c->name) - 1);
		if (w->looked_ns > c->since_ns && w->looked_ns - c->since_ns >= w->how->over_ns / 2)
			err = add_pid(w, c->pid);
	}
	return err;
}

static bool has_long_call(const struct watch *w, uint32_t pid)
{
	for (size_t i = 0; i < w->ncalls; i++)
		if (w->calls[i].pid == pid && w->looked_ns > w->calls[i].since_ns &&
		    w->looked_ns - w->calls[i].since_ns >= w->how->over_ns)
			return true;
	return false;
}

/* What the processes are at; those that are gone are given once. */
static int take_procs(struct watch *w, const struct nccl_job *job)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < job->n && !err; i++)
		err = add_pid(w, job->members[i].pid);
	free(w->procs);
	w->procs = NULL;
	w->nprocs = 0;
	for (size_t i = 0; i < w->npids && !err; i++) {
		struct hang_proc *p = array_add(w->procs, w->nprocs);

		if (!p)
			return -ENOMEM;
		hang_proc_read(p, (pid_t)w->pids[i], has_long_call(w, w->pids[i]));
		if (p->state)
			w->pids[kept++] = w->pids[i];
	}
	w->npids = kept;
	return err;
}

static bool is_traced(const struct watch *w, uint32_t pid)
{
	return !w->opts->chosen || hash_map_find(&w->traced, &pid);
}

static bool has_traced(const struct watch *w, const struct nccl_job *j, uint64_t hash)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->members[i].hash == hash && is_traced(w, j->members[i].pid))
			return true;
	return false;
}

/* Leaves out the members for which `stays` is false. */
static void narrow(const struct watch *w, struct nccl_job *j, const struct hang_incident *a)
{
	size_t n = 0;

	for (size_t i = 0; i < j->n; i++) {
		bool stays = a ? false : has_traced(w, j, j->members[i].hash);

		for (size_t k = 0; a && k < a->npids && !stays; k++)
			stays = a->pids[k] == j->members[i].pid;
		if (stays)
			n++;
		else
			j->members[i].nranks = -2;
	}
	if (n == j->n)
		return;
	n = 0;
	for (size_t i = 0; i < j->n; i++) {
		if (j->members[i].nranks != -2)
			j->members[n++] = j->members[i];
		else
			nccl_threads_free(j->members[i].threads, j->members[i].nthreads);
	}
	j->n = n;
}

static void take_fault(void *ctx, uint64_t hash, const char *fault)
{
	bool circle = !strcmp(fault, "circle"), differs = !strcmp(fault, "arguments");
	struct watch *w = ctx;
	struct fault *f = NULL;

	if ((circle || differs) && w->nfaults < FAULTS_MAX)
		f = array_add(w->faults, w->nfaults);
	if (f)
		*f = (struct fault){ hash, circle };
}

static bool has_fault(const struct watch *w, uint64_t hash, bool circle)
{
	for (size_t i = 0; i < w->nfaults; i++)
		if (w->faults[i].hash == hash && w->faults[i].circle == circle)
			return true;
	return false;
}

static bool differs(void *ctx, uint64_t hash)
{
	return has_fault(ctx, hash, false);
}

static bool circles(void *ctx, uint64_t hash)
{
	return has_fault(ctx, hash, true);
}

/* May any rank wait for another one? */
static bool is_any_still(const struct watch *w, const struct nccl_job *j)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->members[i].still_ns && has_long_call(w, j->members[i].pid))
			return true;
	return false;
}

/* What calls say of ranks that stand still. */
static int ask(struct watch *w, uint64_t now)
{
	const struct asked_ear ear = { .fault = take_fault, .ctx = w };
	int n;

	free(w->faults); /* array_add() makes room in a list from its first item on */
	w->faults = NULL;
	asked_listen(w->asked, &ear);
	n = asked_print(w->asked, now, w->how->over_ns, true, &w->null);
	asked_listen(w->asked, &(struct asked_ear){ 0 });
	out_flush(&w->null);
	return n < 0 ? n : 0;
}

static bool is_member(const struct nccl_job *j, uint32_t pid)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->members[i].pid == pid)
			return true;
	return false;
}

/* Is there a process with a long call, of which no communicator is known, though one may have been made meanwhile? */
static bool wants_search(struct watch *w, const struct nccl_job *j)
{
	bool wants = false;

	for (size_t i = 0; i < w->ncalls; i++) {
		uint32_t pid = w->calls[i].pid;
		struct traced *t = hash_map_find(&w->traced, &pid);

		if (!t || t->searched == SEARCHES_MAX || !has_long_call(w, pid) ||
		    is_member(j, pid))
			continue;
		t->searched++;
		wants = true;
	}
	return wants;
}

static int take_job(struct watch *w, const struct stuck_row *rows, int n, struct nccl_job *job)
{
	int err = stuck_nccl_look(w->nccl);

	w->looked_ns = now_ns();
	if (!err)
		err = stuck_nccl_job(w->nccl, w->how->over_ns, rows, (size_t)n, false, job);
	if (!err)
		narrow(w, job, NULL);
	return err;
}

/* ---- what is said ---- */

static void put_time(struct out *o, uint64_t realtime_ns)
{
	time_t at = (time_t)(realtime_ns / 1000000000);
	struct tm tm;
	char text[32];

	localtime_r(&at, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	out_fmt(o, "%s ", text);
}

static void say(struct watch *w, const struct evidence_of *of, const char *folder)
{
	const struct hang_incident *a = of->incident;
	struct out *o = w->opts->out;
	struct text claim = { 0 };

	if (w->how->json) {
		evidence_incident(o, of);
		return;
	}
	hang_claim(&claim, a, of->words);
	put_time(o, of->words->at_ns + w->opts->realtime_offset_ns);
	out_fmt(o, "%s %llu%s: ",
		a->kind == HANG_RANK_ENDED ? "ENDED"
		: a->at_work		   ? "no hang"
					   : "HANG",
		(unsigned long long)a->number, of->words->goes_on ? " goes on" : "");
	out_mem(o, claim.s, claim.len);
	out_char(o, '\n');
	if (folder)
		out_fmt(o, "  evidence: %s\n", folder);
	text_free(&claim);
}

/* A process without communicators, so that the sentence has its line. */
static int add_scene(struct nccl_job *scene, const struct hang_incident *a,
		     const struct stuck_row *rows, int nrows)
{
	for (size_t i = 0; i < a->nculprits; i++) {
		struct nccl_member *m = nccl_job_add(scene);

		if (!m)
			return -ENOMEM;
		m->pid = a->culprits[i].pid;
		m->nthreads = stuck_threads((pid_t)m->pid, rows, (size_t)nrows, true, &m->threads);
		if (m->nthreads < 0) {
			m->nthreads = 0;
			return -ENOMEM;
		}
	}
	return 0;
}

static int report(struct watch *w, const struct hang_incident *a, const struct stuck_row *rows,
		  int nrows, uint64_t now)
{
	struct nccl_job job = { 0 }, scene = { 0 };
	struct hang_words words = {
		.job = &scene, .gpu = w->opts->gpu, .at_ns = now, .traced = w->ring != NULL
	};
	struct evidence_of of = {
		.incident = a,
		.job = &job,
		.words = &words,
		.asked = w->asked,
		.over_ns = w->how->over_ns,
		.rows = rows,
		.nrows = (size_t)nrows,
		.source = w->opts->calls,
		.objects = w->objects,
		.ring = w->ring,
		.clock = &w->clock,
		.opts = w->opts,
	};
	int err = stuck_nccl_job(w->nccl, w->how->over_ns, rows, (size_t)nrows, true, &job);

	if (!err)
		err = add_scene(&scene, a, rows, nrows);
	if (!err) {
		narrow(w, &job, a);
		if (w->evidence && !a->at_work)
			words.folder =
				evidence_next(w->evidence, a, now + w->opts->realtime_offset_ns);
		w->nhangs += !a->at_work;
		/* said once it is there: whoever reads the line finds the folder; what could not be
		 * written has been reported */
		if (words.folder && evidence_take(w->evidence, &of))
			words.folder = NULL;
		say(w, &of, words.folder);
		err = out_flush(w->opts->out);
	}
	nccl_job_free(&job);
	nccl_job_free(&scene);
	return err;
}

/* ---- processes that signals end ---- */

static bool is_watched(void *ctx, const struct ended_process *p)
{
	return p->hash || is_known(ctx, p->pid);
}

static size_t add_one(uint32_t *pids, size_t n, uint32_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return n;
	if (n < HANG_PIDS_MAX)
		pids[n++] = pid;
	return n;
}

/* The other ranks of the job; where no job is known, all that are concerned. */
static size_t others_of(struct watch *w, uint64_t hash, uint32_t *pids)
{
	size_t n = hash ? hang_ranks(w->hang, hash, pids, HANG_PIDS_MAX) : 0;

	for (size_t i = 0; !hash && i < w->npids; i++)
		n = add_one(pids, n, w->pids[i]);
	for (int i = 0; !hash && i < w->opts->npids; i++)
		n = add_one(pids, n, (uint32_t)w->opts->pids[i]);
	return n;
}

/* The stacks of the others at the moment at which the first process ends. */
static int take_others(struct watch *w)
{
	struct stuck_row *rows;
	const struct ended_process *first = ended_first(w->ended);
	pid_t pids[HANG_PIDS_MAX];
	uint32_t found[HANG_PIDS_MAX];
	size_t n = others_of(w, first->hash, found), kept = 0;
	struct out o;
	int nrows, err;

	for (size_t i = 0; i < n; i++)
		if (!ended_has(w->ended, found[i]))
			pids[kept++] = (pid_t)found[i];
	nrows = stuck_look_now(w->look, &rows);
	if (nrows < 0)
		return nrows;
	if (w->others_fd >= 0)
		close(w->others_fd);
	w->others_fd = memfd_create("stacks", MFD_CLOEXEC);
	if (w->others_fd < 0)
		return -errno;
	err = out_open_fd(&o, w->others_fd, "stacks");
	if (err || !kept)
		return err ? err : out_close(&o);
	err = hang_stacks(w->opts->calls, w->objects, pids, (int)kept, rows, (size_t)nrows,
			  now_ns() + OTHERS_NS, &o);
	if (!err)
		return out_close(&o);
	out_close(&o);
	return err;
}

static struct hang_incident of_ended(struct watch *w, const struct ended_process *list, size_t n)
{
	struct hang_incident a = { .number = w->nended += !ended_goes_on(w->ended),
				   .kind = HANG_RANK_ENDED,
				   .since_ns = list[0].sent_ns,
				   .hash = list[0].hash,
				   .culprits_in_all = n };

	for (size_t i = 0; i < n; i++) {
		struct hang_culprit *c = &a.culprits[a.nculprits];

		a.npids = add_one(a.pids, a.npids, list[i].pid);
		if (a.nculprits == HANG_CULPRITS_MAX)
			continue;
		a.nculprits++;
		*c = (struct hang_culprit){ .pid = list[i].pid,
					    .rank = list[i].rank,
					    .doing = HANG_ENDED };
		memcpy(c->name, list[i].name, sizeof(c->name));
	}
	return a;
}

static int tell_ended(struct watch *w, uint64_t now)
{
	const struct ended_process *list;
	size_t n = ended_list(w->ended, &list), npids;
	struct hang_incident a = of_ended(w, list, n);
	struct nccl_job job = { 0 };
	uint32_t pids[HANG_PIDS_MAX];
	struct hang_words words = { .gpu = w->opts->gpu,
				    .traced = w->ring != NULL,
				    .at_ns = now,
				    .ended = list,
				    .goes_on = ended_goes_on(w->ended),
				    .nended = n };
	struct evidence_of of = {
		.incident = &a,
		.job = &job,
		.words = &words,
		.asked = w->asked,
		.over_ns = w->how->over_ns,
		.objects = w->objects,
		.kept = w->kept,
		.others_fd = w->others_fd,
		.ring = w->ring,
		.clock = &w->clock,
		.opts = w->opts,
	};
	int err = stuck_nccl_job(w->nccl, w->how->over_ns, NULL, 0, false, &job);

	npids = others_of(w, list[0].hash, pids);
	for (size_t i = 0; i < npids; i++)
		a.npids = add_one(a.pids, a.npids, pids[i]);
	if (!err) {
		narrow(w, &job, &a);
		if (w->evidence && !words.goes_on)
			words.folder =
				evidence_next(w->evidence, &a, now + w->opts->realtime_offset_ns);
		if (words.folder && evidence_take(w->evidence, &of))
			words.folder = NULL;
		say(w, &of, words.folder);
		err = out_flush(w->opts->out);
	}
	nccl_job_free(&job);
	ended_forget(w->ended);
	if (w->others_fd >= 0)
		close(w->others_fd);
	w->others_fd = -1;
	return err;
}

static int end_tick(struct watch *w, uint64_t now)
{
	switch (ended_due(w->ended, now, false, is_watched, w)) {
	case ENDED_LOOK: return w->evidence && !ended_goes_on(w->ended) ? take_others(w) : 0;
	case ENDED_TELL: return tell_ended(w, now);
	default: return 0;
	}
}

static void say_ended(struct watch *w, const struct hang_incident *a, uint64_t now)
{
	struct out *o = w->opts->out;
	uint64_t ns = now > a->since_ns ? now - a->since_ns : 0;

	if (w->how->json) {
		struct json j = json_to(o);

		json_open_object(&j, NULL);
		json_put_str(&j, "type", "hang_over");
		json_put_u64(&j, "start_ns", a->since_ns);
		json_put_u64(&j, "end_ns", now);
		json_put_u64(&j, "number", a->number);
		json_end(&j);
		out_char(o, '\n');
		return;
	}
	put_time(o, now + w->opts->realtime_offset_ns);
	out_fmt(o, "%s %llu is over after %llu.%llus\n", a->hung ? "HANG" : "no hang",
		(unsigned long long)a->number, (unsigned long long)(ns / 1000000000),
		(unsigned long long)(ns / 100000000 % 10));
}

static int judge(struct watch *w, const struct nccl_job *job, const struct stuck_row *rows,
		 int nrows, uint64_t now)
{
	const struct hang_look look = {
		.at_ns = now,
		.procs = w->procs,
		.nprocs = w->nprocs,
		.calls = w->calls,
		.ncalls = w->ncalls,
		.job = job,
		.differs = differs,
		.circles = circles,
		.ctx = w,
	};
	const struct hang_incident *list, *ended;
	int n = hang_look(w->hang, &look, &list), err = 0;
	size_t nended;

	if (n < 0)
		return n;
	nended = hang_ended(w->hang, &ended);
	for (size_t i = 0; i < nended; i++)
		say_ended(w, &ended[i], now);
	for (int i = 0; i < n && !err; i++)
		if (list[i].fresh)
			err = report(w, &list[i], rows, nrows, now);
	return err ? err : out_sync(w->opts->out);
}

static void forget_gone(struct watch *w)
{
	struct traced *t;
	uint64_t now = now_ns();

	hash_map_each(&w->traced, t) if (t->gone_ns && now - t->gone_ns > GONE_NS)
		hash_map_remove(&w->traced, t);
}

static int look(struct watch *w)
{
	struct nccl_job job = { 0 };
	struct stuck_row *rows;
	int n, err;

	if (w->found_comm)
		stuck_nccl_search(w->nccl);
	w->found_comm = false;
	w->nfaults = 0;
	forget_gone(w);
	n = stuck_look_now(w->look, &rows);
	err = n < 0 ? n : take_job(w, rows, n, &job);
	if (!err)
		err = take_calls(w, rows, n);
	if (!err && wants_search(w, &job)) {
		nccl_job_free(&job);
		stuck_nccl_search(w->nccl);
		err = take_job(w, rows, n, &job);
	}
	if (!err)
		err = take_procs(w, &job);
	if (!err && is_any_still(w, &job))
		err = ask(w, w->looked_ns);
	if (!err)
		err = judge(w, &job, rows, n, w->looked_ns);
	for (size_t i = 0; i < w->npids; i++)
		know(w, w->pids[i], KNOW_NS);
	for (int i = 0; i < w->opts->npids; i++)
		know(w, (uint32_t)w->opts->pids[i], KNOW_NS);
	nccl_job_free(&job);
	return err;
}

static int watch_tick(struct sink *s, uint64_t now_ns)
{
	struct watch *w = s->priv;
	uint64_t pause = w->how->over_ns / LOOKS;
	int err = 0;

	pause = pause > LOOK_MOST_NS ? LOOK_MOST_NS : pause < LOOK_LEAST_NS ? LOOK_LEAST_NS : pause;
	if (w->ring && now_ns - w->flushed_ns >= SECOND) {
		w->flushed_ns = now_ns;
		err = ring_buf_flush(w->ring, now_ns);
	}
	if (!err)
		err = end_tick(w, now_ns);
	if (err || (w->looked_ns && now_ns < w->looked_ns + pause))
		return err;
	return look(w);
}

/* ---- beginning and end ---- */

static const struct watch_options defaults = { .over_ns = 15 * SECOND,
					       .last_ns = 30 * SECOND,
					       .most = 10 };

static void watch_free(struct watch *w)
{
	stuck_look_close(w->look);
	stuck_nccl_close(w->nccl);
	asked_close(w->asked);
	hang_close(w->hang);
	evidence_close(w->evidence);
	ring_buf_close(w->ring);
	ended_close(w->ended);
	stuck_stacks_close(w->kept);
	if (w->others_fd >= 0)
		close(w->others_fd);
	objects_close(w->objects);
	hash_map_close(&w->traced);
	if (w->null.buf)
		out_close(&w->null);
	free(w->pids);
	free(w->procs);
	free(w->calls);
	free(w->faults);
	free(w);
}

static int open_all(struct watch *w)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || out_open_fd(&w->null, fd, "/dev/null"))
		return fd < 0 ? -errno : -ENOMEM;
	w->null.owned = true;
	w->objects = objects_open();
	w->nccl = stuck_nccl_open(NULL, 0);
	if (w->nccl)
		stuck_nccl_every(w->nccl, SEARCH_NS);
	w->asked = asked_open();
	w->hang = hang_open(w->how->over_ns);
	w->ended = ended_open();
	w->kept = w->objects ? stuck_stacks_open(w->objects) : NULL;
	if (!w->objects || !w->nccl || !w->asked || !w->hang || !w->ended || !w->kept ||
	    stuck_look_open(&w->look, w->opts->calls, w->objects))
		return -ENOMEM;
	if (!w->how->dump)
		return 0;
	w->evidence = evidence_open(w->how->dump, (unsigned int)w->how->most);
	if (!w->evidence)
		return -EINVAL;
	w->ring = w->how->last_ns ? ring_buf_open(w->how->last_ns, RING_BYTES) : NULL;
	return w->how->last_ns && !w->ring ? -ENOMEM : 0;
}

static int watch_open(struct sink *s, const struct sink_opts *opts)
{
	struct watch *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->opts = s->opts = opts;
	w->how = opts->own ? opts->own : &defaults;
	w->others_fd = -1;
	hash_map_open_of(&w->traced, struct traced, pid, 65536);
	for (int i = 0; i < opts->npids; i++)
		trace(w, (uint32_t)opts->pids[i]);
	err = open_all(w);
	if (err) {
		watch_free(w);
		return err;
	}
	s->priv = w;
	return 0;
}

static void say_totals(struct watch *w)
{
	struct out *o = w->opts->out;

	out_fmt(o, "%llu hang%s", (unsigned long long)w->nhangs, w->nhangs == 1 ? "" : "s");
	if (w->nended)
		out_fmt(o, ", %llu end%s by signals", (unsigned long long)w->nended,
			w->nended == 1 ? "" : "s");
	out_char(o, '\n');
}

static int watch_close(struct sink *s, const struct sink_end *end)
{
	struct watch *w = s->priv;
	struct asked_seen seen;
	int err = 0;

	if (!w)
		return 0;
	/* what ends with us is none of its own */
	while (strcmp(end->reason, "interrupted") != 0 && !err &&
	       ended_due(w->ended, now_ns(), true, is_watched, w) == ENDED_TELL)
		err = tell_ended(w, now_ns());
	asked_seen(w->asked, &seen);
	if (seen.cut)
		msg_warn("there were more communicators, or calls that wait, than are compared: "
			 "not all ranks that do not ask for the same were found");
	if (!w->how->json)
		say_totals(w);
	if (w->nhangs || w->nended)
		s->status = STUCK_SOME;
	watch_free(w);
	s->priv = NULL;
	return err ? err : s->opts->out->error;
}

static void watch_wants(const void *own, struct sink_wants *wants)
{
	wants->for_programs = ((const struct watch_options *)own)->json;
	wants->layers = api_layer(API_NCCL);
	wants->threads = true;
	wants->signals = true;
}

#define OPTION_STRUCT struct watch_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "hang", "TIME", DURATION(over_ns, 200 * MILLI, HOUR, SECOND, "time", "give seconds, or 500ms, 2m"), 0, "15s", "what does not go on for so long is a hang: 15 (seconds), 500ms, 2m" },
	{ 0, "dump", "DIR", TEXT(dump), 0, NULL,
	  "write a folder of evidence into DIR for each hang; nobody else may be able to write to DIR" },
	{ 0, "max-dumps", "N", COUNT(most, 1, 10000, "folders", NULL), 0, "10", "write so many folders at most",
	  RULES(NEEDS("dump", "--max-dumps limits what --dump writes: give --dump")) },
	{ 0, "last", "TIME", DURATION(last_ns, 0, HOUR, SECOND, "time", "give seconds, or 2m; 0 keeps nothing"), 0, "30s",
	  "with --dump: the trace of so long before the hang is a part of the evidence; 0: none",
	  RULES(NEEDS("dump", "--last is about what --dump writes: give --dump")) },
	{ 0, "format", "NAME", ENUM(json, "text", "json"), 0, "text", "text or json" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

const struct sink_ops sink_watch = {
	.name = "watch",
	.options = &options,
	.wants = watch_wants,
	.open = watch_open,
	.event = watch_event,
	.tick = watch_tick,
	.close = watch_close,
};
