/* SPDX-License-Identifier: BSD-2-Clause */
/* urgent.c - see urgent.h. Linux gives each thread a niceness of its own. */
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "urgent.h"

#define URGENT (-15)
#define LIMIT_OF(nice) ((rlim_t)(20 - (nice))) /* in RLIMIT_NICE */

static int usual;	     /* valid from the first urgent_begin() on */
static _Atomic bool changed; /* urgent_begin() has been called */
static _Atomic bool urgent;

static int set_all(int nice)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int err = d ? 0 : -errno;

	while (d && (e = readdir(d))) {
		id_t tid = (id_t)strtoul(e->d_name, NULL, 10);

		if (tid && setpriority(PRIO_PROCESS, tid, nice) && errno != ESRCH)
			err = -errno;
	}
	if (d)
		closedir(d);
	return err;
}

/* The limit belongs to the whole process, and its children would inherit it: it stays as it was. */
void urgent_begin(void)
{
	struct rlimit was, more;
	int nice;

	errno = 0;
	nice = getpriority(PRIO_PROCESS, 0);
	if (atomic_load(&urgent) || errno || nice > 0 || nice <= URGENT)
		return;
	usual = nice;
	atomic_store(&changed, true);
	atomic_store(&urgent, true);
	if (!set_all(URGENT) || getrlimit(RLIMIT_NICE, &was))
		return;
	more = was;
	if (more.rlim_cur < LIMIT_OF(URGENT))
		more.rlim_cur = LIMIT_OF(URGENT);
	if (more.rlim_max < more.rlim_cur)
		more.rlim_max = more.rlim_cur;
	if (setrlimit(RLIMIT_NICE, &more))
		return;
	set_all(URGENT);
	setrlimit(RLIMIT_NICE, &was);
}

void urgent_end(void)
{
	if (!atomic_exchange(&urgent, false))
		return;
	set_all(usual);
}

void urgent_child(enum urgent_child which)
{
	if (!atomic_load(&changed) || (which == URGENT_WHILE_WE_ARE && atomic_load(&urgent)))
		return;
	errno = 0;
	if (getpriority(PRIO_PROCESS, 0) < usual && !errno)
		setpriority(PRIO_PROCESS, 0, usual);
}
