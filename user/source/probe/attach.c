/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.c - decides what goes into a set of links (one set per file, group and process), asks
 * links_*.c to make it, and takes everything off again.
 *
 * Two groups per file: class QUERY, from which functions can be taken off, and the rest, which
 * is never re-linked, so that a call that blocks never loses its return. What was taken off
 * comes back for short windows, in sets of its own (sampler.h). Closing one link waits for an
 * RCU grace period or two; hence all are closed in parallel.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../api/api.h"
#include "../../util/table/array.h"
#include "../../util/msg.h"
#include "../../util/thread.h"
#include "../owners.h"
#include "links.h"
#include "../../../wire/control.h"

#define CLOSE_THREADS 128
#define CLOSE_STACK (64 * 1024)
#define LINGER_US 200000 /* of replaced links, for the calls in flight */
/* likewise of those of a window: queries are short, and the probes cost as long as they are
 * there */
#define WINDOW_LINGER_US 2000

struct file_set {
	struct link_set links;
	struct elf_probe *probes;
	int nprobes;
	pid_t pid;
	enum attach_kind kind;
	unsigned generation;
	bool query, entry_only;
	bool window; /* of functions that were taken off: there while a window is open */
};

struct attach_file {
	struct file_set *sets;
	int nsets;
	pid_t *pids; /* for whom it was attached: processes, or 0 */
	int npids;
};

struct attach {
	enum attach_kind kind;
	struct attach_progs progs;
	const struct capture_plan *plan;
	struct probe_file **files;
	int nfiles;
	uint64_t muted[PLAN_WORDS]; /* functions taken off again */
	/* with plan->on_demand: functions that get probes, and those that get them now */
	uint64_t demanded[PLAN_WORDS], adding[PLAN_WORDS];
	/* functions of files, of those that are shown */
	uint64_t unseen[ATTACH_UNSEEN_END][PLAN_WORDS];
	bool sessions; /* no plain pairs where sessions are to be had */
	bool closing;  /* the links are with `closer`, which takes them off */
	pthread_t closer;
	int *fds, nfds;	     /* its */
	unsigned generation; /* of the links of windows: each newer than all before */
};

/* ---- attaching ---- */

/* May its probe be taken off? Then it is in the group that is made anew. */
static bool may_go(const struct attach *a, const struct elf_probe *p)
{
	return p->query || plan_has(a->plan->on_duty, p->func);
}

int attach_open(struct attach **out, enum attach_kind kind, const struct attach_progs *progs,
		const struct capture_plan *plan)
{
	struct attach *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->kind = kind;
	a->progs = *progs;
	a->plan = plan;
	*out = a;
	return 0;
}

struct group {
	struct attach *a;
	struct attach_file *af;
	struct probe_file *f;
	pid_t pid;
	enum attach_kind kind;
	bool query, entry_only, window;
	int nbad;
	const char *bad_name;
	int bad_err;
};

/* Attaches probes[0..n): in one set, or, where one of them spoils it, in as few as it takes to
 * leave that one out. */
static int attach_range(struct group *g, struct elf_probe *probes, int n)
{
	struct link_target t = { .file_fd = g->f->fd,
				 .probes = probes,
				 .nprobes = n,
				 .pid = g->pid,
				 .entry_only = g->entry_only,
				 .generation = g->window ? g->a->generation : 0 };
	struct file_set *set;
	struct link_set links;
	int err, bad;

	if (!n)
		return 0;
	err = links_make(g->kind, &g->a->progs, &t, &links, &bad);
	if (!err) {
		set = array_add(g->af->sets, g->af->nsets);
		if (!set) {
			links_close(&links);
			return -ENOMEM;
		}
		set->links = links;
		set->pid = g->pid;
		set->query = g->query;
		set->kind = g->kind;
		set->entry_only = g->entry_only;
		set->window = g->window;
		set->generation = t.generation;
		set->probes = calloc(n, sizeof(*probes));
		if (!set->probes)
			return -ENOMEM;
		memcpy(set->probes, probes, n * sizeof(*probes));
		set->nprobes = n;
		g->f->attached += g->window ? 0 : n;
		return 0;
	}
	/* The process is gone, or we are out of something: no probe is to blame. */
	if (err == -ESRCH || err == -ENOMEM || err == -EMFILE || err == -EPERM || err == -EACCES)
		return err;
	if (n == 1) {
		if (!g->nbad++) {
			g->bad_name = api_funcs[probes->func].name;
			g->bad_err = err;
		}
		return 0;
	}
	if (bad < 0 || bad >= n)
		bad = n / 2;
	else if (bad == 0)
		bad = 1;
	err = attach_range(g, probes, bad);
	return err ? err : attach_range(g, probes + bad, n - bad);
}

