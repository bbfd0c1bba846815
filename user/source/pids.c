/* SPDX-License-Identifier: BSD-2-Clause */
/* pids.c - see pids.h. Reads /proc; may not know what is traced, or how. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../util/msg.h"
#include "host.h"
#include "pids.h"

#define STAT_FLAGS 9		  /* the field of /proc/PID/stat */
#define KTHREAD_FLAG 0x00200000UL /* PF_KTHREAD of include/linux/sched.h */

static bool is_kernel_thread(pid_t pid)
{
	char text[1024];
	const char *flags = host_stat_field(host_stat(pid, text, sizeof(text)), STAT_FLAGS);

	return flags && strtoul(flags, NULL, 10) & KTHREAD_FLAG;
}

static long pids_number(const char *text, const char *key)
{
	const char *val = host_status_line(text, key);

	return val ? strtol(val, NULL, 10) : 0;
}

static int absent(pid_t pid)
{
	/* /proc mounted with hidepid has only the processes that one may trace */
	if (kill(pid, 0) && errno == EPERM)
		msg_error("process %d belongs to another user and is hidden from this one: run "
			  "cudatrace as that user or as root",
			  (int)pid);
	else
		msg_error("there is no process %d; see 'ps' for those that are", (int)pid);
	return -ESRCH;
}

int pids_check(pid_t pid, bool threads)
{
	char text[8192];
	const char *state;
	long tgid;

	if (host_status(pid, text, sizeof(text)))
		return absent(pid);
	state = host_status_line(text, "State");
	tgid = pids_number(text, "Tgid");
	if (tgid != pid && threads)
		msg_error("%d is a thread of process %ld: give -p %ld -L %d", (int)pid, tgid, tgid,
			  (int)pid);
	else if (tgid != pid)
		msg_error("%d is a thread of process %ld: give -p %ld", (int)pid, tgid, tgid);
	else if (state && (*state == 'Z' || *state == 'X') && pids_number(text, "Threads") <= 1)
		msg_error("process %d has ended, and is a zombie until its parent, process %ld, "
			  "collects its status; see 'ps' for those that run",
			  (int)pid, pids_number(text, "PPid"));
	else if (is_kernel_thread(pid))
		msg_error(
			"process %d is a kernel thread, which calls no CUDA; see 'ps' for programs",
			(int)pid);
	else
		return 0;
	return -ESRCH;
}
