/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_without.c - see hooks_without.h.
 *
 * Each CPU has records of its own, so they are put in the order of their times, and the newest ones
 * wait for the next reading. What a process is said to have done is judged a while later, because its
 * hooks say by a socket that they are there. A process that opens the driver's device uses CUDA too,
 * whatever it maps. A child that has not executed a program has what its parent had mapped. If it
 * shares its parent's memory, its calls are seen in its parent's hooks: as the parent's, or, in a
 * child of vfork(2), not at all, and then the hooks count them.
 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../api/api.h"
#include "../../event/holes/holes.h"
#include "../../util/now.h"
#include "../../util/table/array.h"
#include "../../util/table/hash_map.h"
#include "../discover/watch.h"
#include "../host.h"
#include "../owners.h"
#include "hooks_without.h"

#define PROCESSES_MAX 65536
#define RECORDS_MAX 100000     /* that wait to be put in order */
#define ORDER_NS 2000000ULL    /* a record is in its ring when it is so old */
#define ENDED_NS 1000000000ULL /* in which the hooks of a process that has ended are heard of */
#define LOOK_NS 1000000000ULL  /* between two looks at what processes have opened */
#define GONE_NS 10000000000ULL /* after which what is said of hooks concerns nobody who has ended */
#define GIVEN_NS 100000000ULL  /* after which it gets probes, if there are such */
#define LIVES_NS 2000000000ULL /* in which those of a process that lives are put on */

enum what { FORK = WATCH_FORK, FLAGS = WATCH_FLAGS, EXEC = WATCH_EXEC, EXIT = WATCH_EXIT, MAP };

struct record {
	uint64_t time_ns, number;
	enum what what;
	pid_t pid, tid, parent, parent_tid;
	uint64_t flags;
	/* of MAP; likely: the name is that of a library of CUDA's */
	uint64_t addr, len, dev, ino;
	bool likely;
	char comm[CT_COMM_LEN];
};

struct proc {
	uint32_t pid;
	pid_t parent, maker; /* maker: the parent's thread */
	int threads;
	bool executed; /* a program of its own */
	bool flags_known, reported, given, probed;
	uint64_t flags;
	/* since when it is what it is, and uses CUDA; when it ended; 0: not */
	uint64_t since_ns, uses_ns, ended_ns;
	char comm[CT_COMM_LEN];
};

struct hooked {
	uint32_t pid;
	uint64_t at_ns;
};

struct hooks_without {
	const struct capture_plan *plan;
	struct hooks_files *files;
	struct watch *watch;
	struct hash_map procs, hooked;
	struct record *records;
	size_t n, room;
	uint64_t number, looked_ns;
	struct hooks_batch *batch; /* while telling */
	int err;
};

struct hooks_without *hooks_without_open(const struct capture_plan *plan, struct hooks_files *files)
{
	struct hooks_without *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->plan = plan;
	w->files = files;
	hash_map_open_of(&w->procs, struct proc, pid, PROCESSES_MAX);
	hash_map_open_of(&w->hooked, struct hooked, pid, PROCESSES_MAX);
	if (!watch_open_tasks(&w->watch))
		return w;
	hooks_without_close(w);
	return NULL;
}

void hooks_without_close(struct hooks_without *w)
{
	if (!w)
		return;
	watch_close(w->watch);
	hash_map_close(&w->procs);
	hash_map_close(&w->hooked);
	free(w->records);
	free(w);
}

int hooks_without_fd(const struct hooks_without *w)
{
	return w ? watch_fd(w->watch) : -1;
}

/* ---- what is said of hooks ---- */

static struct proc *find(const struct hooks_without *w, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	return hash_map_look(&w->procs, &key);
}

static struct proc *make(struct hooks_without *w, pid_t pid, uint64_t at_ns)
{
	uint32_t key = (uint32_t)pid;
	bool made;
	struct proc *p = hash_map_get(&w->procs, &key, &made);

	if (p)
		*p = (struct proc){ .pid = key, .since_ns = at_ns, .threads = 1 };
	return p;
}