/*
 * Where session links are to be had, are they the better ones for this file? A session spares a
 * call the return probe that it does not need: a driver call inside a runtime call, and any call
 * of a process that is not traced. For a call that does need it, a plain pair is a tenth cheaper
 * (docs/benchmarks.md).
 */
static enum attach_kind kind_for(const struct attach *a, const struct probe_file *f, pid_t pid)
{
	const struct capture_plan *plan = a->plan;
	bool others = !pid && (plan->npids || plan->cmd || plan->cgroup_id);

	if (a->kind != ATTACH_SESSION || a->progs.entry_fd < 0 || a->sessions || others ||
	    (f->scan.role == ELF_LIBRARY && api_domains[f->scan.domain].below))
		return a->kind;
	return ATTACH_MULTI;
}

/* Functions that are too many for links of this kind. */
static bool is_one_of_many(const struct attach *a, const struct elf_probe *p)
{
	return p->symbol && a->kind != ATTACH_SESSION && a->kind != ATTACH_MULTI;
}

/* Functions that are not worth a descriptor for each of their probes. */
static bool is_left_out(int func)
{
	return api_funcs[func].class == API_INTERNAL && !api_funcs[func].layer;
}

/* Must be spared a return probe. A session's entry program sees to that itself. */
static bool wants_no_return(enum attach_kind kind, const struct elf_probe *p)
{
	return kind != ATTACH_SESSION &&
	       (api_funcs[p->func].flags & (CT_S_CALLBACK | API_ENTRY_ONLY));
}

/* Has the function its probe in this process already? */
static bool is_placed(const struct attach_file *af, const struct elf_probe *p, pid_t pid)
{
	for (int i = 0; i < af->nsets; i++)
		for (int j = 0; af->sets[i].pid == pid && j < af->sets[i].nprobes; j++)
			if (af->sets[i].probes[j].offset == p->offset)
				return true;
	return false;
}

/* Where hooks are beside probes: does the function get no probe in this process, or none any more? */
static bool is_others(const struct attach *a, const struct attach_file *af,
		      const struct elf_probe *p, pid_t pid, bool window)
{
	return a->plan->apart && (!owners_probes(a->plan->owners, pid, p->func) ||
				  (!window && is_placed(af, p, pid)));
}

