/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process.c - the process table: the process that a record belongs to, as other records described
 * it.
 *
 * Processes that exited stay for some seconds, because their last records may still be on the way, and
 * so do processes of which only a number is known, because no record says when they end. There is room for as many processes as can live at a time. A file may claim more: those are then shown
 * only by their numbers, and one message says so. The table never looks at /proc, so that a replayed
 * trace gives the same one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../util/table/hash_map.h"
#include "../util/msg.h"
#include "registry.h"

#define STAYS_NS 5000000000ULL
#define ENDED_MAX 32768
#define INFO_MAX ((size_t)32 << 20) /* bytes of paths and command lines */
#define UNIQUE_END (1u << 24)
/* processes whose numbers are remembered, including ended ones: about 10 MiB */
#define NUMBERS_MAX (1 << 17)

/* The number that a process was given, kept for a process that is asked for again after a sweep. */
struct given {
	struct {
		uint64_t start;
		uint32_t pid, shown;
	} key;
	uint32_t unique, nth;
};

/* A number that users saw. */
struct seen {
	struct {
		uint32_t shown, host; /* process_host() + 1; 0: all hosts */
	} key;
	uint32_t times; /* processes with it */
};

struct kept_process {
	struct registered r;
	bool made;
	struct process p;
};

/* A process that has ended, and whose sums may still come. */
struct ended_process {
	struct {
		uint32_t pid, start;
	} key;
	struct process *process;
};

struct process_table {
	struct registry all;   /* of struct kept_process */
	struct process other;  /* stands for every process for which there is no room */
	struct hash_map ended; /* struct ended_process */
	bool keeps_ended;
	struct hash_map given, seen;
	uint32_t made_up; /* numbers so far */
	size_t info_bytes;
	uint64_t learned; /* records */
	bool said, info_said, ended_said;
};

static void same(void *ctx, void *item, const struct ct_hdr *h)
{
	(void)ctx, (void)item, (void)h;
}

static void forgotten(void *ctx, void *item, const struct ct_hdr *h);

static const struct registry_rules rules = { .size = sizeof(struct kept_process),
					     .most = REGISTRY_MOST,
					     .stays_ns = STAYS_NS,
					     .exec = same, /* learn() does it */
					     .gone = forgotten };

struct process_table *process_table_open(void)
{
	struct process_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	registry_open(&t->all, &rules, t);
	hash_map_open_of(&t->ended, struct ended_process, key, ENDED_MAX);
	hash_map_open_of(&t->given, struct given, key, NUMBERS_MAX);
	hash_map_open_of(&t->seen, struct seen, key, NUMBERS_MAX);
	return t;
}

/* The texts lie behind the struct. */
struct kept_info {
	size_t bytes;
	struct process_info i;
	char texts[];
};

static void drop_info(struct process_table *t, struct process *p)
{
	struct kept_info *k =
		p->info ? (struct kept_info *)((char *)p->info - offsetof(struct kept_info, i))
			: NULL;

	if (k)
		t->info_bytes -= k->bytes;
	free(k);
	p->info = NULL;
}

static void drop(struct process_table *t, struct process *p)
{
	if (p)
		drop_info(t, p);
	free(p);
}

void process_table_close(struct process_table *t)
{
	if (!t)
		return;
	t->keeps_ended = false;
	registry_close(&t->all);
	process_table_counted(t);
	hash_map_close(&t->ended);
	hash_map_close(&t->given);
	hash_map_close(&t->seen);
	free(t);
}

/* ---- processes that have ended, and whose sums may still come ---- */

static uint32_t short_start(const struct process *p)
{
	return (uint32_t)(p->start_boottime_ns >> 10);
}

void process_table_keep_ended(struct process_table *t)
{
	t->keeps_ended = true;
}

void process_table_counted(struct process_table *t)
{
	struct ended_process *e;

	hash_map_each(&t->ended, e)
	{
		drop(t, e->process);
		hash_map_remove(&t->ended, e);
	}
}

static void drop_infos_of_ended(struct process_table *t)
{
	struct ended_process *e;

	hash_map_each(&t->ended, e) drop_info(t, e->process);
}

