/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_process.c - see agent_process.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent_process.h"
#include "../host.h"

#define STAT_STARTTIME 22 /* the field of /proc/PID/stat, in ticks since boot */

/* Of a zombie nothing is left but its status. */
uint64_t agent_process_started_ns(pid_t pid)
{
	char text[1024];
	const char *state = host_stat(pid, text, sizeof(text)), *ticks;
	long hz = sysconf(_SC_CLK_TCK);

	if (!state || *state == 'Z' || *state == 'X')
		return 0;
	ticks = host_stat_field(state, STAT_STARTTIME);
	return ticks && hz > 0
		       ? strtoull(ticks, NULL, 10) * (1000000000ULL / (unsigned long long)hz)
		       : 0;
}

static int64_t offset_ns(const char *who)
{
	long long seconds = 0, ns = 0;
	char path[64], text[256];
	const char *line;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/timens_offsets", who);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) /* before Linux 5.6 there are none */
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, "monotonic");
	if (!line || sscanf(line, "monotonic %lld %lld", &seconds, &ns) != 2)
		return 0;
	return (int64_t)(seconds * 1000000000LL + ns);
}

/* The offsets of a process are those of its children, for whom it may have made a new time namespace. */
static bool has_our_clock(pid_t pid)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/time", (int)pid);
	return !stat(path, &theirs) && !stat("/proc/self/ns/time", &ours) &&
	       theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

int64_t agent_process_ahead_ns(pid_t pid)
{
	char who[16];

	if (has_our_clock(pid))
		return 0;
	snprintf(who, sizeof(who), "%d", (int)pid);
	return offset_ns(who) - offset_ns("self");
}

static uint32_t agent_process_number(const char *text, const char *key)
{
	const char *val = host_status_line(text, key);

	return val ? (uint32_t)strtoul(val, NULL, 10) : 0;
}

int agent_process_tell(pid_t pid, emit_fn emit, void *ctx)
{
	struct ct_process p = {
		.h = { .size = sizeof(p),
		       .kind = CT_PROCESS,
		       .pid = (uint32_t)pid,
		       .tid = (uint32_t)pid },
	};
	struct timespec ts;
	const char *name;
	char text[8192];

	if (host_status(pid, text, sizeof(text)))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	p.h.start_ns = p.h.end_ns = (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
	p.start_boottime_ns = agent_process_started_ns(pid);
	p.uid = agent_process_number(text, "Uid");
	p.gid = agent_process_number(text, "Gid");
	p.ppid = agent_process_number(text, "PPid");
	p.ns_pid = (uint32_t)pid;
	name = host_status_line(text, "Name");
	if (name)
		snprintf(p.comm, sizeof(p.comm), "%.*s", (int)strcspn(name, "\n"), name);
	return emit(ctx, &p.h);
}