/* window: of the functions that were taken off, and not of the others. */
static int attach_group(struct attach *a, struct probe_file *f, pid_t pid, bool query,
			bool calls_back, bool window)
{
	struct group g = { .a = a,
			   .f = f,
			   .af = f->attach,
			   .pid = pid,
			   .query = query,
			   .kind = kind_for(a, f, pid),
			   .entry_only = a->plan->no_return || calls_back,
			   .window = window };
	struct elf_probe *probes = calloc(f->scan.nprobes + 1, sizeof(*probes));
	int i, n = 0, many = 0, can, err;

	if (!probes)
		return -ENOMEM;
	for (i = 0; i < f->scan.nprobes; i++) {
		const struct elf_probe *p = &f->scan.probes[i];

		if (may_go(a, p) != query || wants_no_return(g.kind, p) != calls_back ||
		    plan_has(a->muted, p->func) != window ||
		    is_others(a, f->attach, p, pid, window))
			continue;
		if (a->plan->on_demand && !plan_has(a->adding, p->func))
			continue;
		if (a->kind == ATTACH_PERF && (query || is_left_out(p->func))) {
			/* those that are captured for another function's sake are missed by nobody */
			if (plan_has(a->plan->shown, p->func))
				plan_add(a->unseen[ATTACH_LEFT_OUT], p->func);
			continue;
		}
		if (is_one_of_many(a, p)) {
			many++;
			continue;
		}
		/* One bad offset fails a whole link, or never fires. */
		can = p->symbol ? 1 : p->offset ? elf_can_probe(f->fd, p->offset) : 0;
		if (can <= 0) {
			g.bad_name = api_funcs[p->func].name;
			g.bad_err = can ? can : -EOPNOTSUPP;
			g.nbad++;
			continue;
		}
		probes[n++] = *p;
	}
	if (many && !window)
		msg_warn("%s: its operators are not recorded: that needs Linux 6.6 or later, with "
			 "probes of kind session or multi",
			 f->path);
	err = attach_range(&g, probes, n);
	if (!err && g.nbad && !window)
		msg_warn("%s: %s%s cannot carry a probe (%s) and will not be seen", f->path,
			 g.bad_name, g.nbad > 1 ? " and others" : "", strerror(-g.bad_err));
	free(probes);
	return err;
}

static int remember_pid(struct attach_file *af, pid_t pid)
{
	for (int i = 0; i < af->npids; i++)
		if (af->pids[i] == pid)
			return 0;
	if (!array_room(af->pids, af->npids))
		return -ENOMEM;
	af->pids[af->npids++] = pid;
	return 0;
}

static int attach_groups(struct attach *a, struct probe_file *f, pid_t pid)
{
	int err = 0;

	for (int group = 0; group < 4 && !err; group++)
		err = attach_group(a, f, pid, group & 1, group & 2, false);
	return err;
}

int attach_demanded(struct attach *a, const uint64_t *funcs)
{
	int err = 0;

	for (int i = 0; i < PLAN_WORDS; i++) {
		a->adding[i] = funcs[i] & ~a->demanded[i];
		a->demanded[i] |= funcs[i];
	}
	for (int i = 0; i < a->nfiles && !err; i++) {
		struct attach_file *af = a->files[i]->attach;

		if (probe_file_open(a->files[i]))
			continue; /* nobody maps it any more */
		for (int j = 0; j < af->npids && !err; j++) {
			err = attach_groups(a, a->files[i], af->pids[j]);
			err = err == -ESRCH ? 0 : err; /* that process is gone */
		}
		probe_file_shut(a->files[i]);
	}
	return err;
}

int attach_file(struct attach *a, struct probe_file *f, pid_t pid)
{
	int err = 0;

	if (!f->attach) {
		if (!array_room(a->files, a->nfiles))
			return -ENOMEM;
		f->attach = calloc(1, sizeof(struct attach_file));
		if (!f->attach)
			return -ENOMEM;
		a->files[a->nfiles++] = f;
	}
	err = remember_pid(f->attach, pid);
	memcpy(a->adding, a->demanded, sizeof(a->adding));
	if (!err)
		err = attach_groups(a, f, pid);
	if (err && f->attached <= 0)
		f->attached = err;
	return err;
}

/* The links of one set, by its kind. */
static unsigned set_cost(enum attach_kind kind, unsigned nprobes, bool entry_only)
{
	unsigned each = kind == ATTACH_SESSION || entry_only ? 1 : 2;

	return kind == ATTACH_PERF ? each * nprobes : nprobes ? each : 0;
}

void attach_silent(struct attach *a, const struct elf_scan *scan)
{
	elf_silent(scan, a->plan->shown, a->unseen[ATTACH_INDIRECT], a->unseen[ATTACH_SHARED_CODE]);
}

unsigned attach_left_out(const struct attach *a)
{
	unsigned n = 0;

	for (int i = 0; i < PLAN_WORDS; i++)
		n += (unsigned)__builtin_popcountll(a->unseen[ATTACH_LEFT_OUT][i]);
	return n;
}

