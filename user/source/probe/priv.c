/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * priv.c - see priv.h. What this kernel asks for is tried, not told by its version. Knows no
 * option.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../util/self/caps.h"
#include "../../util/io/safe_open.h"
#include "../../util/msg.h"
#include "../tracefs.h"
#include "links.h"
#include "links_util.h"
#include "priv.h"

/* What loads and attaches programs, and finds the files of others. */
#define TRACING                                                                 \
	(CAPS_BIT(CAP_BPF) | CAPS_BIT(CAP_PERFMON) | CAPS_BIT(CAP_SYS_PTRACE) | \
	 CAPS_BIT(CAP_CHECKPOINT_RESTORE) | CAPS_BIT(CAP_DAC_READ_SEARCH))
/* CAP_SYS_ADMIN includes these (<linux/capability.h>: bpf_capable() and others). */
#define OF_ADMIN (CAPS_BIT(CAP_BPF) | CAPS_BIT(CAP_PERFMON) | CAPS_BIT(CAP_CHECKPOINT_RESTORE))
/* Limits: open files, locked memory, buffers of sockets; a port below 1024; signals to the
 * program that was started. */
#define LIMITS                                                                           \
	(CAPS_BIT(CAP_SYS_RESOURCE) | CAPS_BIT(CAP_IPC_LOCK) | CAPS_BIT(CAP_NET_ADMIN) | \
	 CAPS_BIT(CAP_NET_BIND_SERVICE) | CAPS_BIT(CAP_KILL))
#define FILES (CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_FOWNER))

struct need {
	int cap;
	const char *name;
	bool needed;
};

/* The names of those that are needed and not there. */
static const char *missing_of(const struct need *needs, size_t n, uint64_t have, char *buf,
			      size_t size)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < n && at < size; i++)
		if (needs[i].needed && !(have & CAPS_BIT(needs[i].cap)))
			at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "",
					       needs[i].name);
	return buf;
}

const char *priv_missing(bool others, char *buf, size_t size)
{
	uint64_t have = caps_effective();
	const struct need needs[] = {
		{ CAP_BPF, "CAP_BPF", true },
		{ CAP_PERFMON, "CAP_PERFMON", true },
		{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", others },
	};

	if (have & CAPS_BIT(CAP_SYS_ADMIN))
		have |= OF_ADMIN;
	return missing_of(needs, ARRAY_LEN(needs), have, buf, size);
}

/* Does the kernel open a perf event for us, which counts nothing? */
static bool perf_event_allowed(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY };
	int fd = links_perf_event(&attr);

	if (fd >= 0)
		close(fd);
	return fd != -EPERM && fd != -EACCES;
}

const char *priv_missing_for(enum attach_kind kind, char *buf, size_t size)
{
	bool tracefs = kind == ATTACH_TRACEFS, perf = kind == ATTACH_PERF;
	/* What the programs may call is looked for among the types of modules where the kernel
	 * itself does not have it: by those alone who may list them (bpf_btf_get_next_id():
	 * capable(CAP_SYS_ADMIN)). */
	bool listed = kind != ATTACH_SESSION &&
		      attach_kind_try(attach_kind_name(ATTACH_SESSION)) < 0;
	const struct need needs[] = {
		{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN",
		  listed || perf || (tracefs && (!perf_event_allowed() || !tracefs_mounted())) },
		{ CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE", tracefs && geteuid() },
	};

	return missing_of(needs, ARRAY_LEN(needs), caps_effective(), buf, size);
}

/* Is CAP_SYS_ADMIN of use to this kind? Tried without it. */
static bool wants_admin(enum attach_kind kind)
{
	bool wants;

	if (caps_set(CAP_SYS_ADMIN, false))
		return true;
	/* the others open perf events too, to see what is mapped */
	wants = kind == ATTACH_PERF ? attach_kind_try(attach_kind_name(kind)) < 0
				    : !perf_event_allowed();
	return caps_set(CAP_SYS_ADMIN, true) || wants;
}

void priv_drop(enum attach_kind kind, const struct capture_plan *plan)
{
	uint64_t have = caps_effective(), keep = TRACING | LIMITS;
	int err;

	/* The kernel lets us look at a program without it only while we have all that the
	 * program has. */
	if (plan->cmd && !(have & CAPS_BIT(CAP_SYS_PTRACE)))
		return;
	/* in any case: who may open files may not mount a tracefs */
	if (kind == ATTACH_TRACEFS && links_tracefs_hold())
		keep |= FILES;
	if (plan->opens_files)
		keep |= FILES | safe_open_caps();
	if (plan->kernel_log)
		keep |= CAPS_BIT(CAP_SYSLOG);
	if (plan->cmd)
		keep |= CAPS_BIT(CAP_SYS_NICE);
	/* The counters' helper keeps it where only administrators may profile; a process's
	 * seccomp filter is read with it. */
	if (have & CAPS_BIT(CAP_SYS_ADMIN) &&
	    ((have & OF_ADMIN) != OF_ADMIN || plan->counters_interval_ns || plan->device.kinds ||
	     wants_admin(kind)))
		keep |= CAPS_BIT(CAP_SYS_ADMIN);
	err = caps_keep(keep);
	if (!err)
		err = caps_no_new();
	if (err)
		msg_verb("capabilities cannot be given up: %s", strerror(-err));
}

/* The limit is the whole process's, and stays as it was. */
void priv_first(void)
{
	struct sched_param first = { .sched_priority = 1 };
	struct rlimit was, some;

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &first) &&
	    !getrlimit(RLIMIT_RTPRIO, &was)) {
		some.rlim_cur = some.rlim_max = 1;
		if (!setrlimit(RLIMIT_RTPRIO, &some)) {
			pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
			setrlimit(RLIMIT_RTPRIO, &was);
		}
	}
	priv_first_set();
}

void priv_first_set(void)
{
	if (caps_effective() & CAPS_BIT(CAP_SYS_PTRACE))
		caps_keep(~CAPS_BIT(CAP_SYS_NICE));
}

int priv_check(bool others)
{
	char missing[128];

	if (!*priv_missing(others, missing, sizeof(missing)))
		return 0;
	if (geteuid())
		msg_error("tracing needs %s, which this user does not have; type: sudo %s ...",
			  missing, program_invocation_name);
	else
		msg_error("tracing needs %s, which this container or service does not give; start "
			  "it with --cap-add for each (docker), or run %s on the host",
			  missing, program_invocation_short_name);
	return -EPERM;
}
