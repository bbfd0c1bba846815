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
#include "host.h"
#include "priv.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38 /* <linux/capability.h> since 5.8 */
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

static uint64_t effective(void)
{
	const char *val;
	char text[4096];

	if (host_status(0, text, sizeof(text)))
		return geteuid() ? 0 : ~0ULL;
	val = host_status_line(text, "CapEff");
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
