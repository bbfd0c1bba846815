/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * snapshot.c - see snapshot.h.
 *
 * A round reads the registers of all threads, then the stacks of those that do not run, then the
 * registers again. Who was off the CPU both times and has not been switched in between has not
 * run: its stack was read in peace. The next round takes samples of those of whom that is not
 * certain, and so on in turns.
 */
#include "../../util/table/array.h"
#include "../../util/now.h"
#include "snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../proc/target.h"
#include "bpf_maps.h"
#include "../discover/maps.h"

#define ROUNDS 10
#define STACK_MAX (256u << 10)	/* bytes read of one thread's stack */
#define STACKS_MAX (256u << 20) /* bytes kept of all */
#define SAMPLE_WAIT_MS 50
#define OPEN_MAX 64		      /* processes that are open at a time */
#define SAMPLING_MAX_NS 2000000000ULL /* for all threads of a snapshot together */

struct work {
	struct snapshot *snap;
	const struct snapshot_from *from;
	struct target **targets; /* by process; NULL: not open */
	bool *refused;		 /* the same: not to be had */
	size_t open[OPEN_MAX];	 /* processes that were opened last */
	size_t nopened;
	uint8_t *stack; /* STACK_MAX bytes */
	uint32_t *done; /* tids that are through; the first ones are sorted */
	size_t ndone, nsorted;
	uint64_t stacks, sampled_ns;
};

/* ---- which processes, and where their CUDA is ---- */

struct gather {
	struct snapshot *snap;
	const struct snapshot_from *from;
};