/* Keeps a process that has ended for its sums, or frees it if there is no room. */
static void keep_or_drop(struct process_table *t, struct process *p)
{
	struct ended_process want = { .key = { p->pid, short_start(p) } }, *e = NULL;
	bool made = false;

	if (t->keeps_ended && p->start_boottime_ns) {
		e = hash_map_get(&t->ended, &want.key, &made);
		if (!e && !t->ended_said)
			msg_warn("more than %d processes have ended since their sums were last "
				 "read: the calls of further ones are counted, but their names are "
				 "not known (\"?\"), and --comm leaves them out",
				 ENDED_MAX);
		t->ended_said |= !e;
	}
	if (made)
		e->process = p;
	else
		drop(t, p);
}

/* Another process will have the place of this one. */
static void make_way(struct process_table *t, struct process *p)
{
	struct process *copy = t->keeps_ended && p->start_boottime_ns ? malloc(sizeof(*copy))
								      : NULL;

	if (!copy)
		return;
	*copy = *p;
	p->info = NULL;
	keep_or_drop(t, copy);
}

static void forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	struct kept_process *k = item;

	(void)h;
	make_way(ctx, &k->p);
	drop_info(ctx, &k->p);
}

static struct process *set_unknown(struct process *p, uint32_t pid)
{
	*p = (struct process){ .pid = pid, .shown_pid = pid, .comm = "?" };
	return p;
}

static struct process *process_find(struct process_table *t, uint32_t pid)
{
	struct kept_process *k = registry_get(&t->all, pid);

	if (!k && t->all.left_out) {
		if (!t->said)
			msg_warn("more than %d processes at a time: further ones are shown only by "
				 "their numbers",
				 REGISTRY_MOST);
		t->said = true;
		return set_unknown(&t->other, pid);
	}
	if (k && !k->made) {
		k->made = true;
		set_unknown(&k->p, pid);
		registry_expire(&t->all, k);
	}
	return k ? &k->p : NULL;
}

/* How many processes have had the number, including this one. 0: there is no room to remember
 * it. */
static uint32_t times(struct process_table *t, uint32_t shown, uint32_t host)
{
	struct seen want = { .key = { shown, host } }, *s;
	bool made;

	s = hash_map_get(&t->seen, &want.key, &made);
	return s ? ++s->times : 0;
}

/* Gives a process its unique number. If there is no room to remember more, or no number is left,
 * it is the number that users see. */
static void give_number(struct process_table *t, struct process *p)
{
	struct given want = { .key = { p->start_boottime_ns, p->pid, p->shown_pid } }, *g;
	bool made;

	p->unique_pid = p->shown_pid;
	p->nth = 1;
	g = hash_map_get(&t->given, &want.key, &made);
	if (g && !made) {
		p->unique_pid = g->unique;
		p->nth = g->nth;
		return;
	}
	if (!g)
		return;
	if ((times(t, p->shown_pid, 0) > 1 || p->shown_pid >= PROCESS_MADE_UP) &&
	    t->made_up < UNIQUE_END - PROCESS_MADE_UP)
		p->unique_pid = PROCESS_MADE_UP + t->made_up++;
	p->nth = times(t, p->shown_pid, process_host(p->pid) + 1);
	g->unique = p->unique_pid;
	g->nth = p->nth;
}

const struct process *process_table_find(struct process_table *t, uint32_t pid)
{
	struct process *p = process_find(t, pid);

	if (p && p->pid && !p->unique_pid)
		give_number(t, p);
	return p;
}

const struct process *process_table_find_counted(struct process_table *t,
						 const struct ct_call_count *of)
{
	struct ended_process want = { .key = { of->h.pid, of->start } }, *e;
	struct kept_process *k = registry_find(&t->all, of->h.pid);

	/* the durations of all processes */
	if (!of->h.pid || (k && short_start(&k->p) == of->start))
		return process_table_find(t, of->h.pid);
	e = hash_map_find(&t->ended, &want.key);
	if (!e)
		return set_unknown(&t->other, of->h.pid);
	if (!e->process->unique_pid)
		give_number(t, e->process);
	return e->process;
}

static void set_heard(struct process_table *t, struct process *p)
{
	if (!p->heard)
		registry_lives(&t->all, registry_find(&t->all, p->pid));
	p->heard = true;
}