static int count_threads(pid_t pid)
{
	struct stat s;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return stat(path, &s) || s.st_nlink < 3 ? 1 : (int)s.st_nlink - 2;
}

void hooks_without_add(struct hooks_without *w, pid_t pid)
{
	struct proc *p = w ? make(w, pid, now_ns()) : NULL;
	struct host_task t;

	if (!p)
		return;
	p->threads = count_threads(pid);
	p->executed = true;
	if (!host_task(pid, &t))
		snprintf(p->comm, sizeof(p->comm), "%s", t.comm);
}

void hooks_without_remove(struct hooks_without *w, pid_t pid)
{
	struct proc *p = w ? find(w, pid) : NULL;

	if (p)
		hash_map_remove(&w->procs, p);
}

void hooks_without_hooked(struct hooks_without *w, pid_t pid, uint64_t at_ns)
{
	uint32_t key = (uint32_t)pid;
	struct hooked *h;
	bool made;

	h = w ? hash_map_get(&w->hooked, &key, &made) : NULL;
	if (h && at_ns > h->at_ns)
		h->at_ns = at_ns;
}

void hooks_without_uses(struct hooks_without *w, pid_t pid, uint64_t at_ns)
{
	struct proc *p = w ? find(w, pid) : NULL;

	if (p && !p->uses_ns)
		p->uses_ns = at_ns;
}

/* When it got its hooks; 0: it has none. */
static uint64_t hooked_ns(const struct hooks_without *w, const struct proc *p)
{
	const struct hooked *h = hash_map_look(&w->hooked, &p->pid);

	return h && h->at_ns >= p->since_ns ? h->at_ns : 0;
}

static void forget_hooks(struct hooks_without *w, const struct proc *p)
{
	struct hooked *h = hash_map_look(&w->hooked, &p->pid);

	if (h && h->at_ns <= p->ended_ns)
		hash_map_remove(&w->hooked, h);
}

/* ---- rows ---- */

static void tell(struct hooks_without *w, const struct proc *p, enum ct_hole_reason reason,
		 uint64_t end_ns)
{
	bool shares = reason == CT_HOLE_SHARED_MEMORY;
	const struct proc *of = shares ? find(w, p->parent) : p;
	struct ct_hole h = hole_of(shares ? (uint32_t)p->parent : p->pid, CT_HOLE_CALLS,
				   CT_HOLE_UNSEEN, reason);
	int err;

	hole_when(&h, p->uses_ns, end_ns);
	if (of)
		memcpy(h.comm, of->comm, sizeof(h.comm));
	err = hooks_batch_add(w->batch, &h.h);
	w->err = w->err ? w->err : err;
}

/* What is to be said of a process that uses CUDA; 0: nothing. */
static uint16_t reason_of(const struct proc *p)
{
	if (!p->executed && p->flags & CLONE_VM)
		return p->flags & CLONE_VFORK ? 0 : CT_HOLE_SHARED_MEMORY;
	return CT_HOLE_NO_HOOKS;
}

/* Who has no hooks after a while gets probes, if there are such. Until they are on, its calls are not known. Returns whether they
 * are. */
static bool hand_over(struct hooks_without *w, struct proc *p, uint64_t now)
{
	struct owners *owners = w->plan->owners;
	uint64_t placed_ns;

	if (!owners || p->probed || reason_of(p) != CT_HOLE_NO_HOOKS)
		return p->probed;
	if (!p->given && now - p->uses_ns >= GIVEN_NS)
		p->given = !owners_give(owners, (pid_t)p->pid);
	placed_ns = p->given ? owners_placed_ns(owners, (pid_t)p->pid) : 0;
	if (!placed_ns)
		return false;
	p->probed = true;
	tell(w, p, CT_HOLE_NO_HOOKS, placed_ns);
	return true;
}

/* The process has ended, or has become another program, or has hooks now. */
static void tell_end(struct hooks_without *w, struct proc *p, uint64_t at_ns)
{
	uint16_t reason = reason_of(p);
	uint64_t hooked = hooked_ns(w, p);

	if (!p->uses_ns || !reason || p->probed || (hooked && !p->reported))
		return;
	tell(w, p, (enum ct_hole_reason)reason, hooked ? hooked : at_ns);
	p->reported = false;
}

