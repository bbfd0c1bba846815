/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_life.c - see hooks_life.h. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../util/now.h"
#include "../agent/agent_process.h"
#include "../host.h"
#include "hooks_life.h"

/* the fields of /proc/PID/stat */
#define STAT_EXIT_CODE 52

/* Linux 6.15 tells the status of a process that nobody waits for any more. */
struct info {
	__u64 mask, cgroup;
	__u32 pid, tgid, ppid, ids[8];
	__s32 exit_code;
};
_Static_assert(sizeof(struct info) == 64, "the first version of struct pidfd_info");
#define INFO_EXIT (1U << 3)
#define GET_INFO _IOWR(0xFF, 11, struct info)

static uint32_t second_number(const char *text, const char *key)
{
	const char *at = host_status_line(text, key);
	char *end = NULL;

	if (at)
		strtoul(at, &end, 10);
	return end ? (uint32_t)strtoul(end, NULL, 10) : 0;
}

void hooks_life_open(struct hooks_life *l, pid_t pid)
{
	char text[8192];

	*l = (struct hooks_life){ .pid = pid };
	l->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	l->uid = host_status(pid, text, sizeof(text)) ? (uid_t)-1
						      : (uid_t)second_number(text, "Uid");
	host_layout(pid, l->layout);
}

bool hooks_life_executed(const struct hooks_life *l)
{
	uint64_t now[HOST_LAYOUT];

	host_layout(l->pid, now);
	return memcmp(now, l->layout, sizeof(now)) != 0;
}

void hooks_life_close(struct hooks_life *l)
{
	if (l->pidfd >= 0)
		close(l->pidfd);
	l->pidfd = -1;
}

bool hooks_life_gone(struct hooks_life *l)
{
	struct pollfd p = { .fd = l->pidfd, .events = POLLIN };
	bool gone = l->pidfd >= 0 ? poll(&p, 1, 0) == 1 : kill(l->pid, 0) && errno == ESRCH;

	if (gone && !l->gone_ns)
		l->gone_ns = now_ns();
	return l->gone_ns;
}

/* Of a process that nobody has waited for yet. */
static bool zombie_status(pid_t pid, int *status)
{
	char text[1024];
	const char *state = host_stat(pid, text, sizeof(text)), *code;

	if (!state || *state != 'Z')
		return false;
	code = host_stat_field(state, STAT_EXIT_CODE);
	if (code)
		*status = (int)strtol(code, NULL, 10);
	return code;
}

int hooks_life_status(const struct hooks_life *l)
{
	struct info info = { .mask = INFO_EXIT };
	int status;

	if (zombie_status(l->pid, &status))
		return status;
	if (l->pidfd >= 0 && !ioctl(l->pidfd, GET_INFO, &info) && info.mask & INFO_EXIT)
		return info.exit_code;
	return HOOKS_STATUS_UNKNOWN;
}

bool hooks_life_is_kin(const struct hooks_life *parent, pid_t child, uid_t uid)
{
	const char *at;
	char text[8192];

	if (child <= 0 || host_status(child, text, sizeof(text)))
		return false;
	at = host_status_line(text, "PPid");
	return uid == parent->uid || (at && strtol(at, NULL, 10) == parent->pid);
}

/* ---- records ---- */

struct telling {
	struct hooks_batch *batch;
	enum ct_kind kind;
	uint64_t ns;
};

static int tell(void *ctx, const struct ct_hdr *rec)
{
	const struct telling *t = ctx;
	struct ct_process p;

	memcpy(&p, rec, sizeof(p));
	p.h.kind = (uint16_t)t->kind;
	p.h.start_ns = p.h.end_ns = t->ns;
	return hooks_batch_add(t->batch, &p.h);
}

int hooks_life_tell(struct hooks_batch *b, enum ct_kind kind, pid_t pid, uint64_t ns)
{
	struct telling t = { b, kind, ns };

	return agent_process_tell(pid, tell, &t);
}

int hooks_life_fork(struct hooks_batch *b, pid_t parent, uint32_t tid, pid_t child, uint64_t ns)
{
	struct ct_fork f = { .h = { .size = sizeof(f),
				    .kind = CT_FORK,
				    .pid = (uint32_t)parent,
				    .tid = tid ? tid : (uint32_t)parent,
				    .start_ns = ns,
				    .end_ns = ns },
			     .child_pid = (uint32_t)child,
			     .child_ns_pid = (uint32_t)child };

	return hooks_batch_add(b, &f.h);
}

int hooks_life_exit(struct hooks_batch *b, pid_t pid, int status, uint64_t ns)
{
	struct ct_exit x = { .h = { .size = sizeof(x),
				    .kind = CT_EXIT,
				    .pid = (uint32_t)pid,
				    .tid = (uint32_t)pid,
				    .start_ns = ns,
				    .end_ns = ns },
			     .status = status };

	return hooks_batch_add(b, &x.h);
}