const char *attach_unseen_next(const struct attach *a, enum attach_unseen why, uint64_t *told)
{
	for (int i = 0; i < api_nfuncs; i++)
		if (plan_has(a->unseen[why], i) && !plan_has(told, i)) {
			plan_add(told, i);
			return api_funcs[i].name;
		}
	return NULL;
}

unsigned attach_cost(const struct attach *a, const struct probe_file *f, int npids)
{
	unsigned probes[2][2] = { { 0 } }, held = 0, cost = 0;
	const struct attach_file *af = f->attach;
	enum attach_kind kind = kind_for(a, f, npids);

	for (int i = 0; i < f->scan.nprobes; i++) {
		const struct elf_probe *p = &f->scan.probes[i];

		if (a->kind == ATTACH_PERF && (p->query || is_left_out(p->func)))
			continue;
		if (is_one_of_many(a, p))
			continue;
		probes[may_go(a, p)][wants_no_return(kind, p)]++;
	}
	/* What is of class QUERY is replaced now and then: there are old links beside the new ones. */
	for (int query = 0; query < 2; query++)
		for (int calls_back = 0; calls_back < 2; calls_back++)
			cost += (query ? 2 : 1) * set_cost(kind, probes[query][calls_back],
							   a->plan->no_return || calls_back);
	for (int i = 0; af && i < af->nsets; i++)
		held += (unsigned)af->sets[i].links.nfds;
	cost *= (unsigned)(npids ? npids : 1);
	return held > cost ? held : cost;
}

static int take_off(struct attach *a, struct probe_file *f, const uint64_t *funcs)
{
	struct attach_file *af = f->attach;
	int i, j, n, muted = 0, err, bad;

	err = probe_file_open(f);
	if (err && af)
		msg_verb("%s: it cannot be opened again: %s", f->path, strerror(-err));
	for (i = 0; af && i < af->nsets; i++) {
		struct file_set *set = &af->sets[i];
		struct link_target t = { .file_fd = f->fd,
					 .probes = set->probes,
					 .pid = set->pid,
					 .entry_only = set->entry_only };
		struct link_set old = set->links;

		if (!set->query || set->window)
			continue;
		for (j = n = 0; j < set->nprobes; j++)
			if (!plan_has(funcs, set->probes[j].func))
				set->probes[n++] = set->probes[j];
		if (n == set->nprobes)
			continue;
		muted += set->nprobes - n;
		a->generation = set->generation + 1 > a->generation ? set->generation + 1
								    : a->generation;
		f->attached -= set->nprobes - n;
		set->nprobes = t.nprobes = n;
		t.generation = ++set->generation;
		memset(&set->links, 0, sizeof(set->links));
		/* The new link first, then the old one goes, once the calls that it saw begin
		 * have returned (a session's return is lost with its link): no call of the
		 * others is missed. */
		if (n) {
			err = links_make(set->kind, &a->progs, &t, &set->links, &bad);
			if (err)
				msg_warn("%s: functions that are called often are no longer seen: "
					 "re-linking failed (%s)",
					 f->path, strerror(-err));
		}
		if (set->kind == ATTACH_SESSION || set->kind == ATTACH_MULTI)
			links_close_later(&old, LINGER_US);
		else
			links_close(&old);
	}
	probe_file_shut(f);
	return muted;
}

/* Links of this kind in the place of a set's own. The kernel side prefers the newer of two links
 * on one place. */
static int make_anew(struct attach *a, struct probe_file *f, struct file_set *set,
		     enum attach_kind kind, unsigned linger_us)
{
	struct link_target t = { .file_fd = f->fd,
				 .probes = set->probes,
				 .nprobes = set->nprobes,
				 .pid = set->pid,
				 .generation = set->generation + 1,
				 .entry_only = set->entry_only };
	struct link_set links;
	int bad, err = links_make(kind, &a->progs, &t, &links, &bad);

	if (err)
		return err;
	links_close_later(&set->links, linger_us);
	set->links = links;
	set->kind = kind;
	set->generation++;
	return 0;
}

/* The file is open while links are made. */
static int open_and_make_anew(struct attach *a, struct probe_file *f, struct file_set *set,
			      enum attach_kind kind, unsigned linger_us)
{
	int err = probe_file_open(f);