static int snapshot_by_address(const void *a, const void *b)
{
	const struct snapshot_func *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int by_pid(const void *a, const void *b)
{
	const struct snapshot_process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* The functions of a file that lie in this mapping of it. */
static int add_funcs(struct snapshot_process *p, const struct probe_file *f, const struct ct_vma *v)
{
	uint64_t offset = v->pgoff << 12, len = v->end - v->start;
	struct snapshot_func *funcs;

	if (!array_room(p->code, p->ncode))
		return -ENOMEM;
	p->code[p->ncode++] = (struct snapshot_range){ v->start, v->end };
	funcs = realloc(p->funcs, (p->nfuncs + (size_t)f->scan.nprobes + 1) * sizeof(*funcs));
	if (!funcs)
		return -ENOMEM;
	p->funcs = funcs;
	for (int i = 0; i < f->scan.nprobes; i++) {
		const struct elf_probe *e = &f->scan.probes[i];

		if (e->offset < offset || e->offset - offset >= len)
			continue;
		funcs[p->nfuncs++] = (struct snapshot_func){
			.start = v->start + (e->offset - offset),
			.size = e->size,
			.func = e->func,
			.per_thread = e->per_thread,
		};
	}
	return 0;
}

static struct snapshot_process *snapshot_process_of(struct gather *g, pid_t pid)
{
	struct snapshot *s = g->snap;

	/* the mappings of a process follow each other; a process may be named twice */
	for (size_t i = s->nprocs, first = g->from->npids || !i ? 0 : i - 1; i-- > first;)
		if (s->procs[i].pid == pid)
			return &s->procs[i];
	if (!array_room(s->procs, s->nprocs))
		return NULL;
	s->procs[s->nprocs] = (struct snapshot_process){ .pid = pid };
	return &s->procs[s->nprocs++];
}

static int on_map(void *ctx, const struct ct_vma *v)
{
	struct gather *g = ctx;

	for (int i = 0; i < g->from->nfiles; i++) {
		const struct probe_file *f = g->from->files[i];
		struct snapshot_process *p;

		if (f->dev != v->dev || f->ino != v->ino || v->end <= v->start)
			continue;
		p = snapshot_process_of(g, (pid_t)v->pid);
		return p ? add_funcs(p, f, v) : -ENOMEM;
	}
	return 0;
}

static int gather_processes(struct snapshot *s, const struct snapshot_from *from)
{
	struct gather g = { .snap = s, .from = from };
	int n = from->npids ? 0 : maps_read(from->maps_fd, 0, on_map, &g);

	/* a process that cannot be listed now is left out */
	for (int i = 0; i < from->npids && (n >= 0 || n == -EAGAIN); i++)
		n = maps_read(from->maps_fd, from->pids[i], on_map, &g);
	for (size_t i = 0; i < s->nprocs; i++)
		qsort(s->procs[i].funcs, s->procs[i].nfuncs, sizeof(*s->procs[i].funcs),
		      snapshot_by_address);
	if (s->nprocs)
		qsort(s->procs, s->nprocs, sizeof(*s->procs), by_pid);
	return n < 0 && n != -EAGAIN ? n : 0;
}

/* ---- threads ---- */

enum snapshot_began snapshot_began(const struct snapshot_thread *t, uint64_t sp, bool exact)
{
	size_t n = t->nreach < CT_REACHES ? t->nreach : CT_REACHES;
	bool noted = false;

	for (int i = 0; i < CT_MAX_FRAMES; i++)
		if (t->calls[i] && (exact ? t->calls[i] == sp : t->calls[i] > sp))
			return SNAPSHOT_SINCE;
	for (size_t i = 0; i < n; i++) {
		const struct ct_reach *r = &t->reach[i];

		/* sp may be the end of the stack itself */
		if (sp - 1 < r->start || sp - 1 >= r->end)
			continue;
		noted = true;
		if (r->sp > sp - exact)
			return SNAPSHOT_SINCE;
	}
	return !noted && t->nreach > CT_REACHES ? SNAPSHOT_UNKNOWN : SNAPSHOT_BEFORE;
}

bool snapshot_in_code(const struct snapshot_process *p, uint64_t addr)
{
	for (size_t i = 0; i < p->ncode; i++)
		if (addr >= p->code[i].start && addr < p->code[i].end)
			return true;
	return false;
}

/* Is there any sign of CUDA's code? */
static bool concerns(const struct snapshot_thread *t)
{
	uint64_t word;

	if (snapshot_in_code(t->process, t->ip) || snapshot_in_code(t->process, t->lr))
		return true;
	for (size_t at = 0; at + 8 <= t->len; at += 8) {
		memcpy(&word, t->stack + at, 8);
		if (snapshot_in_code(t->process, word))
			return true;
	}
	return false;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* In an earlier round. */
static bool is_done(const struct work *w, uint32_t tid)
{
	return w->nsorted && bsearch(&tid, w->done, w->nsorted, sizeof(tid), by_number);
}

static int keep(struct work *w, const struct snapshot_thread *t)
{
	struct snapshot *s = w->snap;

	if (!array_room(s->threads, s->nthreads))
		return -ENOMEM;
	s->threads[s->nthreads++] = *t;
	w->stacks += t->len;
	return 0;
}

/* Keeps what was found out about a thread, if it matters. Takes t->stack over. */
static int snapshot_finish(struct work *w, struct snapshot_thread *t)
{
	if (!array_room(w->done, w->ndone))
		goto no_memory;
	w->done[w->ndone++] = t->tid;
	if (!w->snap->all && !concerns(t)) {
		free(t->stack);
		return 0;
	}
	if (!keep(w, t))
		return 0;
no_memory:
	free(t->stack);
	return -ENOMEM;
}

static struct snapshot_process *find_process(struct snapshot *s, const struct ct_thread *r)
{
	struct snapshot_process want = { .pid = (pid_t)r->h.ns_tgid };

	return bsearch(&want, s->procs, s->nprocs, sizeof(want), by_pid);
}

/* The process, open. NULL: it is not to be had. Each takes a descriptor, so that not all are open at a time. */
static struct target *target_of(struct work *w, const struct snapshot_process *p)
{
	size_t i = (size_t)(p - w->snap->procs), *place = &w->open[w->nopened % OPEN_MAX];

	if (w->targets[i] || w->refused[i])
		return w->targets[i];
	if (w->nopened >= OPEN_MAX) {
		target_close(w->targets[*place]);
		w->targets[*place] = NULL;
	}
	if (target_open(&w->targets[i], p->pid, p->about.start_boottime_ns)) {
		w->targets[i] = NULL;
		w->refused[i] = true;
	}
	*place = i;
	w->nopened++;
	return w->targets[i];
}

/* The first thread of a process that is met tells about it. Another process under the same
 * number has nothing of it. */
static bool introduce(struct work *w, struct snapshot_process *p, const struct ct_thread *r)
{
	struct ct_process *a = &p->about;

	if (a->h.size)
		return a->start_boottime_ns == r->h.start_boottime_ns &&
		       !w->refused[p - w->snap->procs];
	*a = (struct ct_process){
		.h = { .size = sizeof(*a),
		       .kind = CT_PROCESS,
		       .pid = r->h.tgid,
		       .tid = r->h.tgid,
		       .start_ns = w->snap->at_ns,
		       .end_ns = w->snap->at_ns },
		.start_boottime_ns = r->h.start_boottime_ns,
		.cgroup_id = r->h.cgroup_id,
		.uid = r->h.uid,
		.gid = r->h.gid,
		.ns_pid = r->h.ns_tgid,
		.ppid = r->h.ppid,
	};
	memcpy(a->comm, r->h.comm, sizeof(a->comm));
	a->comm[sizeof(a->comm) - 1] = '\0';
	return target_of(w, p) != NULL;
}

/* The stack from sp on, as far as its mapping goes. */
static void read_stack(struct work *w, struct snapshot_thread *t, struct target *target)
{
	const struct target_map *m = target_map_at(target, t->sp);
	size_t len;

	if (!m && target_refresh(target) == 1)
		m = target_map_at(target, t->sp);
	if (!m || !m->read || w->stacks >= STACKS_MAX)
		return;
	len = m->end - t->sp < STACK_MAX ? m->end - t->sp : STACK_MAX;
	/* the end of a main thread's stack is always there, that of another mapping need not be */
	while (len >= 8 && target_read(target, t->sp, w->stack, len))
		len /= 2;
	if (len < 8)
		return;
	t->stack = malloc(len);
	if (!t->stack)
		return;
	memcpy(t->stack, w->stack, len);
	t->len = len;
}

static int by_place(const void *a, const void *b)
{
	const struct ct_saved *x = a, *y = b;

	return x->sp > y->sp ? -1 : x->sp < y->sp;
}

static bool has_saved(const struct snapshot_thread *t, uint64_t sp)
{
	for (int i = 0; i < t->nsaved; i++)
		if (t->saved[i].sp == sp)
			return true;
	return false;
}

/* Adds the return addresses of another moment. */
static void take_saved(struct snapshot_thread *t, const struct ct_thread *r)
{
	uint32_t n = r->p.nsaved < CT_MAX_FRAMES ? r->p.nsaved : CT_MAX_FRAMES;
	bool first = !t->nsaved;

	for (uint32_t i = n; i-- > 0;)
		if (first || !has_saved(t, r->p.saved[i].sp))
			t->saved[t->nsaved++] = r->p.saved[i];
	if (!first && t->nsaved)
		qsort(t->saved, (size_t)t->nsaved, sizeof(t->saved[0]), by_place);
}

static void take_probed(struct snapshot_thread *t, const struct ct_thread *r)
{
	memcpy(t->calls, r->p.calls, sizeof(t->calls));
	memcpy(t->reach, r->p.reach, sizeof(t->reach));
	t->nreach = r->p.nreach;
	memcpy(t->ending, r->p.ending, sizeof(r->p.ending));
	take_saved(t, r);
}

static void take_regs(struct snapshot_thread *t, const struct ct_thread *r)
{
	t->switches = r->h.switches;
	t->ip = r->h.ip;
	t->sp = r->h.sp;
	t->bp = r->h.bp;
	t->lr = r->h.lr;
	memcpy(t->regs, r->h.regs, sizeof(t->regs));
}

/* False: it did not run, or has ended. */
static bool sample(struct work *w, struct snapshot_thread *t, const struct ct_thread *r)
{
	uint64_t begin = now_ns();
	int err;

	if (w->sampled_ns >= SAMPLING_MAX_NS)
		return false;
	err = snapshot_sample(t, (pid_t)r->h.ns_tid, SAMPLE_WAIT_MS);
	w->sampled_ns += now_ns() - begin;
	return !err;
}

static int by_tid(const void *key, const void *row)
{
	uint32_t tid = *(const uint32_t *)key, other = ((const struct ct_thread *)row)->h.tid;

	return tid < other ? -1 : tid > other;
}

static int order_by_tid(const void *a, const void *b)
{
	return by_tid(&((const struct ct_thread *)a)->h.tid, b);
}

/* All threads, by tid. */
static ssize_t read_threads(struct work *w, struct ct_thread **rows)
{
	void *buf = NULL;
	ssize_t n = bpf_maps_read_iter(w->from->threads_fd, &buf);

	if (n < 0)
		return n;
	n /= (ssize_t)sizeof(**rows);
	*rows = buf;
	qsort(*rows, (size_t)n, sizeof(**rows), order_by_tid);
	return n;
}

/* Does what was read of a thread belong together? What was read of one off the CPU does if it
 * has not run since. A sample is of one moment, and how far out calls have begun is of a later one: a call
 * that the sample shows, and that none has begun outside of until then, is as old as it seemed. */
static bool still(const struct snapshot_thread *t, const struct ct_thread *r)
{
	return t->sampled || (!r->h.running && r->h.switches == t->switches);
}

/* What was noted of the thread by the moment behind its sample. */
static void take_later(struct snapshot_thread *t, const struct ct_thread *r)
{
	memcpy(t->reach, r->p.reach, sizeof(t->reach));
	t->nreach = r->p.nreach;
	memcpy(&t->ending[2], r->p.ending, sizeof(r->p.ending));
	take_saved(t, r);
}

static int confirm(struct work *w, struct snapshot_thread *read, size_t nread)
{
	struct ct_thread *rows = NULL;
	ssize_t n = read_threads(w, &rows);
	int err = n < 0 ? (int)n : 0;

	for (size_t i = 0; i < nread; i++) {
		struct snapshot_thread *t = &read[i];
		const struct ct_thread *r =
			err ? NULL : bsearch(&t->tid, rows, (size_t)n, sizeof(*rows), by_tid);

		if (r && still(t, r)) {
			if (t->sampled)
				take_later(t, r);
			err = snapshot_finish(w, t);
		} else {
			free(t->stack);
		}
	}
	free(rows);
	return err;
}

/* One round. Returns how many threads were still to do, or -errno. The last one counts those
 * that still are as missed. */
static int snapshot_look(struct work *w, int round)
{
	struct snapshot_thread *read = NULL;
	size_t nread = 0;
	struct ct_thread *rows = NULL;
	ssize_t n = read_threads(w, &rows);
	int err = n < 0 ? (int)n : 0, todo = 0;

	if (w->ndone > w->nsorted)
		qsort(w->done, w->ndone, sizeof(*w->done), by_number);
	w->nsorted = w->ndone;
	for (ssize_t i = 0; i < n && !err; i++) {
		const struct ct_thread *r = &rows[i];
		struct snapshot_process *p = r->h.ns_tid ? find_process(w->snap, r) : NULL;
		struct snapshot_thread t = { .process = p,
					     .tid = r->h.tid,
					     .shown_tid = (pid_t)r->h.ns_tid };

		if (!p || is_done(w, r->h.tid) || !introduce(w, p, r))
			continue;
		todo++;
		take_probed(&t, r);
		if (round == ROUNDS) {
			t.missed = true;
			err = keep(w, &t);
			continue;
		}
		if (round % 2 ? !sample(w, &t, r) : r->h.running)
			continue;
		if (!t.sampled) {
			take_regs(&t, r);
			struct target *target = target_of(w, p);

			if (target)
				read_stack(w, &t, target);
		}
		err = array_room(read, nread) ? 0 : -ENOMEM;
		if (err)
			free(t.stack);
		else
			read[nread++] = t;
	}
	free(rows);
	if (err)
		for (size_t i = 0; i < nread; i++)
			free(read[i].stack);
	else
		err = confirm(w, read, nread);
	free(read);
	return err ? err : todo;
}

int snapshot_take(struct snapshot *s, const struct snapshot_from *from)
{
	struct snapshot_from chosen = *from;
	struct work w = { .snap = s, .from = &chosen };
	int err;

	*s = (struct snapshot){ .all = s->all, .only = s->only, .nonly = s->nonly };
	if (s->nonly) {
		chosen.pids = s->only;
		chosen.npids = s->nonly;
	}
	s->at_ns = now_ns();
	err = gather_processes(s, &chosen);
	if (err || !s->nprocs)
		return err;
	w.targets = calloc(s->nprocs, sizeof(*w.targets));
	w.refused = calloc(s->nprocs, sizeof(*w.refused));
	w.stack = malloc(STACK_MAX);
	if (!w.targets || !w.refused || !w.stack)
		err = -ENOMEM;
	for (int round = 0, todo = 1; round <= ROUNDS && todo > 0 && !err; round++) {
		size_t before = w.ndone;

		todo = snapshot_look(&w, round);
		if (todo < 0)
			err = todo;
		else
			todo -= (int)(w.ndone - before);
	}
	for (size_t i = 0; w.targets && i < s->nprocs; i++)
		target_close(w.targets[i]);
	free(w.targets);
	free(w.refused);
	free(w.stack);
	free(w.done);
	return err;
}

void snapshot_free(struct snapshot *s)
{
	for (size_t i = 0; i < s->nthreads; i++)
		free(s->threads[i].stack);
	for (size_t i = 0; i < s->nprocs; i++) {
		free(s->procs[i].funcs);
		free(s->procs[i].code);
	}
	free(s->threads);
	free(s->procs);
	memset(s, 0, sizeof(*s));
}