static void judge(struct hooks_without *w, struct proc *p, uint64_t now, bool last)
{
	uint64_t hooked = hooked_ns(w, p);

	if (p->ended_ns) {
		if (!last && !hooked && now - p->ended_ns < ENDED_NS)
			return;
		tell_end(w, p, p->ended_ns);
		forget_hooks(w, p);
		owners_forget(w->plan->owners, (pid_t)p->pid);
		hash_map_remove(&w->procs, p);
		return;
	}
	if (!p->uses_ns || !reason_of(p))
		return;
	if (hooked && p->reported) {
		tell_end(w, p, hooked);
		return;
	}
	if (hooked || hand_over(w, p, now))
		return;
	if (p->reported || (!last && now - p->uses_ns < LIVES_NS))
		return;
	p->reported = true;
	tell(w, p, (enum ct_hole_reason)reason_of(p), CT_HOLE_OPEN);
}

/* ---- what the kernel says ---- */

static struct record *add(struct hooks_without *w)
{
	struct record *r;

	if (w->n >= RECORDS_MAX || !array_fit(w->records, w->room, w->n + 1))
		return NULL;
	r = &w->records[w->n++];
	memset(r, 0, sizeof(*r));
	r->number = w->number++;
	return r;
}

/* A library of which a function is to be recorded, by its name. */
static bool is_likely(const struct hooks_without *w, const char *name)
{
	enum api_domain d = api_domain_of_file(name);

	for (int i = 0; d != API_DOMAIN_END && i < api_nfuncs; i++)
		if (api_funcs[i].domain == d && plan_has(w->plan->capture, i))
			return true;
	return false;
}

static void on_map(void *ctx, const struct watch_map *m)
{
	struct record *r = add(ctx);

	if (!r)
		return;
	r->what = MAP;
	r->time_ns = m->time_ns;
	r->pid = m->pid;
	r->addr = m->addr;
	r->len = m->len;
	r->dev = (uint64_t)m->major << 20 | m->minor;
	r->ino = m->ino;
	r->likely = is_likely(ctx, m->name);
}

static void on_task(void *ctx, const struct watch_task *t)
{
	struct record *r = add(ctx);

	if (!r)
		return;
	r->what = (enum what)t->what;
	r->time_ns = t->time_ns;
	r->pid = t->pid;
	r->tid = t->tid;
	r->parent = t->parent;
	r->parent_tid = t->parent_tid;
	r->flags = t->flags;
	if (t->comm)
		snprintf(r->comm, sizeof(r->comm), "%s", t->comm);
}

