/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process.c - the process table: which process a record belongs to, as other records told of it.
 *
 * An open-addressed hash by pid, with the last answer remembered, since records come in runs of one process. Processes
 * that exited stay (their last records may still be on the way) until the table has to grow; then they are swept.
 * Never looks at /proc: a replayed trace gives the same table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "event.h"

#define FIRST_SLOTS 256 /* a power of two */

struct process_table {
	struct process **slots;
	uint32_t nslots, used;
	struct process *last;
};

struct process_table *process_table_open(void)
{
	struct process_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->nslots = FIRST_SLOTS;
	t->slots = calloc(t->nslots, sizeof(*t->slots));
	if (!t->slots) {
		free(t);
		return NULL;
	}
	return t;
}

static void drop(struct process *p)
{
	if (p)
		free((void *)p->info);
	free(p);
}

void process_table_close(struct process_table *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->nslots; i++)
		drop(t->slots[i]);
	free(t->slots);
	free(t);
}

/* The slot of a pid, or the free one where it belongs. The table is never full. */
static struct process **slot_of(struct process **slots, uint32_t nslots, uint32_t pid)
{
	uint32_t i = pid * 2654435761u & (nslots - 1);

	while (slots[i] && slots[i]->pid != pid)
		i = (i + 1) & (nslots - 1);
	return &slots[i];
}

/* Makes room for one more: leaves the exited out, and doubles when the living alone fill half. */
static int make_room(struct process_table *t)
{
	uint32_t living = 0, nslots = t->nslots;
	struct process **slots;

	if (t->used < t->nslots / 2)
		return 0;
	for (uint32_t i = 0; i < t->nslots; i++)
		living += t->slots[i] && !t->slots[i]->exited;
	while (living >= nslots / 4)
		nslots *= 2;
	slots = calloc(nslots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->nslots; i++) {
		struct process *p = t->slots[i];

		if (p && p->exited)
			drop(p);
		else if (p)
			*slot_of(slots, nslots, p->pid) = p;
	}
	free(t->slots);
	t->slots = slots;
	t->nslots = nslots;
	t->used = living;
	t->last = NULL;
	return 0;
}

static struct process *find(struct process_table *t, uint32_t pid)
{
	struct process **slot, *p;

	if (t->last && t->last->pid == pid)
		return t->last;
	slot = slot_of(t->slots, t->nslots, pid);
	if (!*slot) {
		if (make_room(t))
			return NULL;
		p = calloc(1, sizeof(*p));
		if (!p)
			return NULL;
		p->pid = p->shown_pid = pid;
		p->comm[0] = '?';
		*slot_of(t->slots, t->nslots, pid) = p;
		t->used++;
		t->last = p;
		return p;
	}
	t->last = *slot;
	return t->last;
}

const struct process *process_table_find(struct process_table *t, uint32_t pid)
{
	return find(t, pid);
}

static void learn(struct process *p, const struct ct_process *r)
{
	if (r->h.kind == CT_EXEC || p->start_boottime_ns != r->start_boottime_ns) {
		free((void *)p->info);
		p->info = NULL;
	}
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

static const char *take(char **to, const char **from, size_t len)
{
	char *text = *to;

	memcpy(text, *from, len);
	text[len] = '\0';
	*to += len + 1;
	*from += len;
	return text;
}

/* The texts lie behind the struct. */
static int learn_info(struct process *p, const struct ct_process_info *r)
{
	struct process_info *info = malloc(sizeof(*info) + r->exe_len + r->cmdline_len + r->container_len + r->pod_len +
					   r->host_len + 5u);
	const char *from = r->text;
	char *to = (char *)(info + 1);

	if (!info)
		return -ENOMEM;
	info->rank = r->rank;
	info->world_size = r->world_size;
	info->local_rank = r->local_rank;
	info->exe = take(&to, &from, r->exe_len);
	info->cmdline = take(&to, &from, r->cmdline_len);
	info->cmdline_len = r->cmdline_len;
	info->container = take(&to, &from, r->container_len);
	info->pod = take(&to, &from, r->pod_len);
	info->host = take(&to, &from, r->host_len);
	free((void *)p->info);
	p->info = info;
	return 0;
}

int process_table_record(struct process_table *t, const struct ct_hdr *rec)
{
	struct process *p;

	if (rec->kind != CT_PROCESS && rec->kind != CT_EXEC && rec->kind != CT_EXIT && rec->kind != CT_FORK &&
	    rec->kind != CT_PROCESS_INFO)
		return 0;
	p = find(t, rec->pid);
	if (!p)
		return -ENOMEM;
	if (rec->kind == CT_PROCESS_INFO)
		return learn_info(p, (const struct ct_process_info *)rec);
	if (rec->kind == CT_EXIT) {
		p->exited = true;
	} else if (rec->kind == CT_FORK) {
		/* Until it says who it is, a child is what its parent was: fork(2) copies the name. */
		uint32_t child_pid = ((const struct ct_fork *)rec)->child_pid;
		struct process parent = *p, *child = find(t, child_pid);

		if (!child)
			return -ENOMEM;
		free((void *)child->info);
		*child = parent;
		child->info = NULL;
		child->pid = child_pid;
		child->shown_pid = ((const struct ct_fork *)rec)->child_ns_pid;
		if (!child->shown_pid)
			child->shown_pid = child_pid;
		child->ppid = parent.pid;
		child->start_boottime_ns = 0;
		child->exited = false;
	} else {
		learn(p, (const struct ct_process *)rec);
	}
	return 0;
}
