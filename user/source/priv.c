/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * priv.c - see priv.h. Reads /proc/self/status (CapEff) rather than asking libcap: two bit masks need no library.
 * Knows no option.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../util/msg.h"
#include "priv.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38 /* <linux/capability.h> since 5.8 */
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

/* The value of a line of a status file, without leading blanks; NULL: no such line. */
static char *status_line(char *text, const char *key)
{
	size_t n = strlen(key);

	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, n) && line[n] == ':')
			return line + n + 1 + strspn(line + n + 1, " \t");
	}
	return NULL;
}

static int read_status(pid_t tid, char *buf, size_t size)
{
	char path[64];
	size_t n;
	FILE *f;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	else
		snprintf(path, sizeof(path), "/proc/self/status");
	f = fopen(path, "re");
	if (!f)
		return -errno;
	n = fread(buf, 1, size - 1, f);
	buf[n] = '\0';
	fclose(f);
	return 0;
}

static uint64_t effective(void)
{
	char text[4096], *val;

	if (read_status(0, text, sizeof(text)))
		return geteuid() ? 0 : ~0ULL;
	val = status_line(text, "CapEff");
	return val ? strtoull(val, NULL, 16) : 0;
}

const char *priv_missing(bool others, char *buf, size_t size)
{
	uint64_t have = effective();
	size_t n = 0;
	const struct {
		int cap;
		const char *name;
		bool needed;
	} caps[] = {
		{ CAP_BPF, "CAP_BPF", true },
		{ CAP_PERFMON, "CAP_PERFMON", true },
		{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", others },
	};

	buf[0] = '\0';
	/* CAP_SYS_ADMIN includes the first two (kernel/capability.h: bpf_capable, perfmon_capable) */
	for (size_t i = 0; i < ARRAY_LEN(caps) && n < size; i++) {
		bool admin = caps[i].cap != CAP_SYS_PTRACE && (have >> CAP_SYS_ADMIN & 1);

		if (!caps[i].needed || admin || (have >> caps[i].cap & 1))
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "", caps[i].name);
	}
	return buf;
}

int priv_check(bool others)
{
	char missing[128];

	if (!*priv_missing(others, missing, sizeof(missing)))
		return 0;
	if (geteuid())
		msg_error("tracing needs %s, which this user does not have; type: sudo %s ...", missing,
			  program_invocation_name);
	else
		msg_error("tracing needs %s, which this container or service does not give; "
			  "start it with --cap-add for each (docker), or run %s on the host",
			  missing, program_invocation_short_name);
	return -EPERM;
}

int priv_task(pid_t tid, struct priv_task *out)
{
	char text[4096], *val;

	memset(out, 0, sizeof(*out));
	if (read_status(tid, text, sizeof(text)))
		return -ESRCH;
	val = status_line(text, "Tgid");
	out->tgid = val ? (pid_t)strtol(val, NULL, 10) : 0;
	val = status_line(text, "Seccomp");
	out->seccomp = val ? (int)strtol(val, NULL, 10) : 0;
	val = status_line(text, "Name");
	if (val)
		snprintf(out->comm, sizeof(out->comm), "%.*s", (int)strcspn(val, "\n"), val);
	return out->tgid > 0 ? 0 : -ESRCH;
}

bool priv_initial_pid_ns(void)
{
	/* PROC_PID_INIT_INO of include/linux/proc_ns.h */
	static const char initial[] = "pid:[4026531836]";
	char link[64];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);

	if (n < 0)
		return true;
	link[n] = '\0';
	return !strcmp(link, initial);
}
