/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_tids.c - see agent_tids.h. The last number of the line NSpid in
 * /proc/PID/task/TID/status is the thread's id in the innermost namespace. A table of them is
 * made anew when one is asked for that is not in it, at most ten times a second.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/table/array.h"
#include "../../util/now.h"
#include "agent_tids.h"
#include "../host.h"

#define AGAIN_NS 100000000ULL
#define TIDS_MAX 65536

struct agent_tids {
	pid_t pid;
	bool same; /* namespace as ours */
	uint64_t looked_ns;
	struct pair {
		uint32_t inner, ours;
	} * pairs;
	size_t n;
};

/* The last number of NSpid; 0: there is none. *n: how many there are. */
static uint32_t innermost(pid_t tid, int *n)
{
	char text[8192], *end;
	const char *at;
	uint32_t id = 0;

	*n = 0;
	if (host_status(tid, text, sizeof(text)))
		return 0;
	at = host_status_line(text, "NSpid");
	while (at && *at >= '0' && *at <= '9') {
		id = (uint32_t)strtoul(at, &end, 10);
		(*n)++;
		at = end + strspn(end, "\t ");
	}
	return id;
}

struct agent_tids *agent_tids_open(pid_t pid, pid_t *inner)
{
	struct agent_tids *t = calloc(1, sizeof(*t));
	int n;

	if (!t)
		return NULL;
	t->pid = pid;
	*inner = (pid_t)innermost(pid, &n);
	t->same = n <= 1;
	if (!*inner) { /* a kernel without the line, or no such process */
		*inner = pid;
		t->same = true;
	}
	return t;
}

void agent_tids_close(struct agent_tids *t)
{
	if (!t)
		return;
	free(t->pairs);
	free(t);
}

static int by_inner(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return x->inner < y->inner ? -1 : x->inner > y->inner;
}

static void agent_tids_look(struct agent_tids *t)
{
	struct dirent *e;
	char path[64];
	int levels;
	DIR *dir;

	t->n = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
	dir = opendir(path);
	if (!dir)
		return;
	while (t->n < TIDS_MAX && (e = readdir(dir))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		if (!array_room(t->pairs, t->n))
			break;
		t->pairs[t->n].ours = (uint32_t)tid;
		t->pairs[t->n].inner = innermost(tid, &levels);
		t->n += t->pairs[t->n].inner != 0;
	}
	closedir(dir);
	if (t->n)
		qsort(t->pairs, t->n, sizeof(*t->pairs), by_inner);
}

uint32_t agent_tids_find(struct agent_tids *t, uint32_t tid)
{
	struct pair key = { .inner = tid }, *p;
	uint64_t now;

	if (t->same || !tid)
		return tid;
	p = t->n ? bsearch(&key, t->pairs, t->n, sizeof(key), by_inner) : NULL;
	if (p)
		return p->ours;
	now = now_ns();
	if (now - t->looked_ns < AGAIN_NS)
		return 0;
	t->looked_ns = now;
	agent_tids_look(t);
	p = t->n ? bsearch(&key, t->pairs, t->n, sizeof(key), by_inner) : NULL;
	return p ? p->ours : 0;
}