	if (!err)
		err = make_anew(a, f, set, kind, linger_us);
	probe_file_shut(f);
	return err;
}

static void make_session(struct attach *a, struct probe_file *f, struct file_set *set)
{
	int err = open_and_make_anew(a, f, set, ATTACH_SESSION, LINGER_US);

	if (err)
		msg_warn("%s: its plain probes cannot be replaced (%s): a program that calls CUDA "
			 "in a signal's handler, on a stack of its "
			 "own, may end by SIGILL; --no-return is safe",
			 f->path, strerror(-err));
}

void attach_sessions(struct attach *a)
{
	if (a->kind != ATTACH_SESSION || a->sessions)
		return;
	a->sessions = true;
	for (int i = 0; i < a->nfiles; i++) {
		struct attach_file *af = a->files[i]->attach;

		for (int j = 0; j < af->nsets; j++)
			if (af->sets[j].kind == ATTACH_MULTI && !af->sets[j].entry_only &&
			    af->sets[j].nprobes)
				make_session(a, a->files[i], &af->sets[j]);
	}
}

int attach_anew(struct attach *a, struct probe_file *f, pid_t pid)
{
	struct attach_file *af = f->attach;
	int err = 0;

	for (int i = 0; af && i < af->nsets; i++) {
		int e = 0;

		if (af->sets[i].pid == pid && af->sets[i].nprobes)
			e = open_and_make_anew(a, f, &af->sets[i], af->sets[i].kind, 0);
		err = err ? err : e;
	}
	return err;
}

void attach_gone(struct attach *a, pid_t pid)
{
	for (int i = 0; i < a->nfiles; i++) {
		struct attach_file *af = a->files[i]->attach;
		int kept = 0;

		for (int j = 0; j < af->nsets; j++) {
			if (af->sets[j].pid != pid) {
				af->sets[kept++] = af->sets[j];
				continue;
			}
			a->files[i]->attached -= af->sets[j].window ? 0 : af->sets[j].nprobes;
			links_close_later(&af->sets[j].links, 0);
			free(af->sets[j].probes);
		}
		af->nsets = kept;
		for (int j = 0; j < af->npids; j++)
			if (af->pids[j] == pid)
				af->pids[j--] = af->pids[--af->npids];
	}
}

int attach_off(struct attach *a, const uint64_t *funcs)
{
	int off = 0;

	for (int i = 0; i < PLAN_WORDS; i++)
		a->muted[i] |= funcs[i];
	for (int i = 0; i < a->nfiles; i++)
		off += take_off(a, a->files[i], funcs);
	return off;
}

bool attach_windows(const struct attach *a)
{
	return a->kind == ATTACH_SESSION || a->kind == ATTACH_MULTI;
}

int attach_window_open(struct attach *a)
{
	int err = 0;

	a->generation++;
	for (int i = 0; i < a->nfiles && !err; i++) {
		struct attach_file *af = a->files[i]->attach;

		if (probe_file_open(a->files[i]))
			continue; /* nobody maps it any more */
		for (int j = 0; j < af->npids && !err; j++) {
			for (int calls_back = 0; calls_back < 2 && !err; calls_back++)
				err = attach_group(a, a->files[i], af->pids[j], true, calls_back,
						   true);
			err = err == -ESRCH ? 0 : err; /* that process is gone */
		}
		probe_file_shut(a->files[i]);
	}
	if (err)
		attach_window_close(a);
	return err;
}

void attach_window_close(struct attach *a)
{
	for (int i = 0; i < a->nfiles; i++) {
		struct attach_file *af = a->files[i]->attach;
		int kept = 0;

		for (int j = 0; j < af->nsets; j++) {
			if (!af->sets[j].window) {
				af->sets[kept++] = af->sets[j];
				continue;
			}
			links_close_later(&af->sets[j].links, WINDOW_LINGER_US);
			free(af->sets[j].probes);
		}
		af->nsets = kept;
	}
}