static int by_time(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void forked(struct hooks_without *w, const struct record *r)
{
	struct proc *parent = find(w, r->parent), *p = find(w, r->pid), was;

	if (r->pid == r->parent) {
		if (p)
			p->threads++;
		return;
	}
	if (p && r->time_ns <= p->since_ns) /* it was added behind this */
		return;
	if (p) { /* its number is used again */
		tell_end(w, p, p->ended_ns ? p->ended_ns : r->time_ns);
		owners_forget(w->plan->owners, r->pid);
		hash_map_remove(&w->procs, p);
		parent = find(w, r->parent);
	}
	if (!parent || !w->plan->follow)
		return;
	was = *parent;
	p = make(w, r->pid, r->time_ns);
	if (!p)
		return;
	p->parent = r->parent;
	p->maker = r->parent_tid;
	p->uses_ns = was.uses_ns ? r->time_ns : 0;
	memcpy(p->comm, was.comm, sizeof(p->comm));
}

/* The record of the fork, which comes right before, does not have them. */
static void has_flags(struct hooks_without *w, const struct record *r)
{
	struct proc *p, *newest = NULL;

	if (r->flags & CLONE_THREAD)
		return;
	hash_map_each(&w->procs, p) if (p->maker == r->parent_tid && !p->flags_known &&
					!p->executed && (!newest || p->since_ns > newest->since_ns))
		newest = p;
	if (!newest)
		return;
	newest->flags = r->flags;
	newest->flags_known = true;
}

static void executed(struct hooks_without *w, const struct record *r)
{
	struct proc *p = find(w, r->pid);

	if (!p)
		return;
	if (p->probed) { /* and stays so: its links are the process's */
		memcpy(p->comm, r->comm, sizeof(p->comm));
		p->threads = 1;
		return;
	}
	/* between a fork and the program that it was made for a child makes no calls */
	if (p->executed || reason_of(p) != CT_HOLE_NO_HOOKS)
		tell_end(w, p, r->time_ns);
	p->executed = true;
	p->reported = false;
	p->flags = 0;
	p->threads = 1;
	p->uses_ns = 0;
	p->since_ns = r->time_ns;
	memcpy(p->comm, r->comm, sizeof(p->comm));
}

static void mapped(struct hooks_without *w, const struct record *r)
{
	struct proc *p = find(w, r->pid);
	struct ct_vma v = { .pid = (uint32_t)r->pid,
			    .dev = r->dev,
			    .ino = r->ino,
			    .start = r->addr,
			    .end = r->addr + r->len };

	if (!p || p->uses_ns)
		return;
	/* hooks that are there look at the file themselves */
	if (r->likely || (!hooked_ns(w, p) && hooks_files_have(w->files, &v)))
		p->uses_ns = r->time_ns;
}

static void ended(struct hooks_without *w, const struct record *r)
{
	struct proc *p = find(w, r->pid);

	if (p && --p->threads <= 0 && !p->ended_ns)
		p->ended_ns = r->time_ns;
}

static void learn_of_task(struct hooks_without *w, const struct record *r)
{
	switch (r->what) {
	case FORK: forked(w, r); break;
	case FLAGS: has_flags(w, r); break;
	case EXEC: executed(w, r); break;
	case EXIT: ended(w, r); break;
	case MAP: mapped(w, r); break;
	}
}

static void read_records(struct hooks_without *w, bool last)
{
	uint64_t until = last ? UINT64_MAX : now_ns() - ORDER_NS;
	size_t n = 0;

	watch_drain_tasks(w->watch, on_map, on_task, w);
	if (w->n > 1)
		qsort(w->records, w->n, sizeof(*w->records), by_time);
	while (n < w->n && w->records[n].time_ns < until)
		learn_of_task(w, &w->records[n++]);
	w->n -= n;
	if (n && w->n)
		memmove(w->records, w->records + n, w->n * sizeof(*w->records));
}

/* Hooks that were heard of when their process had been judged, or was never told of. */
static void forget_gone(struct hooks_without *w, uint64_t now)
{
	struct hooked *h;

	hash_map_each(&w->hooked, h) if (now > h->at_ns + GONE_NS && !find(w, (pid_t)h->pid) &&
					 kill((pid_t)h->pid, 0) && errno == ESRCH)
		hash_map_remove(&w->hooked, h);
}

/* Processes that have mapped no file with functions of CUDA's that is known, and use a GPU. */
static void look(struct hooks_without *w, uint64_t now)
{
	struct proc *p;

	hash_map_each(&w->procs, p)
	{
		if (p->uses_ns || p->ended_ns || hooked_ns(w, p) || !host_uses_gpu((pid_t)p->pid))
			continue;
		p->uses_ns = p->since_ns > w->looked_ns ? p->since_ns : w->looked_ns;
	}
	forget_gone(w, now);
	w->looked_ns = now;
}

int hooks_without_tell(struct hooks_without *w, bool last, struct hooks_batch *batch)
{
	uint64_t now = now_ns();
	struct proc *p;

	if (!w)
		return 0;
	w->batch = batch;
	w->err = 0;
	read_records(w, last);
	if (last || now - w->looked_ns >= LOOK_NS)
		look(w, now);
	hash_map_each(&w->procs, p) judge(w, p, now, last);
	return w->err;
}
