/* SPDX-License-Identifier: BSD-2-Clause */
/* hang_proc.c - see hang_proc.h. */
#include "hang_proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../proc/python.h"
#include "../../proc/python_gil.h"
#include "../../source/host.h"

#define CHILDREN_MAX 64
/* fields of /proc/PID/stat: proc_pid_stat(5) */
#define UTIME 14
#define STIME 15
#define CUTIME 16
#define CSTIME 17
#define NUM_THREADS 20
#define STARTTIME 22

static uint64_t field(const char *state, int n)
{
	const char *at = host_stat_field(state, n);

	return at ? strtoull(at, NULL, 10) : 0;
}

static uint64_t ticks_ns(uint64_t ticks)
{
	static long hz;

	if (!hz)
		hz = sysconf(_SC_CLK_TCK);
	return ticks * 1000000000ULL / (uint64_t)(hz > 0 ? hz : 100);
}

static uint64_t line_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* What it and the processes that it has waited for used. */
static uint64_t all_ns(const char *state)
{
	return ticks_ns(field(state, UTIME) + field(state, STIME) + field(state, CUTIME) +
			field(state, CSTIME));
}

/* The processes that its main thread has started, and theirs that have ended. */
static uint64_t children_ns(pid_t pid)
{
	char name[64], list[1024], buf[1024], *at = list, *end;
	uint64_t ns = 0;

	snprintf(name, sizeof(name), "task/%d/children", (int)pid);
	if (host_file(pid, name, list, sizeof(list)))
		return 0;
	for (int i = 0; i < CHILDREN_MAX; i++, at = end) {
		long child = strtol(at, &end, 10);
		const char *state;

		if (end == at || child <= 0)
			break;
		state = host_stat((pid_t)child, buf, sizeof(buf));
		ns += state ? all_ns(state) : 0;
	}
	return ns;
}

/* The thread that holds Python's lock; 0: none, or not known. */
static uint32_t lock_holder(pid_t pid)
{
	struct ct_host_python p = { .gil_holder = 0 };
	struct target *t = NULL;
	uint64_t thread = 0, tid = 0;
	uint32_t locked = 0;

	if (target_open(&t, pid, 0))
		return 0;
	if (target_refresh(t) >= 0 && !python_find(t, &p.py, NULL) && !python_gil(t, &p) &&
	    p.gil_holder && !target_read(t, p.gil_locked, &locked, sizeof(locked)) && locked == 1 &&
	    !target_read(t, p.gil_holder, &thread, sizeof(thread)) && thread &&
	    target_read(t, thread + p.py.thread_native_id, &tid, sizeof(tid)))
		tid = 0;
	target_close(t);
	return (uint32_t)tid;
}

/* Programs that cudatrace has started are traced by a thread of it. */
static bool is_ours(long tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%ld", tid);
	return !access(path, F_OK);
}

void hang_proc_read(struct hang_proc *p, pid_t pid, bool python)
{
	char buf[4096];
	const char *state = host_stat(pid, buf, sizeof(buf));
	char text[4096];

	*p = (struct hang_proc){ .pid = (uint32_t)pid };
	/* the main thread may have ended before the others */
	if (!state || ((*state == 'Z' || *state == 'X') && field(state, NUM_THREADS) < 2))
		return;
	p->state = *state == 'Z' || *state == 'X' ? 'S' : *state;
	p->began = field(state, STARTTIME);
	p->cpu_ns = ticks_ns(field(state, UTIME) + field(state, STIME));
	/* those that it has waited for, and those that run */
	p->child_ns = ticks_ns(field(state, CUTIME) + field(state, CSTIME)) + children_ns(pid);
	if (host_status(pid, text, sizeof(text)) >= 0) {
		const char *name = host_status_line(text, "Name");
		const char *tracer = host_status_line(text, "TracerPid");

		if (name)
			snprintf(p->name, sizeof(p->name), "%.*s", (int)strcspn(name, "\n"), name);
		if (tracer && !is_ours(strtol(tracer, NULL, 10)))
			p->tracer = (uint32_t)strtol(tracer, NULL, 10);
	}
	if (!host_file(pid, "io", text, sizeof(text)))
		p->io_bytes = line_of(text, "rchar: ") + line_of(text, "wchar: ");
	if (!host_file(pid, "wchan", text, sizeof(text)) && strcmp(text, "0") != 0)
		snprintf(p->wait, sizeof(p->wait), "%.31s", text);
	if (python)
		p->holder = lock_holder(pid);
}