void attach_totals(const struct attach *a, int *links, int *functions)
{
	int i, j;

	*links = *functions = 0;
	for (i = 0; a && i < a->nfiles; i++) {
		const struct attach_file *af = a->files[i]->attach;

		for (j = 0; j < af->nsets; j++) {
			*links += af->sets[j].links.nfds;
			*functions += af->sets[j].nprobes;
		}
	}
}

int attach_single(enum attach_kind kind, int prog_fd, int file_fd, uint64_t offset,
		  struct link_set *set)
{
	struct elf_probe probe = { .offset = offset };
	struct link_target t = {
		.file_fd = file_fd, .probes = &probe, .nprobes = 1, .entry_only = true
	};
	struct attach_progs progs = { prog_fd, -1, -1 };
	int bad;

	return links_make(kind == ATTACH_SESSION ? ATTACH_MULTI : kind, &progs, &t, set, &bad);
}

void attach_single_close(struct link_set *set)
{
	links_close(set);
}

/* ---- detaching ---- */

struct closing {
	int *fds;
	int n, next;
};

static void *close_some(void *arg)
{
	struct closing *c = arg;
	int i;

	while ((i = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED)) < c->n)
		close(c->fds[i]);
	return NULL;
}

static void close_all(int *fds, int n)
{
	pthread_t threads[CLOSE_THREADS];
	struct closing c = { .fds = fds, .n = n };
	int i, nthreads = 0;

	for (i = 0; i < CLOSE_THREADS && i < n - 1; i++)
		if (!thread_start(&threads[nthreads], "ct-closer", CLOSE_STACK, close_some, &c))
			nthreads++;
	close_some(&c);
	for (i = 0; i < nthreads; i++)
		pthread_join(threads[i], NULL);
}

static void forget_sets(struct attach_file *af)
{
	for (int i = 0; i < af->nsets; i++) {
		links_close(&af->sets[i].links);
		free(af->sets[i].probes);
	}
	free(af->sets);
	free(af->pids);
	free(af);
}

void attach_release(struct attach *a, struct probe_file *f, bool now)
{
	struct attach_file *af = f->attach;

	if (!af)
		return;
	for (int i = 0; i < af->nsets; i++) {
		links_close_later(&af->sets[i].links, 0);
		memset(&af->sets[i].links, 0, sizeof(af->sets[i].links));
	}
	forget_sets(af);
	f->attach = NULL;
	for (int i = 0; i < a->nfiles; i++) {
		if (a->files[i] != f)
			continue;
		a->files[i] = a->files[--a->nfiles];
		break;
	}
	if (now)
		links_close_now();
}

unsigned attach_closing(void)
{
	return links_closing();
}

static void *take_links_off(void *arg)
{
	struct attach *a = arg;

	close_all(a->fds, a->nfds);
	links_close_now();
	return NULL;
}

void attach_stop(struct attach *a)
{
	int functions;

	if (!a || a->closing)
		return;
	attach_totals(a, &a->nfds, &functions);
	a->fds = calloc((size_t)a->nfds + 1, sizeof(*a->fds));
	if (!a->fds)
		return;
	a->nfds = 0;
	for (int i = 0; i < a->nfiles; i++) {
		struct attach_file *af = a->files[i]->attach;

		for (int j = 0; j < af->nsets; j++) {
			struct link_set *links = &af->sets[j].links;

			for (int k = 0; k < links->nfds; k++)
				a->fds[a->nfds++] = links->fds[k];
			links->nfds = 0;
		}
	}
	a->closing = !thread_start(&a->closer, "ct-closer", CLOSE_STACK, take_links_off, a);
	if (!a->closing)
		take_links_off(a);
}

void attach_close(struct attach *a)
{
	if (!a)
		return;
	attach_stop(a);
	if (a->closing)
		pthread_join(a->closer, NULL);
	for (int i = 0; i < a->nfiles; i++) {
		forget_sets(a->files[i]->attach);
		a->files[i]->attach = NULL;
	}
	links_close_now();
	free(a->fds);
	free(a->files);
	free(a);
}