static void learn(struct process_table *t, struct process *p, const struct ct_process *r)
{
	/* join and the unique numbers then treat it as another process */
	bool other = registry_other(p->start_boottime_ns, p->exited, r);

	if (other)
		make_way(t, p);
	if (r->h.kind == CT_EXEC || p->start_boottime_ns != r->start_boottime_ns)
		drop_info(t, p);
	if (other || p->shown_pid != (r->ns_pid ? r->ns_pid : r->h.pid))
		p->unique_pid = 0;
	p->start_boottime_ns = r->start_boottime_ns;
	p->cgroup_id = r->cgroup_id;
	p->uid = r->uid;
	p->gid = r->gid;
	p->ppid = r->ppid;
	p->shown_pid = r->ns_pid ? r->ns_pid : r->h.pid;
	memcpy(p->comm, r->comm, sizeof(p->comm));
	p->comm[CT_COMM_LEN - 1] = '\0';
	p->exited = false;
}

static const char *take_text(char **to, const char **from, size_t len)
{
	char *text = *to;

	memcpy(text, *from, len);
	text[len] = '\0';
	*to += len + 1;
	*from += len;
	return text;
}

static int learn_info(struct process_table *t, struct process *p, const struct ct_process_info *r)
{
	size_t bytes = sizeof(struct kept_info) + r->exe_len + r->cmdline_len + r->container_len +
		       r->pod_len + r->host_len + r->boot_len + 6u;
	const char *from = r->text;
	struct kept_info *k;
	char *to;

	drop_info(t, p);
	if (t->info_bytes + bytes > INFO_MAX)
		drop_infos_of_ended(t);
	if (t->info_bytes + bytes > INFO_MAX) {
		if (!t->info_said)
			msg_warn("more than %zu MiB of processes' paths and command lines: further "
				 "ones are not kept",
				 INFO_MAX >> 20);
		t->info_said = true;
		return 0;
	}
	k = malloc(bytes);
	if (!k)
		return -ENOMEM;
	to = k->texts;
	k->bytes = bytes;
	k->i = (struct process_info){ .rank = r->rank,
				      .world_size = r->world_size,
				      .local_rank = r->local_rank };
	k->i.exe = take_text(&to, &from, r->exe_len);
	k->i.cmdline = take_text(&to, &from, r->cmdline_len);
	k->i.cmdline_len = r->cmdline_len;
	k->i.container = take_text(&to, &from, r->container_len);
	k->i.pod = take_text(&to, &from, r->pod_len);
	k->i.host = take_text(&to, &from, r->host_len);
	k->i.boot = take_text(&to, &from, r->boot_len);
	t->info_bytes += bytes;
	p->info = &k->i;
	return 0;
}

/* Until a record describes it, a child has the properties of its parent: fork(2) copies the
 * name. */
static int forked(struct process_table *t, const struct process *from, const struct ct_fork *f)
{
	struct process parent = *from, *child = process_find(t, f->child_pid);

	if (!child)
		return -ENOMEM;
	if (child == &t->other)
		return 0;
	make_way(t, child);
	drop_info(t, child);
	registry_lives(&t->all, registry_find(&t->all, f->child_pid));
	parent.info = NULL;
	parent.ppid = parent.pid;
	parent.pid = f->child_pid;
	parent.shown_pid = f->child_ns_pid ? f->child_ns_pid : f->child_pid;
	parent.unique_pid = 0;
	parent.start_boottime_ns = 0;
	parent.exited = false;
	parent.heard = true;
	*child = parent;
	return 0;
}

int process_table_record(struct process_table *t, const struct ct_hdr *rec)
{
	struct process *p;

	if (rec->kind != CT_PROCESS && rec->kind != CT_EXEC && rec->kind != CT_EXIT &&
	    rec->kind != CT_FORK && rec->kind != CT_PROCESS_INFO &&
	    !(rec->kind == CT_THREAD_NAME && rec->tid == rec->pid))
		return 0;
	t->learned++;
	p = process_find(t, rec->pid);
	if (!p)
		return -ENOMEM;
	if (p != &t->other)
		set_heard(t, p);
	if (rec->kind == CT_FORK)
		return forked(t, p, (const struct ct_fork *)rec);
	if (p == &t->other)
		return 0;
	if (rec->kind == CT_PROCESS_INFO)
		return learn_info(t, p, (const struct ct_process_info *)rec);
	if (rec->kind == CT_THREAD_NAME) {
		memcpy(p->comm, ((const struct ct_thread_name *)rec)->comm, sizeof(p->comm));
		return 0;
	}
	if (rec->kind == CT_EXIT)
		p->exited = true;
	else
		learn(t, p, (const struct ct_process *)rec);
	registry_record(&t->all, rec);
	return 0;
}

uint64_t process_table_learned(const struct process_table *t)
{
	return t->learned;
}
